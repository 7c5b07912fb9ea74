"""From tokens to the text a client may see: whole characters, and nothing of a stop string. Pure.

Tokens are bytes; a character or a stop string may be spread over several. Text that could still turn into a stop
string is held back until it cannot.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    def __init__(self, stops: Sequence[str] = ()) -> None:
        assert all(stops), "an empty stop string would stop everything"
        self.stopped = False
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""

    def push(self, token: bytes) -> str:
        """The text that `token` makes certain; once `stopped`, the end of the text."""
        assert not self.stopped, "nothing follows a stop string"
        return self._take(self._decoder.decode(token))

    def finish(self) -> str:
        """What was held back, when the answer ended for another reason than a stop string."""
        if self.stopped:
            return ""
        text, held = self._take(self._decoder.decode(b"", final=True)), self._held
        self._held = ""
        return text + held

    def _take(self, text: str) -> str:
        self._held += text
        found = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.stopped = True
            _, start = min(found)  # the one complete first; so it does not matter how the text was cut into tokens
            text, self._held = self._held[:start], ""
            return text
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        text, self._held = self._held[:cut], self._held[cut:]
        return text


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that is a proper beginning of `stop`."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
