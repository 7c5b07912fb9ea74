"""Where spoken text may be parted: behind sentences, clauses and words, and where it must not. Pure.

A border behind a mark can depend on what follows it: "No. 5" and "No. Five". `None` says that it is not known yet.
Everything else looks only at what stands before the border, so that text that comes later changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tts_engine.text.words import (
    ABBREVIATIONS,
    ALSO_WORDS,
    BEFORE_LETTER,
    CURRENCY_CODES,
    MAGNITUDES,
    MONTH_ABBREVIATIONS,
    MONTHS,
    TITLES,
    UNITS,
    WEEKDAYS,
)

MIN_SOUND_WORDS = 3
MAX_ENCLOSED_CHARACTERS = 120  # a quotation or bracket that is longer holds nothing together

_CLOSER = "\"'”’)\\]»」』）》"
_CLOSERS = f"[{_CLOSER}]*"
_SENTENCE = rf"[.!?…]+{_CLOSERS}(?=\s)|[。！？｡]+{_CLOSERS}(?=[^。！？｡{_CLOSER}])|(?<=[가-힣])[.!?]+(?=[가-힣])|\n"
_CLAUSE = rf"[,;:]{_CLOSERS}(?=\s)|[、，；：]|(?<=\s)[-–—]+(?=\s)|[—](?=\w)"
# Endings of Korean clauses, with the blank behind them. Those that are nouns as well need the syllable before.
_CLAUSE_KO = (
    r"(?:지만|니까|는데|은데|인데|한데|던데|면서|으며|하며|아서|어서|여서|해서|셔서|려서|러서|라서|"
    r"하고|되고|있고|없고|이고|싶고|으면|하면|되면|시면|려면|다면|라면|신데|는데요)(?= )"
)
_SENTENCE_END = re.compile(_SENTENCE)
_ANY_END = re.compile(f"{_SENTENCE}|{_CLAUSE}|{_CLAUSE_KO}")
_LIST_NUMBER = re.compile(r"(?:^|\n)\s*[0-9]{1,3}[.)]$")
_BULLET = re.compile(r"(?:^|\n)\s*[-*+•–—#>]+$")
_DOTTED = re.compile(r"(?<![A-Za-z])(?P<letters>(?:[A-Za-z]\.)+[A-Za-z]|Ph\.D)\.$")
_EXPLAINING = frozenset({"e.g", "i.e", "a.k.a"})
_HALF_OF_DAY = frozenset({"a.m", "p.m"})
_BEHIND_TIMES = frozenset(
    {*WEEKDAYS, *WEEKDAYS.values(), *MONTHS, *MONTH_ABBREVIATIONS}
    | {"et", "est", "edt", "ct", "cst", "mt", "mst", "pt", "pst", "utc", "gmt", "eastern", "central", "pacific"}
)
_INITIAL = re.compile(r"(?:(?P<before>[A-Za-z]+)\s)?(?<![A-Za-z0-9'’])(?P<letter>[A-HJ-Z])\.$")
_LAST_WORD = re.compile(r"(?<![A-Za-z0-9'’])(?P<word>[A-Za-z]{2,6})\.$")
_LAST_NUMBER = re.compile(r"[0-9]\.$")
_MONTH = "|".join((*MONTHS, *MONTH_ABBREVIATIONS))
_DAY_OF_MONTH = re.compile(
    rf"(?:\b(?:{_MONTH})\.?\s[0-9]{{1,2}}(?:st|nd|rd|th)?|\b[0-9]{{1,2}}\s(?:{_MONTH})),$", re.IGNORECASE
)
# Before one of these stands always something that goes on.
_NEVER_ENDS = frozenset({"vs", "approx", "ext", "fig", "vol", "tel", "dept", "apt"})

_OPENERS = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "「": "」", "『": "』", "（": "）", "《": "》"}
_QUOTE = '"'

_WORD_BREAK = re.compile(r"\s+(?=\S)|\s+$")
_NUMBER = re.compile(r"[-−+(]*[$€£¥₩#]?[0-9][0-9.,:/()–—$€£-]*(?:st|nd|rd|th|%|°)?(?<![,:.])$", re.IGNORECASE)
_BEFORE_NUMBER = frozenset(
    {"$", "€", "£", "¥", "₩", "#", "+", "-", "~", "no.", "number", *map(str.lower, CURRENCY_CODES)}
)
_BEHIND_NUMBER = frozenset(
    {*UNITS, *MAGNITUDES.values(), *MONTHS, *MONTH_ABBREVIATIONS, *map(str.lower, CURRENCY_CODES)}
    | {
        "am",
        "pm",
        "a.m",
        "p.m",
        "o'clock",
        "percent",
        "degrees",
        "dollars",
        "dollar",
        "cents",
        "euros",
        "pounds",
        "won",
    }
    | {"x", "×", "-", "–", "million", "billion", "원", "시", "분", "명", "개", "일", "월", "년"}
)
# A voice that stops behind one of these sounds as if it had been cut off.
# fmt: off
_CLINGING = frozenset({
    "a", "an", "the", "my", "your", "our", "his", "her", "its", "their", "this", "that", "these", "those", "some",
    "any", "no", "every", "each", "to", "of", "in", "on", "at", "by", "for", "from", "with", "into", "onto", "over",
    "under", "about", "as", "than", "and", "or", "but", "if", "so", "because", "when", "while", "which", "who",
    "whose", "where", "i", "you", "we", "they", "he", "she", "it", "is", "are", "was", "were", "be", "been", "being",
    "am", "will", "would", "can", "could", "should", "may", "might", "must", "do", "does", "did", "have", "has",
    "had", "not", "very", "more", "most", "too", "also", "just", "i'm", "i'll", "i've", "you're", "you'll", "we're",
    "we'll", "it's", "that's", "there's", "let's", "don't", "이", "그", "저", "한", "두", "세", "네", "몇", "안",
    "못", "더", "가장", "매우", "아주", "잘", "꼭", "및", "또는", "혹은", "각",
})
# fmt: on
_CONJUNCTION = re.compile(
    r"\s(?=(?:and|but|or|so|because|which|who|where|when|while|although|though|unless|until|if|that|then)\s"
    r"|(?:그리고|하지만|그러나|그런데|그래서|따라서|또는|혹은|및)\s)",
    re.IGNORECASE,
)
_HIRAGANA_ENDS = re.compile(r"(?<=[ぁ-ん])(?=[ァ-ヿ㐀-鿿A-Za-z0-9])")
_BETWEEN_HAN = re.compile(r"(?<=[㐀-鿿])(?=[㐀-鿿])")
_NO_WORD = re.compile(r"[^\w']")
_ADDRESS = re.compile(r"://|www\.|@\w")


def sentences(text: str) -> Iterator[tuple[int, bool | None]]:
    """Ends of sentences and lines, and whether each is one; None when that depends on what follows."""
    for match in _SENTENCE_END.finditer(text):
        yield match.end(), _ends(text, match)


def clauses(text: str) -> Iterator[tuple[int, bool | None]]:
    """Ends of sentences, lines and clauses."""
    for match in _ANY_END.finditer(text):
        yield match.end(), _ends(text, match)


def is_sentence(text: str, end: int) -> bool:
    """A mark of a sentence stands before `end`, not only of a clause."""
    return any(found == end for found, _ in sentences(text))


def words(text: str) -> list[int]:
    """Where words end that need not be said with the next; the last one may not be whole yet."""
    ends = [
        m.end() for m in _WORD_BREAK.finditer(text) if text[: m.start()] and not _is_glued(text, m.start(), m.end())
    ]
    if ends:
        return ends
    return [m.end() for m in _HIRAGANA_ENDS.finditer(text)] or [m.end() for m in _BETWEEN_HAN.finditer(text)]


def conjunctions(text: str) -> list[int]:
    """Before what joins two clauses."""
    return [m.end() for m in _CONJUNCTION.finditer(text)]


def run(text: str) -> int:
    """Somewhere in text without blanks: behind its last character that is part of no word, else at its end."""
    return max((m.end() for m in _NO_WORD.finditer(text)), default=len(text))


def is_address(text: str) -> bool:
    return _ADDRESS.search(text) is not None


def best(text: str, ends: Sequence[int]) -> int:
    """The last one that is in no quotation or bracket and leaves no word hanging; else what comes nearest to that.

    For a word that hangs, no less than `MIN_SOUND_WORDS` are given: the next unit may take its time.
    """
    free = [end for end in ends if not is_enclosed(text, end)] or ends
    sound = [end for end in free if _last_word(text[:end]) not in _CLINGING]
    return max([end for end in sound if len(text[:end].split()) >= MIN_SOUND_WORDS] or free)


def is_enclosed(text: str, at: int) -> bool:
    """In a quotation or bracket that was opened not long ago on this line."""
    opened: list[tuple[str, int]] = []
    for i in range(text.rfind("\n", 0, at) + 1, at):
        char = text[i]
        if char == _QUOTE:
            is_closing = any(closer == _QUOTE for closer, _ in opened)
            if is_closing:
                while opened.pop()[0] != _QUOTE:
                    pass
            elif i == 0 or text[i - 1].isspace() or text[i - 1] in _OPENERS:
                opened.append((_QUOTE, i))
        elif char in _OPENERS and text[i - 1 : i] not in (":", ";"):  # a sad face
            opened.append((_OPENERS[char], i))
        elif any(closer == char for closer, _ in opened):
            while opened.pop()[0] != char:
                pass
    return any(at - since <= MAX_ENCLOSED_CHARACTERS for _, since in opened)


def _ends(text: str, match: re.Match[str]) -> bool | None:
    mark, end = match[0], match.end()
    if mark == "\n":
        return True
    if is_enclosed(text, end):
        return False
    following = text[end:].lstrip()
    before = text[: match.start()]
    if mark.endswith(".") and not mark.endswith(".."):
        return _ends_with_point(text[:end], following)
    if mark.endswith(("..", "…")):
        return not following[0].islower() if following else None
    if mark in ("，", "：") or mark[0] in "-–—":
        if not before.rstrip()[-1:].isdigit():
            return bool(before.strip()) and not _BULLET.search(text[:end])
        return not following[0].isdigit() if following else None
    if mark == "," and _DAY_OF_MONTH.search(text[:end]):
        return not following[0].isdigit() if following else None
    return True


def _begins_sentence(following: str) -> bool | None:
    """Behind 3 p.m.: a capital, and no Monday. None while the word may still become a name that goes on."""
    word = re.match(r"[A-Za-z]*", following)
    name = word[0].lower() if word else ""
    if not following or (name == following.lower() and any(each.startswith(name) for each in _BEHIND_TIMES)):
        return None
    return following[0].isupper() and name not in _BEHIND_TIMES


def _ends_with_point(before: str, following: str) -> bool | None:
    """`before` ends with a single point; `following` is what there is behind it, without blanks."""
    if _LIST_NUMBER.search(before):
        return False
    if dotted := _DOTTED.search(before):
        if dotted["letters"].lower() not in _HALF_OF_DAY:
            return False
        return _begins_sentence(following)
    if initial := _INITIAL.search(before):
        return (initial["before"] or "").lower() in BEFORE_LETTER
    if _LAST_NUMBER.search(before):
        return not following[0].isdigit() if following else None
    word = _LAST_WORD.search(before)
    key = word["word"].lower() if word else ""
    if key not in ABBREVIATIONS:
        return True
    if key in _NEVER_ENDS or (key in TITLES and key not in ALSO_WORDS):
        return False
    if not following:
        return None
    if key == "no":
        return not following[0].isdigit()
    return not (following[0].isdigit() or following[0].islower() or following[0] in ",;:)&")


def _leads_on(before: str) -> bool:
    """`before` ends with an abbreviation that is nothing without the next word."""
    if dotted := _DOTTED.search(before):
        return dotted["letters"].lower() in _EXPLAINING
    if initial := _INITIAL.search(before):
        return (initial["before"] or "").lower() not in BEFORE_LETTER
    word = _LAST_WORD.search(before)
    key = word["word"].lower() if word else ""
    return key in _NEVER_ENDS or (key in TITLES and key not in ALSO_WORDS)


def _is_glued(text: str, start: int, end: int) -> bool:
    """The words around the blank from `start` to `end` are said as one, or may be: the second is not whole."""
    before, after = text[:start], text[end:]
    left = before.split()[-1] if before.split() else ""
    whole = re.match(r"\S*(?=\s)", after)
    right = (whole[0] if whole else after).strip("\"'”’)(.,;:!?").lower()
    starts_with_digit = right[:1].isdigit() or right[:1] in ("$", "€", "£", "¥", "₩", "+")
    key = left.lower().lstrip("(\"'“‘[")
    if _LIST_NUMBER.search(before) or _BULLET.search(before):
        return True
    if _NUMBER.match(left):
        return whole is None or right[:1].isdigit() or right in _BEHIND_NUMBER
    if key in _BEFORE_NUMBER or key.rstrip(".") in (*MONTHS, *MONTH_ABBREVIATIONS) or _DAY_OF_MONTH.search(before):
        return not right or starts_with_digit
    return left.endswith(".") and _leads_on(before)


def _last_word(text: str) -> str:
    found = text.split()
    return found[-1].lower().strip("\"'“”‘’(*_") if found else ""
