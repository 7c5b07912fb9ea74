"""A fixed number of seats. Refusing is honest: the time to come back is computed from the calls seen so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wire.errors import Overloaded

MIN_RETRY_S = 1.0
MAX_RETRY_S = 60.0
FIRST_GUESS_S = 60.0  # length of a call before any has ended
_WEIGHT = 0.2  # of the newest call in the running mean


class Seats:
    def __init__(self, num_seats: int) -> None:
        self._num_seats = num_seats
        self._mean_call_s = FIRST_GUESS_S
        self.num_taken = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """One call's seat; it is given back however the call ends.

        Raises: Overloaded when none is free.
        """
        if self.num_taken >= self._num_seats:
            raise Overloaded(f"all {self._num_seats} lines are busy", retry_after_s=self.retry_after_s())
        self.num_taken += 1
        try:
            yield
        finally:
            self.num_taken -= 1

    def note_length(self, call_s: float) -> None:
        self._mean_call_s += _WEIGHT * (call_s - self._mean_call_s)

    def retry_after_s(self) -> float:
        """Expected time until one of the running calls ends, if they end independently."""
        return min(MAX_RETRY_S, max(MIN_RETRY_S, self._mean_call_s / self._num_seats))
