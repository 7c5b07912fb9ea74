"""Cuts the model's token stream into units to speak. Pure; the units joined are the input.

The first unit decides when the caller hears something, so it is short: it ends at the first clause mark or Korean
clause ending that has at least `MIN_FIRST_WORDS` words before it, after `MAX_FIRST_WORDS` words, or when `due` says the
time is up. Later units are sentences and lines, because a voice needs a whole one for its melody, unless they are due;
a long sentence ends at the last clause mark, else conjunction, else word, before `MAX_UNIT_CHARACTERS`.

Nothing is cut that is said in one breath (3:30 p.m., Dr. Smith, Nov 30, 2026, a quotation, an address): `voice.breaks`
knows. Where units end depends on the text and on `due` alone, never on how the stream was cut into deltas: a border
that the next characters could still move waits for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from voice import breaks

MIN_FIRST_WORDS = 2  # "Yes, " alone sounds clipped and saves one word of synthesis, about 4 ms
MAX_FIRST_WORDS = 8  # first audio in about 40 ms for 8 words: docs/measurements.md
CHARACTERS_PER_WORD_CJK = 3
MAX_FIRST_CHARACTERS = 60  # for text without spaces, such as "1-2-3-4-5"
GOOD_UNIT_CHARACTERS = 40  # before this a long sentence is not cut at a clause
MAX_UNIT_CHARACTERS = 160  # about 10 s of speech; a character without spaces around counts three
_CJK_LENGTH = 3

_FENCE = re.compile(r"^[ \t]*```[\w+#.-]*[ \t]*$", re.MULTILINE)  # of code, with its language
_NO_SPACES = re.compile(r"[぀-ヿ㐀-鿿가-힯]")


def count_words(text: str) -> int:
    """Words that are heard; of Korean, Chinese and Japanese, characters."""
    return max(_counted(text), default=0)


def _counted(text: str) -> Iterator[int]:
    """With every character, how many words have begun."""
    num_words = num_cjk = 0
    in_word = False
    for char in text:
        if _NO_SPACES.match(char):
            num_cjk += 1
            in_word = False
        elif char.isspace():
            in_word = False
        elif not in_word and char.isalnum():
            num_words += 1
            in_word = True
        yield num_words + num_cjk // CHARACTERS_PER_WORD_CJK


def _is_heard(text: str) -> bool:
    return any(map(str.isalnum, _FENCE.sub("", text)))


def length(text: str) -> int:
    """Characters; one without spaces around counts three."""
    return len(text) + (_CJK_LENGTH - 1) * len(_NO_SPACES.findall(text))


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

    def due(self, min_words: int = 0) -> str | None:
        """Time is up for the next unit: the whole words there are, if so many."""
        ends = [end for end in breaks.words(self._pending) if _is_heard(self._pending[:end])]
        ends = [end for end in ends if count_words(self._pending[:end]) >= min_words]
        if not ends:
            return None
        return self._take(breaks.best(self._pending, ends))

    def finish(self) -> str | None:
        """What is left when the stream has ended."""
        return self._take(len(self._pending)) if self._pending else None

    def _take(self, end: int) -> str:
        unit, self._pending = self._pending[:end], self._pending[end:]
        if _is_heard(unit):
            self._is_first = False
        return unit

    def _cut(self) -> int | None:
        """The end of the first unit of what is pending, None while it is not known."""
        size = self._first_limit() if self._is_first else self._limit()
        window, is_full = self._pending[:size], size is not None
        for end, is_end in (breaks.clauses if self._is_first else breaks.sentences)(window):
            if is_end is False or not _is_heard(window[:end]):
                continue
            if is_end is None and not is_full:
                return None
            if is_end and (not self._is_first or self._may_open(window, end)):
                return end
        return self._cut_long(window) if is_full else None

    def _may_open(self, window: str, end: int) -> bool:
        return count_words(window[:end]) >= MIN_FIRST_WORDS or breaks.is_sentence(window, end)

    def _cut_long(self, window: str) -> int:
        """Somewhere in `window`, which no mark ends."""
        if not self._is_first:
            clauses = [end for end, is_end in breaks.clauses(window) if is_end]
            for ends in (clauses, breaks.conjunctions(window)):
                if good := [end for end in ends if length(window[:end]) >= GOOD_UNIT_CHARACTERS]:
                    return breaks.best(window, good)
        ends = [end for end in breaks.words(window) if _is_heard(window[:end])]
        return breaks.best(window, ends) if ends else breaks.run(window[:-1])

    def _first_limit(self) -> int | None:
        """Up to the beginning of the word that is one too many."""
        for i, num_words in enumerate(_counted(self._pending)):
            if num_words > MAX_FIRST_WORDS:
                return i + 1
            if (
                i == MAX_FIRST_CHARACTERS
                and not breaks.words(self._pending[: i + 1])
                and not breaks.is_address(self._pending[: i + 1])
            ):
                return i + 1
        return self._limit()

    def _limit(self) -> int | None:
        """Up to the character that is one too many."""
        if len(self._pending) <= MAX_UNIT_CHARACTERS // 3:
            return None
        length = 0
        for i, char in enumerate(self._pending):
            length += _CJK_LENGTH if _NO_SPACES.match(char) else 1
            if length > MAX_UNIT_CHARACTERS:
                return i + 1
        return None
