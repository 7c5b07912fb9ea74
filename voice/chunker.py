"""Cuts the model's token stream into units to speak. Pure; the units joined are the input.

The first unit decides when the caller hears something, so it is short: it ends at the first clause mark that has at
least `MIN_FIRST_WORDS` words before it, or after `MAX_FIRST_WORDS` words, or when `due` says the time is up. Later
units are sentences: a voice needs a whole one for its melody. Korean and other scripts without spaces count
characters instead of words.
"""

from __future__ import annotations

import re

MIN_FIRST_WORDS = 2  # "Yes, " alone sounds clipped and saves one word of synthesis, about 4 ms
MAX_FIRST_WORDS = 8  # first audio in about 40 ms for 8 words: docs/measurements.md
CHARACTERS_PER_WORD_CJK = 3
MAX_FIRST_CHARACTERS = 60  # for text without spaces, such as "1-2-3-4-5"
MAX_UNIT_CHARACTERS = 240

# A mark ends a clause only with a space or a closing quote behind it: "3.50" and "e.g.," go on.
_CLAUSE_END = re.compile(r"[,;:.!?…]+[\"')\]]*(?=\s)|[、。，！？；：]|\s[-–—]+(?=\s)|\n")
_SENTENCE_END = re.compile(r"[.!?…]+[\"')\]]*(?=\s)|[。！？]|\n")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|vs|etc|No|approx|Inc|Ltd|Co|e\.g|i\.e|a\.m|p\.m))\.$"
)
_NO_WORD = re.compile(r"[^\w']")
_CJK = re.compile(r"[぀-ヿ㐀-鿿가-힯]")


def count_words(text: str) -> int:
    cjk = len(_CJK.findall(text))
    return len(_CJK.sub(" ", text).split()) + cjk // CHARACTERS_PER_WORD_CJK


class Chunker:
    def __init__(self) -> None:
        self._pending = ""
        self._is_first = True

    def push(self, delta: str) -> list[str]:
        """Units that `delta` completes, in order."""
        self._pending += delta
        units = []
        while (end := self._cut()) is not None:
            units.append(self._take(end))
        return units

    def due(self) -> str | None:
        """Time is up for the first unit: the whole words there are, if any."""
        end = _last_break(self._pending, otherwise=0)
        if not self._is_first or not self._pending[:end].strip():
            return None
        return self._take(end)

    def finish(self) -> str | None:
        """What is left when the stream has ended."""
        return self._take(len(self._pending)) if self._pending else None

    def _take(self, end: int) -> str:
        unit, self._pending = self._pending[:end], self._pending[end:]
        if unit.strip():
            self._is_first = False
        return unit

    def _cut(self) -> int | None:
        pattern = _CLAUSE_END if self._is_first else _SENTENCE_END
        for match in pattern.finditer(self._pending):
            unit = self._pending[: match.end()]
            if _ABBREVIATION.search(unit):
                continue
            if not self._is_first or count_words(unit) >= MIN_FIRST_WORDS or _SENTENCE_END.match(match[0] + " "):
                return match.end()
        if self._is_first and count_words(self._pending) > MAX_FIRST_WORDS:
            return self._pending.rfind(" ") + 1 or None
        limit = MAX_FIRST_CHARACTERS if self._is_first else MAX_UNIT_CHARACTERS
        return _last_break(self._pending[:limit], otherwise=limit) if len(self._pending) > limit else None


def _last_break(text: str, otherwise: int) -> int:
    """After the last space, else after the last character that is part of no word, else `otherwise`."""
    return text.rfind(" ") + 1 or max((m.end() for m in _NO_WORD.finditer(text)), default=otherwise)
