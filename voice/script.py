"""The text of one utterance, as it was written and as it is spoken, and the way from one to the other. Pure.

The voice is sent what is spoken, and places its words there. Transcript and history have what was written.
"""

from __future__ import annotations

from bisect import bisect_right

from voice.speakable import speakable


class Script:
    def __init__(self, language: str) -> None:
        self.written = ""
        self.spoken = ""
        self._language = language
        # Of every piece: where it begins in either text, and whether it is said as written.
        self._spoken_starts: list[int] = []
        self._written_starts: list[int] = []
        self._is_verbatim: list[bool] = []

    def add(self, unit: str) -> str:
        """How one more unit is spoken."""
        made = speakable(unit, self._language)
        for piece in made.pieces:
            self._spoken_starts.append(len(self.spoken))
            self._written_starts.append(len(self.written))
            self._is_verbatim.append(piece.written == piece.spoken)
            self.spoken += piece.spoken
            self.written += piece.written
        return made.text

    def span(self, start: int, end: int) -> tuple[int, int]:
        """What of the written text characters `start` to `end` of the spoken are.

        A part of what was rewritten stands for the whole of it: "three" for $3.50. What is not said at all, such as
        the address of a link, is said with the word right before it. Offsets beyond the text do no harm.
        """
        end = max(0, min(end, len(self.spoken)))
        start = max(0, min(start, end))
        if start == end:
            return (at := self._written(start)), at
        last = self._piece(end - 1)
        if self._is_verbatim[last] and end < self._spoken_end(last):
            written_end = self._written_starts[last] + end - self._spoken_starts[last]
        else:
            while last + 1 < len(self._spoken_starts) and self._spoken_end(last + 1) == self._spoken_starts[last + 1]:
                last += 1
            written_end = self._written_end(last)
        return self._written(start), written_end

    def _written(self, at: int) -> int:
        if not self._spoken_starts or at >= len(self.spoken):
            return len(self.written)
        piece = self._piece(at)
        return self._written_starts[piece] + (at - self._spoken_starts[piece] if self._is_verbatim[piece] else 0)

    def _piece(self, at: int) -> int:
        """The one that character `at` of the spoken text is in: of those that begin there, the last has characters."""
        return bisect_right(self._spoken_starts, at) - 1

    def _spoken_end(self, piece: int) -> int:
        return self._spoken_starts[piece + 1] if piece + 1 < len(self._spoken_starts) else len(self.spoken)

    def _written_end(self, piece: int) -> int:
        return self._written_starts[piece + 1] if piece + 1 < len(self._written_starts) else len(self.written)
