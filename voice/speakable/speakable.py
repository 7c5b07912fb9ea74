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

MIN_HANGUL = 4  # fewer may be the 원 of an English sentence
MIN_LATIN_WORDS = 2  # fewer may be a name
MAX_ROUNDS = 4  # until nothing changes; what one pass has left may be markup once it stands alone

_READINGS: Mapping[str, Callable[[str], list[Edit]]] = {"en": english.readings, "ko": korean.readings}
_KEPT_MARKS = frozenset(".,;:!?'\"“”‘’«»()-–—¿¡…、。，！？；：「」『』（）《》〈〉·・‐‑")
_KEPT_SIGNS = frozenset("/&%+=@#$€£¥₩₹°℃℉×÷<>~№§±©")  # where numbers and addresses are left to the voice
_HANGUL, _LATIN = re.compile("[가-힣]"), re.compile("[A-Za-z]")
_LATIN_WORD = re.compile(r"(?<!\S)[A-Za-z']{2,}[.,;:!?]*(?!\S)")
_SCHEME = re.compile(r"(?:https?://)+(?:www\.)?", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=www)\.(?=\w)", re.IGNORECASE)  # right behind a word of another script
_BLANKS = re.compile(r"\s{2,}|[^\S ]")
_BLANK_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?…、。，！？；：](?:\s|$))")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|（\s*）|\"\s*\"|“\s*”")
_SHOUT = re.compile(r"([!?])[!?]+")


@dataclass(frozen=True)
class Speakable:
    """`pieces`, in order: what was written, joined, is the whole input, and what is spoken, joined, is `text`."""

    pieces: tuple[Piece, ...]

    @cached_property
    def text(self) -> str:
        return "".join(piece.spoken for piece in self.pieces)


def speakable(written: str, language: str) -> Speakable:
    """`language` of the call as in ISO 639-1, a region behind it does no harm. A blank at either end stays one.

    Said of its own `text`, it changes nothing.
    """
    rewriting = Rewriting(written)
    for _ in range(MAX_ROUNDS):
        before = rewriting.text
        strip_markup(rewriting)
        readings = _READINGS.get(_language_of(rewriting.text, language.partition("-")[0].lower()))
        if readings is not None:
            rewriting.edit(readings(rewriting.text))
            rewriting.sub(_IN_ADDRESS, " ")
        else:
            rewriting.sub(_SCHEME, "")
        _clean(rewriting, _KEPT_MARKS if readings is not None else _KEPT_MARKS | _KEPT_SIGNS)
        if rewriting.text == before:
            break
    return Speakable(rewriting.pieces())


def _language_of(text: str, language: str) -> str:
    """Korean is known by its script, also in a call in another language; without it a Korean call speaks English."""
    num_hangul = len(_HANGUL.findall(text))
    if num_hangul >= MIN_HANGUL and num_hangul > len(_LATIN.findall(text)):
        return "ko"
    return (
        "en" if language == "ko" and not num_hangul and len(_LATIN_WORD.findall(text)) >= MIN_LATIN_WORDS else language
    )


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
