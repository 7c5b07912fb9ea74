"""`speakable`: the passes over one unit of text, in their order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from voice.speakable import english, korean
from voice.speakable.markup import strip_markup
from voice.speakable.rewriting import Edit, Piece, Rewriting

MAX_ROUNDS = 4  # until nothing changes; what one pass has left may be markup once it stands alone

_READINGS: Mapping[str, Callable[[str], list[Edit]]] = {"en": english.readings, "ko": korean.readings}
_KEPT_MARKS = frozenset(".,;:!?'\"“”‘’«»()-–—¿¡…、。，！？；：「」『』（）《》〈〉·・‐‑")
_KEPT_SIGNS = frozenset("/&%+=@#$€£¥₩₹°℃℉×÷<>~№§±©")  # where numbers and addresses are left to the voice
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
_BLANK_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?…、。，！？；：](?:\s|$))")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|（\s*）|\"\s*\"|“\s*”")
_MARKS_THAT_MEET = re.compile(
    r"[,;:](?:\s*[,;:])+|(?<=[,;:])\s*[,;:]|(?<=[.!?])\s*[,;:](?=\s|$)|[,;:]\s*(?=[.!?](?:\s|$))"
)
_SHOUT = re.compile(r"([!?])[!?]+")
_FIRST_MARKS = re.compile(r"^(?P<blank>\s*)[,;:.!?]+(?=\s)")


@dataclass(frozen=True)
class Speakable:
    """`pieces`, in order: what was written, joined, is the whole input, and what is spoken, joined, is `text`."""

    pieces: tuple[Piece, ...]

    @cached_property
    def text(self) -> str:
        return "".join(piece.spoken for piece in self.pieces)


def speakable(written: str, language: str) -> Speakable:
    """`language` as in ISO 639-1, a region behind it does no harm. A blank at either end stays one.

    Said of its own `text`, it changes nothing.
    """
    readings = _READINGS.get(language.partition("-")[0].lower())
    rewriting = Rewriting(written)
    for _ in range(MAX_ROUNDS):
        before = rewriting.text
        strip_markup(rewriting)
        if readings is not None:
            rewriting.edit(readings(rewriting.text))
        _clean(rewriting, _KEPT_MARKS if readings is not None else _KEPT_MARKS | _KEPT_SIGNS)
        if rewriting.text == before:
            break
    return Speakable(rewriting.pieces())


def _clean(rewriting: Rewriting, kept: frozenset[str]) -> None:
    """Only letters, digits, blanks and marks that a voice hears are left."""
    text = rewriting.text
    edits: list[Edit] = []
    for i, char in enumerate(text):
        if char.isalnum() or char.isspace() or char in kept or unicodedata.category(char)[0] in "LMN":
            continue
        is_between = 0 < i < len(text) - 1 and text[i - 1].isalnum() and text[i + 1].isalnum()
        edits.append((i, i + 1, " " if is_between else ""))
    rewriting.edit(edits)
    rewriting.sub(_BLANKS, " ")
    rewriting.sub(_EMPTY_BRACKETS, "")
    rewriting.sub(_BLANK_BEFORE_MARK, "")
    rewriting.sub(_SHOUT, lambda m: m[1])
    rewriting.sub(_BLANKS, " ")
