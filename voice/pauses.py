"""How long this caller pauses without being done: what to expect of the next pause. Pure.

A running mean of the logarithm, because pauses are spread by ratio; it starts from what callers do in general and that
counts as `PRIOR_PAUSES` of his own.
"""

from __future__ import annotations

import math

PRIOR_S = 0.45  # median of pauses inside turns of spontaneous speech lies around half a second
PRIOR_PAUSES = 2.0
MEMORY = 8.0  # pauses; older ones fade
SHORTEST_S, LONGEST_S = 0.16, 3.0  # shorter is a stop consonant, longer is a caller who waited for an answer


class Pauses:
    def __init__(self) -> None:
        self._weight = PRIOR_PAUSES
        self._sum = PRIOR_PAUSES * math.log(PRIOR_S)

    def add(self, pause_s: float) -> None:
        """He went on after so long."""
        if not SHORTEST_S <= pause_s <= LONGEST_S:
            return
        keep = 1.0 if self._weight < MEMORY else (MEMORY - 1.0) / MEMORY
        self._weight, self._sum = keep * self._weight + 1.0, keep * self._sum + math.log(pause_s)

    @property
    def usual_s(self) -> float:
        return math.exp(self._sum / self._weight)
