"""Which process to start when, how long to wait after a crash, and when to give up. Pure: `now` is an argument.

A process starts for the first time when all it needs is ready; after a crash it waits, doubling from
`FIRST_WAIT_S` to `MAX_WAIT_S`, and starts again whatever the others do: processes are restartable alone. A process
that was ready for `HEALTHY_S` has a clean record. One that ends before it was ever ready is not tried again, because
its profile or machine is wrong; one that crashes `MAX_CRASHES` times in a row is given up.

    WAITING --start--> STARTING --ready--> READY
       ^                  | |                |
       |                  | end, first time  | end
       | due              | v                v
       +----------------- | GIVEN_UP <--- BACKING_OFF (while crashes are few)
                          +--- end, later ---^
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0
HEALTHY_S = 60.0
MAX_CRASHES = 8  # without a healthy minute between them: about two minutes of waiting in sum
CRASH_LOOP = 3  # crashes in a row from which a restart is reported with the log


class Phase(Enum):
    WAITING = auto()
    STARTING = auto()
    READY = auto()
    BACKING_OFF = auto()
    GIVEN_UP = auto()


class Event(Enum):
    START = auto()
    READY = auto()
    CRASH = auto()
    GIVE_UP = auto()


TRANSITIONS: dict[tuple[Phase, Event], Phase] = {
    (Phase.WAITING, Event.START): Phase.STARTING,
    (Phase.BACKING_OFF, Event.START): Phase.STARTING,
    (Phase.STARTING, Event.READY): Phase.READY,
    (Phase.STARTING, Event.CRASH): Phase.BACKING_OFF,
    (Phase.READY, Event.CRASH): Phase.BACKING_OFF,
    (Phase.STARTING, Event.GIVE_UP): Phase.GIVEN_UP,
    (Phase.READY, Event.GIVE_UP): Phase.GIVEN_UP,
}


@dataclass(frozen=True)
class Restart:
    wait_s: float
    num_crashes: int  # in a row

    @property
    def is_crash_loop(self) -> bool:
        return self.num_crashes >= CRASH_LOOP


@dataclass(frozen=True)
class GiveUp:
    num_crashes: int
    was_ready: bool


@dataclass
class _Record:
    phase: Phase = Phase.WAITING
    since_s: float = 0.0
    due_s: float = 0.0
    num_crashes: int = 0
    was_ready: bool = False

    def step(self, event: Event, now: float) -> None:
        assert (self.phase, event) in TRANSITIONS, f"{event} in {self.phase}"
        self.phase, self.since_s = TRANSITIONS[self.phase, event], now


class Restarts:
    """`needs`: for each process the processes that must be ready before it starts for the first time."""

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        self._needs = needs
        self._ranks = _ranks(needs)
        self._records = {name: _Record() for name in needs}

    def phase(self, name: str) -> Phase:
        return self._records[name].phase

    @property
    def all_ready(self) -> bool:
        return all(record.phase is Phase.READY for record in self._records.values())

    def due(self, now: float) -> list[str]:
        """Processes to start now; tell `started` of each."""
        return [name for name, record in self._records.items() if self._is_due(name, record, now)]

    def next_due_s(self, now: float) -> float | None:
        """Seconds until a process is due by time alone, None when only an event can make one due."""
        waits = [r.due_s - now for r in self._records.values() if r.phase is Phase.BACKING_OFF]
        return max(0.0, min(waits)) if waits else None

    def started(self, name: str, now: float) -> None:
        self._records[name].step(Event.START, now)

    def ready(self, name: str, now: float) -> None:
        self._records[name].step(Event.READY, now)
        self._records[name].was_ready = True

    def ended(self, name: str, now: float) -> Restart | GiveUp:
        """The process ended unasked."""
        record = self._records[name]
        if record.phase is Phase.READY and now - record.since_s >= HEALTHY_S:
            record.num_crashes = 0
        record.num_crashes += 1
        if not record.was_ready or record.num_crashes >= MAX_CRASHES:
            record.step(Event.GIVE_UP, now)
            return GiveUp(record.num_crashes, record.was_ready)
        record.step(Event.CRASH, now)
        wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (record.num_crashes - 1))
        record.due_s = now + wait_s
        return Restart(wait_s, record.num_crashes)

    def drain_order(self) -> list[list[str]]:
        """Stages: nobody is ended before those who need it."""
        stages: dict[int, list[str]] = {}
        for name, rank in self._ranks.items():
            stages.setdefault(rank, []).append(name)
        return [stages[rank] for rank in sorted(stages, reverse=True)]

    def _is_due(self, name: str, record: _Record, now: float) -> bool:
        if record.phase is Phase.BACKING_OFF:
            return now >= record.due_s
        needed_ready = all(self._records[other].phase is Phase.READY for other in self._needs[name])
        return record.phase is Phase.WAITING and needed_ready


def _ranks(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """0 for a process that needs nobody, else one more than the highest it needs.

    Raises: ValueError for an unknown name or a circle.
    """
    ranks: dict[str, int] = {}
    left = set(needs)
    while left:
        settled = {name for name in left if all(other in ranks for other in needs[name])}
        if not settled:
            raise ValueError(f"these need each other or someone unknown: {', '.join(sorted(left))}")
        ranks |= {name: 1 + max((ranks[other] for other in needs[name]), default=-1) for name in settled}
        left -= settled
    return {name: ranks[name] for name in needs}
