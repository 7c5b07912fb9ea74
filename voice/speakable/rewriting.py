"""A text while it is rewritten, and what each part of the result was in the original. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Edit: TypeAlias = tuple[int, int, str]  # characters `start` to `end`, at least one, become this text


@dataclass(frozen=True)
class Piece:
    """Equal when said as written; `spoken` is empty for what is not said."""

    written: str
    spoken: str


class Rewriting:
    """`text` is what the original has become so far."""

    def __init__(self, original: str) -> None:
        self.text = original
        self._original = original
        self._origins = [(i, i + 1) for i in range(len(original))]  # of each character: its part of the original

    def edit(self, edits: Iterable[Edit]) -> None:
        """All at once; in order, without overlap."""
        texts: list[str] = []
        origins: list[tuple[int, int]] = []
        at = 0
        for start, end, new in edits:
            assert at <= start < end <= len(self.text), (at, start, end)
            texts += [self.text[at:start], new]
            origins += self._origins[at:start]
            origins += [(self._origins[start][0], self._origins[end - 1][1])] * len(new)
            at = end
        if texts:
            self.text = "".join([*texts, self.text[at:]])
            self._origins = origins + self._origins[at:]

    def sub(self, pattern: re.Pattern[str], new: str | Callable[[re.Match[str]], str | None]) -> None:
        """Replace every match; None leaves it."""
        edits: list[Edit] = []
        for match in pattern.finditer(self.text):
            replacement = new if isinstance(new, str) else new(match)
            if replacement is not None and replacement != match[0] and match[0]:
                edits.append((*match.span(), replacement))
        self.edit(edits)

    def unwrap(self, pattern: re.Pattern[str], *, parted: bool = False) -> None:
        """Of every match only the group `kept` stays, character by character; `parted` from a word right behind it."""
        edits: list[Edit] = []
        for match in pattern.finditer(self.text):
            follows = self.text[match.end() : match.end() + 1]
            blank = " " * (parted and follows.isascii() and follows.isalnum())  # a Korean particle belongs to it
            around = [(match.start(), match.start("kept"), ""), (match.end("kept"), match.end(), blank)]
            edits += [edit for edit in around if edit[0] < edit[1]]
        self.edit(edits)

    def pieces(self) -> tuple[Piece, ...]:
        """In order; what was written, joined, is the original, and what is spoken, joined, is `text`."""
        found: list[Piece] = []
        done = at = 0
        while at < len(self.text):
            begin = at
            start, end = self._origins[at]
            at += 1
            while at < len(self.text) and self._origins[at][0] < end:  # made of the same part
                end = max(end, self._origins[at][1])
                at += 1
            if done < start:
                found.append(Piece(self._original[done:start], ""))
            found.append(Piece(self._original[start:end], self.text[begin:at]))
            done = end
        if done < len(self._original):
            found.append(Piece(self._original[done:], ""))
        return _joined(found)


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbours that are said as written are one piece."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and last.written == last.spoken and piece.written == piece.spoken:
            joined[-1] = Piece(last.written + piece.written, last.spoken + piece.spoken)
        elif last is not None and not last.spoken and not piece.spoken:
            joined[-1] = Piece(last.written + piece.written, "")
        else:
            joined.append(piece)
    return tuple(joined)
