"""Cuts the text of one utterance, as it streams in, into units to synthesise. Pure; the units joined are the text.

A unit ends at the end of a sentence, at a flush, or, when neither comes, at `MAX_UNIT_CHARACTERS`: behind the last
clause mark before it, else the last blank, else there. Where units end depends on the text and the flushes alone,
never on how the text was cut into deltas, so the same text sounds the same again.

A sentence end is only known with the blank behind it: "3." may become "3.50". Until then, or a flush, it waits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tts_engine.text.words import ABBREVIATIONS, ALSO_WORDS, TITLES

MAX_UNIT_CHARACTERS = 200  # about 35 words or 12 s: one pass of the encoder then takes about 100 ms on one core

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]|\n")
_CLAUSE_END = re.compile(r"[,;:)\]—–](?=\s)|[、，；：]")
_LAST_WORD = re.compile(r"([A-Za-z]+)\.$")
_DOTTED = re.compile(r"(?:^|[^A-Za-z])(?:[A-Za-z]\.)+$")  # e.g., U.S., the initial of a name


@dataclass(frozen=True)
class Unit:
    """`start`: its first character's index in the utterance's whole text."""

    text: str
    start: int


class Segmenter:
    def __init__(self) -> None:
        self._pending = ""
        self._start = 0

    def push(self, delta: str) -> list[Unit]:
        """Units that `delta` completes, in order."""
        text, at, units = self._pending + delta, 0, []
        while (size := _cut(text[at : at + MAX_UNIT_CHARACTERS + 1])) is not None:
            units.append(Unit(text[at : at + size], self._start + at))
            at += size
        self._pending, self._start = text[at:], self._start + at
        return units

    def flush(self) -> Unit | None:
        """What is left, if anything."""
        if not self._pending:
            return None
        unit = Unit(self._pending, self._start)
        self._pending, self._start = "", self._start + len(unit.text)
        return unit


def _cut(window: str) -> int | None:
    """How many characters of `window` are a unit, None when that depends on text that is still to come."""
    for match in _SENTENCE_END.finditer(window, 0, MAX_UNIT_CHARACTERS + 1):
        if match.end() > MAX_UNIT_CHARACTERS:
            break
        ends = _ends_sentence(window, match.end())
        if ends is None and len(window) <= MAX_UNIT_CHARACTERS:
            return None
        if ends:
            return match.end()
    if len(window) <= MAX_UNIT_CHARACTERS:
        return None
    clauses = [m.end() for m in _CLAUSE_END.finditer(window) if m.end() <= MAX_UNIT_CHARACTERS]
    if clauses:
        return clauses[-1]
    return window.rfind(" ", 0, MAX_UNIT_CHARACTERS) + 1 or MAX_UNIT_CHARACTERS


def _ends_sentence(window: str, end: int) -> bool | None:
    """Whether a sentence ends with the mark before `end`; None when the next word must be seen first."""
    before = window[:end]
    if not before.endswith("."):
        return True
    if _DOTTED.search(before):
        return False
    word = _LAST_WORD.search(before)
    key = word[1].lower() if word else ""
    if key == "no":  # "No. 5" and "No. Five is enough."
        following = window[end:].lstrip()
        return None if not following else not following[0].isdigit()
    return key not in ABBREVIATIONS or (key in ALSO_WORDS and key not in TITLES)
