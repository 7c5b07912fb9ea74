"""What every command that measures does around its run: flags, head, live table, results kept, summary, page."""

from __future__ import annotations

import argparse
import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from load.errors import LoadError, first_of
from load.report.document import Head, Kind, Plan, RunDocument, Validity
from load.report.host import CpuMeter, commit, host, started_at
from load.report.live import Tally, shown, summary
from load.report.page import require_place, write_page
from load.report.validity import judge
from load.report.writer import RunWriter

logger = logging.getLogger(__name__)


def add_result_flags(parser: argparse.ArgumentParser, kind: Kind) -> None:
    """`command_line` is not a flag: the program sets it, for the record."""
    default = Path("out") / f"load-{kind}.json"
    parser.add_argument("--json", type=Path, default=default, metavar="FILE", help="the result (default: %(default)s)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="the result as a page to look at (default: none)")
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of all that is drawn (default: %(default)s)"
    )
    parser.set_defaults(command_line="")


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r:.30}")
    return int(text)


def head_of(
    arguments: argparse.Namespace,
    kind: Kind,
    *,
    target: str,
    scenario: str,
    transport: str,
    plan: Plan,
    notes: tuple[str, ...] = (),
) -> Head:
    """Raises: LoadError for a page that could not be written when the run is over."""
    if arguments.html is not None:
        require_place(arguments.html, arguments.json)
    return Head(
        kind=kind,
        started_at=started_at(),
        command=arguments.command_line,
        commit=commit(),
        host=host(),
        seed=arguments.seed,
        target=target,
        scenario=scenario,
        transport=transport,
        plan=plan,
        notes=notes,
    )


@dataclass
class Recording:
    """A run in progress: append to `late_s` how late each thing left, tell `tally` what goes on."""

    writer: RunWriter
    tally: Tally
    judged: Callable[[Recording], Validity]
    late_s: list[float] = field(default_factory=list)
    start_s: float = field(default_factory=time.monotonic)
    duration_s: float | None = None  # of the load, when it has ended
    validity: Validity | None = None
    run: RunDocument | None = None  # when it is over

    def now(self) -> float:
        """Seconds since the start of the run."""
        return time.monotonic() - self.start_s

    def rest(self) -> None:
        """The load has ended: what the generator does from now on says nothing about how it kept time."""
        if self.validity is None:
            self.duration_s = self.now()
            self.validity = self.judged(self)


@contextmanager
def recording(path: Path, head: Head, unit: str, *, shares_cores: bool) -> Iterator[Recording]:
    """Whatever ends the block, its results are kept; they are complete when nothing was raised. Raises: LoadError."""
    meter = CpuMeter()

    def judged(run: Recording) -> Validity:
        return judge(run.late_s, meter.share(), run.now(), shares_cores=shares_cores, num_cores=head.host.num_cores)

    found = Recording(RunWriter(path, head), Tally(head.plan.num_planned), judged)
    gc.collect()
    gc.freeze()  # what is there now stays: to go through it again takes tens of ms of a run that must keep time
    is_complete = False
    try:
        with shown(found.tally, unit, Console(stderr=True)):
            yield found
        is_complete = True
    except BaseExceptionGroup as failed:  # of the block's tasks; one line is enough where one of them says it
        told = failed.subgroup(LoadError)
        if told is None:
            raise
        raise first_of(told) from None
    finally:
        gc.unfreeze()
        found.rest()
        assert found.validity is not None
        assert found.duration_s is not None
        found.run = found.writer.close(found.validity, found.duration_s, is_complete=is_complete)
        if not is_complete:
            logger.info("what had ended by then is kept: %s", path)


def conclude(found: Recording, arguments: argparse.Namespace, console: Console) -> int:
    """Show the result; the exit code, which is 1 for a run that is worth nothing. Raises: LoadError."""
    run = found.run
    assert run is not None, "the run is not over"
    console.print(summary(run))
    console.print(f"result: {arguments.json}", markup=False, highlight=False, soft_wrap=True)
    if arguments.html is not None:
        write_page(run, arguments.html)
        console.print(f"page: {arguments.html}", markup=False, highlight=False, soft_wrap=True)
    return 0 if run.validity is not None and run.validity.is_valid and run.stages else 1
