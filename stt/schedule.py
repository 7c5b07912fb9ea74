"""Which waiting request an idle model instance takes next. Pure.

Order: finals, speculations, pieces of files, partials; within a priority first come, first served. Files and partials
are background work: they start only while another instance stays idle, so that a final never waits behind one. A single
instance has no other: it serves a file when nothing else waits, and partials never.

Overflow: above `max_waiting` the newest request of the lowest priority is refused, be it the one that just came.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar


class Priority(IntEnum):
    """Lower goes first."""

    FINAL = 0
    SPECULATE = 1
    FILE = 2
    PARTIAL = 3


class Entry:
    """`deadline_s` is an instant of the clock that `now` is read from."""

    def __init__(self, priority: Priority, deadline_s: float) -> None:
        self.priority = priority
        self.deadline_s = deadline_s
        self.started = False

    def promote(self, priority: Priority, deadline_s: float) -> None:
        """It becomes as urgent as its most urgent waiter, and lasts as long as its most patient one."""
        self.priority = min(self.priority, priority)
        self.deadline_s = max(self.deadline_s, deadline_s)


E = TypeVar("E", bound=Entry)


class Schedule(Generic[E]):
    def __init__(self, num_instances: int, max_waiting: int) -> None:
        self.num_instances = num_instances
        self.num_running = 0
        self._max_waiting = max_waiting
        self._waiting: list[E] = []

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def add(self, entry: E) -> None:
        """Call `take` until it has nothing, then `overflow`."""
        self._waiting.append(entry)

    def overflow(self) -> E | None:
        """Remove and return what there is no room for."""
        if len(self._waiting) <= self._max_waiting:
            return None
        lowest = max(entry.priority for entry in self._waiting)
        refused = next(entry for entry in reversed(self._waiting) if entry.priority == lowest)
        self._waiting.remove(refused)
        return refused

    def remove(self, entry: E) -> bool:
        """Whether it was still waiting."""
        if entry not in self._waiting:
            return False
        self._waiting.remove(entry)
        return True

    def expired(self, now: float) -> list[E]:
        """Remove and return what can no longer be served in time."""
        late = [entry for entry in self._waiting if entry.deadline_s <= now]
        self._waiting = [entry for entry in self._waiting if entry.deadline_s > now]
        return late

    def clear(self) -> list[E]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def take(self) -> E | None:
        """The next to start, counted as running until `finish`; None when nothing may start."""
        num_idle = self.num_instances - self.num_running
        if not num_idle or not self._waiting:
            return None
        entry = min(self._waiting, key=lambda waiting: waiting.priority)  # the first of equals: first come
        if not self._may_start(entry.priority, num_idle):
            return None
        self._waiting.remove(entry)
        self.num_running += 1
        entry.started = True
        return entry

    def finish(self) -> None:
        assert self.num_running > 0
        self.num_running -= 1

    def _may_start(self, priority: Priority, num_idle: int) -> bool:
        if priority is Priority.FILE:
            return num_idle > 1 or self.num_instances == 1
        return priority is not Priority.PARTIAL or num_idle > 1
