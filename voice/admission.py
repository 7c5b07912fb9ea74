"""A fixed number of seats. Refusing is honest: the time to come back is computed from the calls seen so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from wire.errors import Overloaded

MIN_RETRY_S = 1.0
MAX_RETRY_S = 60.0
FIRST_GUESS_S = 60.0  # length of a call before any has ended
_WEIGHT = 0.2  # of the newest call in the running mean


@dataclass(frozen=True)
class Load:
    """Of the whole call server, however many processes it has."""

    TYPE: ClassVar[str] = "load"
    num_taken: int = 0  # lines
    num_free: int = 0  # lines that a call can have now
    num_active: int = 0  # units of work
    num_processes: int = 1  # that take calls


class Seats:
    """`num_all`: of all processes, where this one has a share. `changed`: called when a seat is taken or given back."""

    def __init__(
        self, num_seats: int, *, num_all: int | None = None, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._num_seats = num_seats
        self._num_all = num_seats if num_all is None else num_all
        self._changed = changed
        self._mean_call_s = FIRST_GUESS_S
        self.num_taken = 0

    @property
    def num_free(self) -> int:
        return self._num_seats - self.num_taken

    @contextmanager
    def take(self) -> Iterator[None]:
        """One call's seat; it is given back however the call ends.

        Raises: Overloaded when none is free.
        """
        if self.num_free <= 0:
            raise self.overloaded()
        self.num_taken += 1
        self._changed()
        try:
            yield
        finally:
            self.num_taken -= 1
            self._changed()

    def note_length(self, call_s: float) -> None:
        self._mean_call_s += _WEIGHT * (call_s - self._mean_call_s)

    def overloaded(self) -> Overloaded:
        return Overloaded(f"all {self._num_all} lines are busy", retry_after_s=self.retry_after_s())

    def retry_after_s(self) -> float:
        """Expected time until one of the running calls ends, if they end independently."""
        return min(MAX_RETRY_S, max(MIN_RETRY_S, self._mean_call_s / self._num_all))
