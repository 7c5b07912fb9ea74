"""Keeps a run's results on disk while it runs: whatever ends it, what had ended before is there.

The file is rewritten whole, to a temporary name and renamed, so a reader never sees half of one. Each record is encoded
once, when it ends; a rewrite only joins and writes text: 2.7 ms per thousand records (1232 records of
`tests/load/report/runs.py`, median of 21, busy 2-core x86 CPU). So that a long run does not wait for its own results,
rewrites take at most `REWRITE_SHARE` of the time, and come no closer than `REWRITE_S`: what a killed run loses.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from load.errors import LoadError
from load.record import TurnRecord
from load.report.document import (
    SCHEMA_VERSION,
    CallFacts,
    CapacityStep,
    Head,
    RequestRecord,
    RunDocument,
    ScenarioVerdict,
    Validity,
)
from load.report.measures import stages

REWRITE_S = 2.0
REWRITE_SHARE = 0.001  # of the time: what waits behind a rewrite stays outside the p99 of lateness
_LISTS = ("calls", "turns", "requests", "capacity", "verdicts")

Record: TypeAlias = CallFacts | TurnRecord | RequestRecord | CapacityStep | ScenarioVerdict


class RunWriter:
    def __init__(self, path: Path, head: Head) -> None:
        """Raises: LoadError when nothing can be written there, before the run and not after it."""
        self._path = path
        self._run = RunDocument(SCHEMA_VERSION, is_complete=False, head=head)
        self._records: dict[str, list[Record]] = {name: [] for name in _LISTS}
        self._lines: dict[str, list[str]] = {name: [] for name in _LISTS}
        self._place: dict[tuple[int, int], int] = {}  # of a turn among all, by call and number
        self._due_s = -math.inf
        no_file = LoadError(f"{path}: is no file", "name one with --json")
        if not path.name:
            raise no_file
        with _written_beside(path) as temporary:
            temporary.touch()
            if path.exists() and not path.is_file():  # a folder, or a device, in whose place a file would be put
                raise no_file

    def add_call(self, call: CallFacts, turns: Iterable[TurnRecord], now: float) -> None:
        self._add("calls", call)
        for turn in turns:
            self._place[turn.call, turn.turn] = len(self._records["turns"])
            self._add("turns", turn)
        self._keep(now)

    def replace_turns(self, turns: Iterable[TurnRecord]) -> None:
        """Those that are there already, by call and turn, measured anew."""
        for turn in turns:
            place = self._place[turn.call, turn.turn]
            self._records["turns"][place] = turn
            self._lines["turns"][place] = _encoded(turn)

    def add_verdicts(self, verdicts: Iterable[ScenarioVerdict]) -> None:
        for verdict in verdicts:
            self._add("verdicts", verdict)

    def add_request(self, request: RequestRecord, now: float) -> None:
        self._add("requests", request)
        self._keep(now)

    def add_capacity(self, step: CapacityStep, now: float) -> None:
        self._add("capacity", step)
        self._keep(now)

    def close(self, validity: Validity, duration_s: float, *, is_complete: bool) -> RunDocument:
        """The last write, with the statistics of the stages. Raises: LoadError."""
        records: dict[str, Any] = {name: tuple(found) for name, found in self._records.items()}
        self._run = replace(self._run, is_complete=is_complete, validity=validity, duration_s=duration_s, **records)
        self._run = replace(self._run, n=self._num_measured(), stages=stages(self._run))
        self._write()
        return self._run

    def _add(self, name: str, record: Record) -> None:
        self._records[name].append(record)
        self._lines[name].append(_encoded(record))

    def _num_measured(self) -> int:
        return len(self._records["turns"]) + len(self._records["requests"])

    def _keep(self, now: float) -> None:
        if now >= self._due_s:
            began_s = time.perf_counter()
            self._write()
            cost_s = time.perf_counter() - began_s
            self._due_s = now + max(REWRITE_S, cost_s / REWRITE_SHARE)

    def _write(self) -> None:
        """Raises: LoadError."""
        shell = replace(self._run, n=self._num_measured())
        fields = [
            f'"{name}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}'
            for name, value in asdict(shell).items()
            if name not in _LISTS
        ]
        for name, lines in self._lines.items():
            fields.append(f'"{name}": [' + ",".join(f"\n{line}" for line in lines) + "]")
        text = "{\n" + ",\n".join(fields) + "\n}\n"
        with _written_beside(self._path) as temporary:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self._path)


def _encoded(record: Record) -> str:
    return json.dumps(asdict(record), ensure_ascii=False, allow_nan=False)


@contextlib.contextmanager
def _written_beside(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder, free again afterwards. Raises: LoadError for what the block cannot write."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
    except OSError as error:
        raise LoadError(f"{path}: cannot write: {error.strerror}", "choose another file with --json") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
