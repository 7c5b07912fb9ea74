"""`offhook load relay`: any client or server behind the faults, until Ctrl-C; at its end what passed, as JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from load.errors import LoadError
from load.faults.breaks import BREAKS
from load.faults.impairment import NETWORK_FAULTS
from load.faults.kill import PROCESS_FAULTS
from load.faults.parse import Fault, parse_text
from load.faults.path import PathFault, call_path
from load.faults.stage_proxy import StageProxy
from load.faults.stages import STAGE_FAULTS, STAGES, Stage
from wire.strict import Invalid

_KINDS = [fault.KIND for fault in (*NETWORK_FAULTS, *BREAKS, *STAGE_FAULTS)]  # a process is not a relay's to kill

STAGE_HINT = "faults of a stage take --stage"


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url",
        help="of the server behind it: ws:// or http:// of a call server, or the http:// base of a stage with --stage",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="YAML",
        help=f"such as '{{kind: loss, share: 0.03}}'; may be repeated; kinds: {', '.join(_KINDS)}",
    )
    parser.add_argument("--stage", choices=tuple(STAGES), help="the url is this service's, not a call server's")
    parser.add_argument("--port", type=int, default=0, help="to listen on, on 127.0.0.1 (default: a free one)")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same packets, same faults (default: 1)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    faults = faults_of(arguments.fault)
    if not 0 <= arguments.port <= 65_535:
        raise LoadError(f"--port must be 0 to 65535, got {arguments.port}")
    if arguments.seed < 0:
        raise LoadError(f"--seed must not be negative, got {arguments.seed}")
    rng = np.random.default_rng(arguments.seed)
    with contextlib.suppress(KeyboardInterrupt):
        if arguments.stage is None:
            asyncio.run(_relay_calls(arguments.url, faults, rng, arguments.port))
        else:
            asyncio.run(_relay_stage(arguments.stage, arguments.url, faults, rng, arguments.port))
    return 0


async def _relay_calls(url: str, faults: Sequence[Fault], rng: np.random.Generator, port: int) -> None:
    of_path: list[PathFault] = []
    for fault in faults:
        if not isinstance(fault, (*NETWORK_FAULTS, *BREAKS)):
            hint = (
                "processes are ended by offhook load run --start" if isinstance(fault, PROCESS_FAULTS) else STAGE_HINT
            )
            raise LoadError(f"{fault.KIND} is no fault of a call's path", hint)
        of_path.append(fault)
    async with call_path(url, of_path, rng, port=port, is_open=True) as path:
        _write(path.url)
        try:
            await asyncio.Event().wait()
        finally:
            _write(json.dumps(path.counts()))


async def _relay_stage(stage: Stage, url: str, faults: Sequence[Fault], rng: np.random.Generator, port: int) -> None:
    proxy = StageProxy(stage, url, rng)
    for fault in faults:
        if not isinstance(fault, STAGES[stage]):
            raise LoadError(
                f"{fault.KIND} is no fault of {stage}", f"it has {', '.join(k.KIND for k in STAGES[stage])}"
            )
        proxy.plan.set([fault])
    async with proxy.open(port) as base:
        _write(base)
        try:
            await asyncio.Event().wait()
        finally:
            _write(json.dumps({"num_requests": proxy.plan.num_requests, "num_faults": proxy.plan.num_faults}))


def faults_of(texts: Sequence[str]) -> list[Fault]:
    """Of `--fault`, which may be given several times. Raises: LoadError."""
    found = []
    for text in texts:
        try:
            found.append(parse_text(text))
        except Invalid as error:
            raise LoadError(f"--fault {text[:60]}: {error}") from None
    return found


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
