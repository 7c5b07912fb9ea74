"""Keys that a caller presses, gathered into what was meant by them: a number, a choice. Pure; `now` is given.

An entry ends at `#`, which is no part of it unless it stands alone, or `PAUSE_S` after its last key. Keys beyond
`MAX_DIGITS` are left out. What ends an entry may be pressed as fast as a program can, and every entry is answered: so
they are handed out at most every `EVERY_S`, those that ended meanwhile together.
"""

from __future__ import annotations

import math

from wire.calls import MAX_DIGITS

END = "#"
PAUSE_S = 2.0  # who looks for the next key on a list or a card needs less, who waits for an answer not much more
EVERY_S = 0.25


class Keypad:
    """`press`, then `take`; `take` again as time passes while it `is_open`."""

    def __init__(self) -> None:
        self._digits = ""
        self._ended: list[str] = []
        self._pressed_s = -math.inf
        self._taken_s = -math.inf

    @property
    def is_open(self) -> bool:
        """Keys were pressed that `take` has not handed out."""
        return bool(self._digits or self._ended)

    def press(self, digits: str, now: float) -> None:
        self._pressed_s = now
        for digit in digits:
            if digit == END and self._digits:
                self._end()
            elif self._has_room:
                self._digits += digit
                if digit == END:
                    self._end()

    def take(self, now: float) -> list[str]:
        """The entries, once none is under way any more."""
        if self._digits and now - self._pressed_s >= PAUSE_S:
            self._end()
        if self._digits or not self._ended or now - self._taken_s < EVERY_S:
            return []
        self._taken_s = now
        taken, self._ended = self._ended, []
        return taken

    @property
    def _has_room(self) -> bool:
        return len(self._digits) + sum(len(entry) for entry in self._ended) < MAX_DIGITS

    def _end(self) -> None:
        self._ended.append(self._digits)
        self._digits = ""


def told(entries: list[str]) -> str:
    """What the caller did, as it stands among his words: digit by digit, so that none is taken for a quantity."""
    return f"[The caller keyed in: {', then '.join(' '.join(entry) for entry in entries)}]"
