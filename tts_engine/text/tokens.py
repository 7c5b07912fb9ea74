"""What the parts of a text are said as, each with its place in the text. Pure; works on any Unicode text.

Rules are tried in order at each position; the first that matches and answers with words, wins. What no rule knows,
such as emoji, markup and quotes, is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tts_engine.text import numbers, numeric
from tts_engine.text.words import (
    ABBREVIATIONS,
    ALSO_WORDS,
    BEFORE_DIGITS,
    BEFORE_LETTER,
    BEFORE_NUMBER,
    COMPARISONS,
    DOTTED,
    IN_ADDRESSES,
    MONTH_ABBREVIATIONS,
    MONTHS,
    PER,
    SYMBOLS,
    TITLES,
    WEEKDAYS,
)

MAX_TOKEN_CHARACTERS = 48  # what is longer is cut there, which bounds what one word can cost

PAUSE = ","  # may stand between spoken words, as in telephone numbers


@dataclass(frozen=True)
class Said:
    """`words`: what characters `start` to `end` are said as. A single capital letter stands for its name."""

    words: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """Punctuation that is heard: one of , ; : . ! ?"""

    mark: str
    start: int


Token: TypeAlias = Said | Mark
Rule: TypeAlias = Callable[[re.Match[str], "list[Token]"], "list[str] | None"]

_MARKS = {
    **{c: c for c in ",;:.!?"},
    **dict.fromkeys("…。．", "."),
    **dict.fromkeys("—–、，()（）[]{}", ","),
    "！": "!",
    "？": "?",
    "：": ":",
    "；": ";",
    "¿": ",",
    "¡": ",",
}
_DROPPED = re.compile(
    r"""\]\([^)\s]*\)            # the target of a Markdown link
      | </?[A-Za-z][^<>]{0,80}>  # a tag
      | ^[ \t]*(?:\#{1,6}|[-*>]|\+(?=[ \t]+[^\W\d])|-{3,})[ \t]+  # heading, bullet, quotation, rule
      | \*{2,} | (?<=\S)\*+ | \*(?=[^\W\d]) | [_`]+ | ~~+ | ~(?![$€£]?[0-9]) | \[ (?=[^\]\n]{1,200}\]\()
    """,
    re.VERBOSE | re.MULTILINE,
)
_SPACED_DASH = re.compile(r"(?<=\s)-{1,3}(?=\s)|--+")
_NEWLINE = re.compile(r"\s*\n\s*")
# What most of a text is made of, and no other rule knows: spares it fifty patterns.
_PLAIN_WORD = re.compile(r"(?:(?<=[ (\"“])|(?<!.))[A-Za-z][a-z]{2,23}(?=[ ,;!?])", re.DOTALL)
_NOT_PLAIN = frozenset({"mrs", "etc", *WEEKDAYS, *MONTH_ABBREVIATIONS})
_BEFORE_NUMERIC = frozenset("0123456789.+-−($€£¥₩₹UEGJKI")
# Behind an abbreviation's point: the sentence goes on.
_GOES_ON = re.compile(r"\.(?=\s*[a-z0-9,;:)$]|\s+&)")
_CAPITALISED = re.compile(r"\.?\s+[A-Z]")


def tokenise(text: str) -> list[Token]:
    """In order; spans lie within the text and do not overlap."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        at = _step(text, at, tokens)
    return tokens


def _step(text: str, at: int, tokens: list[Token]) -> int:
    if text[at] in " \t":
        return at + 1
    if match := _DROPPED.match(text, at):
        return match.end()
    if match := _NEWLINE.match(text, at):
        tokens.append(Mark(".", at))
        return match.end()
    if match := _SPACED_DASH.match(text, at):
        tokens.append(Mark(",", at))
        return match.end()
    if (match := _PLAIN_WORD.match(text, at)) and match[0].lower() not in _NOT_PLAIN:
        tokens.append(Said((match[0],), at, match.end()))
        return match.end()
    for pattern, rule in _RULES if text[at] in _BEFORE_NUMERIC else _RULES_OF_WORDS:
        match = pattern.match(text, at, min(len(text), at + MAX_TOKEN_CHARACTERS))
        if match and match.end() > at and (words := rule(match, tokens)) is not None:
            end = match.end()
            while end > at + 1 and text[end - 1] in " \t":
                end -= 1
            if words:
                tokens.append(Said(tuple(words), at, end))
            return end
    if (mark := _MARKS.get(text[at])) is not None:
        tokens.append(Mark(mark, at))
    return at + 1


def _address(match: re.Match[str], _: list[Token]) -> list[str]:
    """A URL or an e-mail address, as one would say it on the telephone."""
    address = re.sub(r"^https?://", "", match[0], flags=re.IGNORECASE).rstrip("/")
    words: list[str] = []
    for part in re.findall(r"[A-Za-z]+|[0-9]+|.", address):
        if part.lower() == "www":
            words += ["W", "W", "W"]
        elif part[0].isascii() and part[0].isdigit():
            words += numeric.code_digits(part)
        elif part in IN_ADDRESSES:
            words += IN_ADDRESSES[part].split()
        elif part[0].isalpha():
            words += [part.upper()] if len(part) == 1 else [part.lower()]
    return words


def _dotted(match: re.Match[str], _: list[Token]) -> list[str]:
    """Letters with points between: e.g., U.S., p.m."""
    letters = match[0].rstrip(".")
    if (said := DOTTED.get(letters.lower())) is not None:
        return said.split()
    return [c.upper() for c in letters if c != "."]


def _abbreviation(match: re.Match[str], tokens: list[Token]) -> list[str] | None:
    key, text, end = match["abbr"].lower(), match.string, match.end("abbr")
    if key not in ABBREVIATIONS:
        return None
    follows = text[end + 1 : end + 8].lstrip()
    if key == "no" and not follows[:1].isdigit():
        return None
    if key in ALSO_WORDS and key not in TITLES and not (follows[:1].isdigit() or follows[:1].islower()):
        return None
    before = tokens[-1] if tokens else None
    named = isinstance(before, Said) and (text[before.start].isupper() or text[before.start].isdigit())
    if key in ("st", "dr") and named and not _CAPITALISED.match(text, end):
        return ["street" if key == "st" else "drive"]
    return ABBREVIATIONS[key].split()


def _title(match: re.Match[str], _: list[Token]) -> list[str]:
    return ABBREVIATIONS[match[0].lower()].split()


def _initials(match: re.Match[str], _: list[Token]) -> list[str]:
    return [word for c in match[0] for word in (["and"] if c == "&" else [c])]


def _initial(match: re.Match[str], tokens: list[Token]) -> list[str] | None:
    """The F of John F. Kennedy, with its point; not the B of plan B, nor the M of P M."""
    before, text = tokens[-1] if tokens else None, match.string
    if isinstance(before, Said):
        last = text[before.start : before.end]
        if before.words[-1].lower() in BEFORE_LETTER or (len(last) == 1 and last.isupper()):
            return None
    return [match[0][0]]


def _reference(match: re.Match[str], tokens: list[Token]) -> list[str] | None:
    """A PIN, an order number: digit by digit."""
    said = [*tokens[-6:]]
    while said and (said[-1].mark == ":" if isinstance(said[-1], Mark) else said[-1].words[-1].lower() in _BETWEEN):
        said.pop()
    if not said or isinstance(said[-1], Mark):
        return None
    key = said[-1].words[-1].lower()
    between = tokens[len(tokens) - min(6, len(tokens)) + len(said) :]
    is_numbered = any(isinstance(token, Said) and token.words[-1] == "number" for token in between)
    return numbers.digits(match[0]) if key in BEFORE_DIGITS or (key in BEFORE_NUMBER and is_numbered) else None


def _month(match: re.Match[str], _: list[Token]) -> list[str]:
    return [MONTH_ABBREVIATIONS[match["month"].lower()]]


def _weekdays(match: re.Match[str], _: list[Token]) -> list[str]:
    return [WEEKDAYS[match["from"].lower()], "to", WEEKDAYS[match["to"].lower()]]


def _per(match: re.Match[str], _: list[Token]) -> list[str]:
    return ["per", *PER[match["per"].lower()].split()]


def _comparison(match: re.Match[str], _: list[Token]) -> list[str]:
    return COMPARISONS[match[0]].split()


def _fixed(words: str) -> Rule:
    return lambda match, tokens: words.split()


def _hash(match: re.Match[str], tokens: list[Token]) -> list[str]:
    """A key of the telephone, or the number of something."""
    before = tokens[-1] if tokens else None
    if not match.string[match.end() : match.end() + 1].isalnum():
        is_key = isinstance(before, Said) and before.words[-1].lower() in _BEFORE_KEYS
        return ["pound" if is_key else "number"]
    return ["number"] if match.string[match.end() : match.end() + 1].isdigit() else ["hashtag"]


def _word(match: re.Match[str], tokens: list[Token]) -> list[str]:
    word = match[0].replace("’", "'")
    if len(word) == 1 and word.isupper():
        # "A" that begins a sentence is the article, elsewhere the letter. "I" is the same either way.
        begins = not tokens or (isinstance(tokens[-1], Mark) and tokens[-1].mark in ".!?")
        return ["a"] if word == "A" and begins and match.string[match.end() : match.end() + 1] == " " else [word]
    return [word]


def _symbol(match: re.Match[str], _: list[Token]) -> list[str]:
    return SYMBOLS[match[0]].split()


def _to(match: re.Match[str], _: list[Token]) -> list[str]:
    return ["to"]


def _day(match: re.Match[str], tokens: list[Token]) -> list[str] | None:
    """The number behind the name of a month."""
    before = tokens[-1] if tokens else None
    if not isinstance(before, Said) or before.words[-1].lower() not in MONTHS or not 1 <= int(match[0]) <= 31:
        return None
    return numeric.day(match[0])


_LETTER = r"(?:[^\W\d_][\u0300-\u036f]*)"
_TOP_DOMAIN = r"(?:com|org|net|io|ai|edu|gov|co\.uk|app|dev)"
_ADDRESS_PATTERNS = (
    r"[A-Za-z0-9_.+-]{1,32}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    r"(?:https?://|www\.)[^\s<>()\[\]\"]*[A-Za-z0-9/_-]",
    rf"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.{_TOP_DOMAIN}(?![\w-])(?:/[A-Za-z0-9/_.#?=&%-]*[A-Za-z0-9/_-])?",
)
# Between amounts, percentages, hours: what stands on either side tells it from a minus and from an order number.
_RANGE_DASH = (
    r"(?:(?<=[0-9])\s?[-–—]\s?(?=[$€£¥₩₹][0-9])"
    r"|(?:(?<=[0-9][%°])|(?<=[0-9][ap]m)|(?<=[0-9]\s[ap]m)|(?<=[ap]\.m\.))\s?[-–—]\s?(?=[0-9])"
    r"|(?<=:[0-5][0-9])\s?[-–—]\s?(?=[0-9]{1,2}:[0-5][0-9]))"
)
_BETWEEN = frozenset({"is", "was", "number", "numbers", "in", "the", "digits", "four", "last", "no"})
_BEFORE_KEYS = frozenset({"press", "dial", "hit", "enter", "or", "the", "then", "by", "and", "with"})
_DAY_NAME = "|".join(WEEKDAYS)
_TITLED = "|".join(("mr", "mrs", "ms", "dr", "vs", "etc"))

_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    *((re.compile(pattern, re.IGNORECASE), _address) for pattern in _ADDRESS_PATTERNS),
    (re.compile(r"(?:e\.g|i\.e|a\.k\.a|ph\.d)\.?(?!\w)", re.IGNORECASE), _dotted),
    (re.compile(rf"(?<!\w)(?:[A-Za-z]\.)+[A-Za-z](?!\w)(?:{_GOES_ON.pattern})?"), _dotted),
    (re.compile(r"(?<=[\w)])\^2(?!\w)"), _fixed("squared")),
    (re.compile(r"(?<=[\w)])\^3(?!\w)"), _fixed("cubed")),
    (re.compile(r"(?<=[\w)])\^(?=[-\w(])"), _fixed("to the power of")),
    (re.compile(r"C#(?!\w)"), _fixed("C sharp")),
    (re.compile(r"\.NET(?!\w)"), _fixed("dot NET")),
    (
        re.compile(rf"(?:(?<=[0-9%€원])|(?<=[0-9]\s(?:USD|EUR|GBP)))/\s?(?P<per>{'|'.join(PER)})(?!\w)", re.IGNORECASE),
        _per,
    ),
    (re.compile(r"(?<!\w)w/o(?!\w)"), _fixed("without")),
    (re.compile(r"(?<!\w)w/(?!\w)"), _fixed("with")),
    (re.compile(r"(?<=[0-9]\s)[x*](?=\s[0-9])"), _fixed("times")),
    (re.compile(r"(?:[<>]=?|[≤≥~≈±])(?=\s?[-−]?[$€£]?\.?[0-9])"), _comparison),
    (
        re.compile(
            rf"(?P<from>{_DAY_NAME})\.?\s?[-–—]\s?(?P<to>{_DAY_NAME})(?!\w)(?:{_GOES_ON.pattern})?", re.IGNORECASE
        ),
        _weekdays,
    ),
    (
        re.compile(
            rf"(?P<month>{'|'.join(MONTH_ABBREVIATIONS).title()})\.?(?=\s(?:[0-9]{{1,2}}(?:st|nd|rd|th)?|[0-9]{{4}})(?!\w))"
        ),
        _month,
    ),
    (re.compile(_RANGE_DASH, re.IGNORECASE), _to),
    *numeric.RULES,
    (re.compile(r"[0-9]{3,24}(?!\w|[.,][0-9])"), _reference),
    (re.compile(r"[0-9]{1,2}(?!\w)"), _day),
    (numeric.CODE, numeric.code),
    (numeric.PLAIN, numeric.number),
    (
        re.compile(r"(?P<abbr>mr|mrs|ms|dr|vs|prof|rev|gen|sgt|capt|lt|col|gov|sen|rep|st|no)\.", re.IGNORECASE),
        _abbreviation,
    ),
    (re.compile(rf"(?P<abbr>[A-Za-z]{{2,6}})(?:{_GOES_ON.pattern}|(?=\.(?!\w)))"), _abbreviation),
    (re.compile(rf"(?<!/)(?:{_TITLED})(?![\w'’.])", re.IGNORECASE | re.ASCII), _title),
    (re.compile(r"(?<![\w.])[A-HJ-Z]\.(?=\s?[A-Z][\w.])"), _initial),
    (re.compile(r"[A-Z]{1,3}&[A-Z]{1,3}(?!\w)"), _initials),
    (re.compile("[" + re.escape("".join(SYMBOLS)) + "]"), _symbol),
    (re.compile(rf"{_LETTER}+(?:['’-]{_LETTER}+)*['’]?(?!\w)|{_LETTER}+"), _word),
    (re.compile(r"#(?=[A-Za-z0-9]|[\s.,;:!?]|$)"), _hash),
)
_RULES_OF_WORDS = tuple(rule for rule in _RULES if rule not in numeric.RULES)
