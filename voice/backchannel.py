"""Whether what a caller says over the agent only tells that he listens. Pure.

A backchannel is short and made of words that ask for nothing ("mm-hm", "네"); whoever says more, or anything else,
wants the turn. To a question even they are an answer. Spelled as Whisper spells them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_WORDS = 3
COMMON = ("hm", "hmm", "mm", "mmm", "mhm", "mm-hm", "mm-hmm", "mmhmm", "uh", "uh-huh", "uhuh", "ah", "oh", "eh")
PHRASES = {
    "en": (
        *("yeah", "yep", "yes", "yup", "okay", "ok", "right", "sure", "alright", "all right", "i see", "got it"),
        *("good", "great", "cool", "nice", "really", "wow", "of course", "true", "exactly", "go on", "fine"),
    ),
    "ko": (
        *("네", "예", "응", "어", "음", "아", "오", "아네", "아 네", "네네", "네 네", "그래", "그래요", "그렇군요"),
        *("그렇죠", "그쵸", "맞아", "맞아요", "알겠어요", "알겠습니다", "좋아요", "정말요", "진짜요"),
    ),
}
_NO_WORD = re.compile(r"[^\w\s-]+")
_QUESTION = re.compile(r"[?？]['\"”’)\]]*\s*$")


class Backchannels:
    """Of one language; `extra`: further phrases that take no turn."""

    def __init__(self, language: str, extra: Iterable[str] = ()) -> None:
        known = (*COMMON, *PHRASES.get(language.split("-")[0], ()), *extra)
        self._phrases = sorted({tuple(_words(phrase)) for phrase in known}, key=len, reverse=True)

    def match(self, text: str) -> bool:
        """Nothing but backchannels, if only a few; no words at all count as one."""
        words = _words(text)
        if len(words) > MAX_WORDS:
            return False
        at = 0
        while at < len(words):
            found = [phrase for phrase in self._phrases if tuple(words[at : at + len(phrase)]) == phrase]
            if not found:
                return False
            at += len(found[0])
        return True


def is_phrase(text: str) -> bool:
    """Whether it can be one."""
    return 0 < len(_words(text)) <= MAX_WORDS


def asks(text: str) -> bool:
    """What the agent has said so far ends with a question."""
    return _QUESTION.search(text) is not None


def _words(text: str) -> list[str]:
    return _NO_WORD.sub(" ", text.casefold()).split()
