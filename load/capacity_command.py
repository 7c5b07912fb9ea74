"""`offhook load capacity`: how many calls at once a server answers within the budget, by trying."""

from __future__ import annotations

import argparse
import asyncio

from rich.console import Console

from load.callers import Callers
from load.capacity import REPEATS, Search, in_words, observed
from load.errors import LoadError
from load.offered import MAX_AT_ONCE, Fixed
from load.report.document import Plan, facts
from load.report.measures import BUDGET_S
from load.report.recording import Recording, add_result_flags, conclude
from load.run import add_caller_flags, callers_of, recording_of_calls, script_of
from load.target import add_target_flags, reached

FOR_S = 60.0  # of one repeat: some six turns of each line
MAX_CONCURRENT = 64


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_target_flags(parser)
    add_caller_flags(parser)
    parser.add_argument(
        "--max", type=int, default=MAX_CONCURRENT, metavar="N", help="calls at once, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, metavar="N", help="of each number at the border (default: %(default)s)"
    )
    parser.add_argument(
        "--for",
        type=float,
        dest="for_s",
        default=FOR_S,
        metavar="S",
        help="seconds in which the calls of a repeat begin (default: %(default)g)",
    )
    parser.add_argument(
        "--budget-ms", type=float, default=1000 * BUDGET_S, metavar="MS", help="of p95 (default: %(default)g)"
    )
    add_result_flags(parser, "calls")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    for flag, most in (("max", MAX_AT_ONCE), ("repeats", 100), ("for_s", 3600), ("budget_ms", 60_000)):
        value = vars(arguments)[flag]
        if not 0 < value <= most:
            raise LoadError(
                f"--{flag.removesuffix('_s').replace('_', '-')} must be above 0 and at most {most}, got {value:g}"
            )
    return asyncio.run(_run(arguments, console))


async def _run(arguments: argparse.Namespace, console: Console) -> int:
    search = Search(arguments.max, arguments.repeats, arguments.budget_ms / 1000)
    parameters = {
        "duration_s": arguments.for_s,
        "max_concurrent": arguments.max,
        "budget_s": arguments.budget_ms / 1000,
    }
    script = script_of(arguments)
    async with reached(arguments) as target:
        callers = await callers_of(script, arguments, target)
        callers.rehearse(None)
        with recording_of_calls(arguments, target, Plan("capacity", parameters)) as found:
            while (num_concurrent := search.next()) is not None:
                await _repeat(search, num_concurrent, arguments.for_s, callers, found)
    status = conclude(found, arguments, console)
    console.print(in_words(search.result()), highlight=False)
    return status


async def _repeat(search: Search, num_concurrent: int, for_s: float, callers: Callers, found: Recording) -> None:
    num_before = len(callers.played)
    await callers.call(Fixed(num_concurrent, None, for_s), found)
    played = callers.played[num_before:]
    turns = await callers.listen_again(found, played)
    step = search.add(num_concurrent, observed([facts(act.record) for each in played for act in each.acts], turns))
    found.writer.add_capacity(step, found.now())
