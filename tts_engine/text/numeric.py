"""Rules for what contains digits: money, times, dates, telephone numbers, measures, codes. Pure.

A rule answers with the words of its match, or None when the match is something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tts_engine.text import numbers
from tts_engine.text.words import (
    CURRENCIES,
    CURRENCY_CODES,
    DENOMINATORS,
    MAGNITUDES,
    MONTH_ABBREVIATIONS,
    MONTHS,
    UNITS,
)

_PAUSE = ","
_AMOUNT = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,24})(?:\.[0-9]{1,12})?"
_NOT_IN_WORD = r"(?<![\w])"
_LETTER_UNITS = frozenset("msghlLWV")  # another case is another thing
_TIGHT_UNITS = frozenset({"in"})  # a word elsewhere: only right behind the number

PLAIN = re.compile(rf"(?P<minus>(?<![\w)])[-−](?=[0-9]))?(?:{_AMOUNT}|\.[0-9]{{1,12}})(?!\w)|[0-9]{{1,24}}")
CODE = re.compile(r"(?=[A-Za-z0-9]{0,23}[0-9])(?=[A-Za-z0-9]{0,23}[A-Za-z])[A-Za-z0-9]{2,24}")

Words = Sequence[object]  # the tokens before; these rules do not look at them


def number(match: re.Match[str], _: Words) -> list[str]:
    value = match[0].lstrip("-−")
    minus = ["minus"] if match["minus"] else []
    return [*minus, *(numbers.decimal(value)[1:] if value.startswith(".") else numbers.plain(value))]


def day(text: str) -> list[str]:
    return numbers.ordinal(text)


def code_digits(text: str) -> list[str]:
    """Digits of a code: two at most are a number, as in MP3 and A12."""
    return numbers.cardinal(text) if len(text) <= 2 and text[0] != "0" else numbers.digits(text)


def code(match: re.Match[str], _: Words) -> list[str]:
    """Letters and digits mixed."""
    words: list[str] = []
    for part in re.findall(r"[0-9]+|[A-Za-z]+", match[0]):
        if part.isdigit():
            words += code_digits(part)
        elif part.isupper() or len(part) <= 2:
            words += list(part.upper())
        else:
            words.append(part)
    return words


def _money(match: re.Match[str], _: Words) -> list[str]:
    one, many, cent, cents = CURRENCIES[match["currency"]]
    minus = ["minus"] if match["minus"] else []
    amount, magnitude = match["amount"].replace(",", ""), match["letter"] or match["magnitude"]
    whole, _point, fraction = amount.partition(".")
    if magnitude:
        return [*minus, *numbers.decimal(amount), MAGNITUDES.get(magnitude.lower(), magnitude.lower()), many]
    if fraction and (len(fraction) != 2 or cent is None or cents is None):
        return [*minus, *numbers.decimal(amount), many]
    words = [*minus]
    hundredths = int(fraction or 0)
    if int(whole or 0) or not hundredths:
        words += [*numbers.cardinal(whole), one if int(whole or 0) == 1 else many]
    if hundredths and cent and cents:
        words += ["and"] if int(whole or 0) else []
        words += [*numbers.below_hundred(hundredths), cent if hundredths == 1 else cents]
    return words


def _money_behind(match: re.Match[str], _: Words) -> list[str]:
    currency = match["currency"]
    one, many, *_rest = CURRENCIES[CURRENCY_CODES.get(currency, currency)]
    return [*numbers.decimal(match["amount"]), one if match["amount"] == "1" else many]


def _money_range(match: re.Match[str], _: Words) -> list[str]:
    """$2-3k"""
    _one, many, *_rest = CURRENCIES[match["currency"]]
    magnitude = match["letter"] or match["magnitude"] or ""
    said = [MAGNITUDES.get(magnitude.lower(), magnitude.lower())] if magnitude else []
    return [*numbers.decimal(match["from"]), "to", *numbers.decimal(match["to"]), *said, many]


def _money_with_comma(match: re.Match[str], _: Words) -> list[str]:
    """€3,50"""
    cents = int(match["cents"])
    words = [*numbers.cardinal(match["euros"]), "euro" if match["euros"] == "1" else "euros"]
    return [*words, *(["and", *numbers.below_hundred(cents), "cent" if cents == 1 else "cents"] if cents else [])]


def _time(match: re.Match[str], _: Words) -> list[str]:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    half = [match["half"].upper(), "M"] if match["half"] else []
    if match["second"] is not None:
        second = int(match["second"])
        return [*numbers.clock(hour, minute), "and", *numbers.below_hundred(second), "seconds", *half]
    if not half and minute == 0:
        return [*numbers.below_hundred(hour), "o'clock" if 1 <= hour <= 12 else "hundred"]
    return [*numbers.clock(hour, minute), *half]


def _hour(match: re.Match[str], _: Words) -> list[str] | None:
    return (
        [*numbers.below_hundred(int(match["hour"])), match["half"].upper(), "M"] if int(match["hour"]) <= 12 else None
    )


def _date(match: re.Match[str], _: Words) -> list[str] | None:
    month, day_of_month, year = int(match["month"]), int(match["day"]), match["year"]
    if month > 12:  # as most of the world writes it
        month, day_of_month = day_of_month, month
    if not 1 <= month <= 12 or not 1 <= day_of_month <= 31:
        return None
    said_year = numbers.year(year) if len(year) == 4 and year >= "1100" else numbers.plain(year)
    return [MONTHS[month - 1], *numbers.ordinal(str(day_of_month)), _PAUSE, *said_year]


def _short_date(match: re.Match[str], _: Words) -> list[str] | None:
    """30/11 and 12/25: only one of the numbers can be the month."""
    first, second = int(match["first"]), int(match["second"])
    if match[0] == "24/7":
        return None
    if 1 <= first <= 12 < second <= 31 and second != 16:  # of an inch
        return [MONTHS[first - 1], *numbers.ordinal(str(second))]
    if 1 <= second <= 12 < first <= 31:
        return [MONTHS[second - 1], *numbers.ordinal(str(first))]
    return None


def _day_month(match: re.Match[str], _: Words) -> list[str] | None:
    """30 November 2026"""
    if not 1 <= int(match["day"]) <= 31:
        return None
    name = match["month"].lower()
    month = MONTH_ABBREVIATIONS.get(name, name)
    the = [] if re.search(r"\bthe\s$", match.string[: match.start()], re.IGNORECASE) else ["the"]
    year = match["year"]
    return [*the, *numbers.ordinal(match["day"]), "of", month, *([_PAUSE, *numbers.plain(year)] if year else [])]


def _height(match: re.Match[str], _: Words) -> list[str]:
    """5'10\""""
    return [*numbers.cardinal(match["feet"]), "foot", *numbers.cardinal(match["inches"])]


def _ratio(match: re.Match[str], _: Words) -> list[str]:
    return [*numbers.cardinal(match["left"]), "to", *numbers.cardinal(match["right"])]


def _rating(match: re.Match[str], _: Words) -> list[str]:
    return [*numbers.decimal(match["stars"]), "out", "of", *numbers.cardinal(match["most"])]


def _ip_address(match: re.Match[str], _: Words) -> list[str]:
    first, *rest = [numbers.cardinal(part) for part in match[0].split(".")]
    return [*first, *(word for part in rest for word in ("dot", *part))]


def _telephone(match: re.Match[str], _: Words) -> list[str]:
    """Group by group, with a pause between."""
    words = ["plus"] if match[0].startswith("+") else []
    for i, group in enumerate(re.findall(r"[0-9]+", match[0])):
        words += [*([_PAUSE] if i else []), *numbers.digits(group)]
    return words


def _ordinal(match: re.Match[str], _: Words) -> list[str]:
    return numbers.ordinal(match["number"].replace(",", ""))


def _decade(match: re.Match[str], _: Words) -> list[str] | None:
    text = match["year"]
    if not text.endswith("0") or text in ("00", "10"):
        return None
    *rest, last = numbers.year(text) if len(text) == 4 else numbers.cardinal(text)
    return [*rest, last[:-1] + "ies" if last.endswith("y") else last + "s"]


def _fraction(match: re.Match[str], _: Words) -> list[str]:
    upper, lower = int(match["upper"]), int(match["lower"])
    if 0 < upper < lower and lower in DENOMINATORS:
        one, many = DENOMINATORS[lower]
        return [*numbers.cardinal(match["upper"]), one if upper == 1 else many]
    if upper == lower or match[0] == "24/7":  # fifty fifty
        return [*numbers.cardinal(match["upper"]), *numbers.cardinal(match["lower"])]
    return [*numbers.plain(match["upper"]), "slash", *numbers.plain(match["lower"])]


def _mixed(match: re.Match[str], _: Words) -> list[str] | None:
    """2 1/2"""
    upper, lower = int(match["upper"]), int(match["lower"])
    if not 0 < upper < lower or lower not in DENOMINATORS:
        return None
    one, many = DENOMINATORS[lower]
    part = ["a", one] if upper == 1 else [*numbers.cardinal(match["upper"]), many]
    return [*numbers.plain(match["whole"]), "and", *part]


def _range(match: re.Match[str], _: Words) -> list[str]:
    return [*numbers.plain(match["from"]), "to", *numbers.plain(match["to"])]


def _measured_range(match: re.Match[str], _: Words) -> list[str] | None:
    many = _many(match["unit"], is_apart=match["apart"] != "")
    return many and [*numbers.decimal(match["from"]), "to", *numbers.decimal(match["to"]), *many[1].split()]


def _version(match: re.Match[str], _: Words) -> list[str]:
    first, *rest = [numbers.cardinal(part) for part in match[0].split(".")]
    return [*first, *(word for part in rest for word in ("point", *part))]


def _measure(match: re.Match[str], _: Words) -> list[str] | None:
    names = _many(match["unit"], is_apart=match["apart"] != "")
    if names is None:
        return None
    minus = ["minus"] if match["minus"] else []
    words = numbers.decimal(match["amount"])
    return [*minus, *words, *names[words != ["one"]].split()]


def _many(unit: str, *, is_apart: bool) -> tuple[str, str] | None:
    """Singular and plural of a unit; None for what is none."""
    key = unit.lower()
    if (len(unit) == 1 and unit.isalpha() and unit not in _LETTER_UNITS) or (key in _TIGHT_UNITS and is_apart):
        return None
    return UNITS.get(key.replace("° ", "°"))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(" ", ""), re.IGNORECASE)


Rule = Callable[[re.Match[str], Words], "list[str] | None"]

# A blank in these patterns is only for the eye; \s is a blank that counts.
_HALF = r"(?P<half>[ap])\.?m (?:\.(?=\s*(?-i:[a-z0-9,;:)–—-])))? (?!\w)"
_CODES = "|".join(CURRENCY_CODES)
_RANGED = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,9})(?:\.[0-9]{1,4})?"
_UNIT = (
    r"(?P<apart>\s?)(?P<unit>%|°\s?[cf](?!\w)|°|km/h|k?m²|sq\sft|[a-z]{1,4})(?![\w])"
    r"(?:(?<=[a-z])\.(?=\s*(?-i:[a-z0-9,;:)])))?"  # 5 min. away
)
_MONTH = "|".join((*MONTHS, *MONTH_ABBREVIATIONS)).title()
RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (re.compile(r"€\s?(?P<euros>[0-9]{1,7}),(?P<cents>[0-9]{2})(?![0-9])"), _money_with_comma),
    (
        re.compile(
            rf"(?P<currency>[$€£])(?P<from>{_RANGED})\s?[-–]\s?(?P<to>{_RANGED})(?![0-9,.]*[0-9]|[-–/])"
            rf"(?:(?P<letter>k|m|bn|b|K|M|B)(?!\w)|\s(?P<magnitude>thousand|million|billion)(?!\w))?(?!\w)"
        ),
        _money_range,
    ),
    (
        re.compile(
            rf"(?P<minus>(?<![\w)])[-−])?(?:US)?(?P<currency>[$€£¥₩₹])\s?(?P<amount>{_AMOUNT}|\.[0-9]{{1,2}})"
            r"(?:(?P<letter>k|m|bn|b|t|K|M|B|T)(?!\w)|\s(?P<magnitude>thousand|million|billion|trillion)(?!\w))?"
        ),
        _money,
    ),
    (re.compile(rf"(?P<amount>{_AMOUNT})\s?(?P<currency>[€£₩₹원])(?![0-9])"), _money_behind),
    (re.compile(rf"(?P<amount>{_AMOUNT})\s(?P<currency>{_CODES})(?!\w)"), _money_behind),
    (re.compile(rf"(?<!\w)(?P<currency>{_CODES})\s?(?P<amount>{_AMOUNT})(?!\w)"), _money_behind),
    (
        _pattern(
            rf"{_NOT_IN_WORD}(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?: :(?P<second>[0-5][0-9]))?"
            rf"(?:\s?{_HALF})? (?![\w:])"
        ),
        _time,
    ),
    (_pattern(rf"{_NOT_IN_WORD}(?P<hour>[0-9]{{1,2}})\s?{_HALF}"), _hour),
    (re.compile(r"(?<![\w:.,])(?P<left>[0-9]{1,3}):(?P<right>[0-9]{1,3})(?![\w:]|[.,][0-9])"), _ratio),
    (re.compile(r"(?<![\w/.,])(?P<stars>[0-9]\.[0-9])/(?P<most>5|10)(?![\w/]|\.[0-9])"), _rating),
    (_pattern(rf"{_NOT_IN_WORD}(?P<year>[0-9]{{4}})-(?P<month>[0-9][0-9])-(?P<day>[0-9][0-9])(?![\w-])"), _date),
    (
        _pattern(
            rf"{_NOT_IN_WORD}(?P<month>[0-9]{{1,2}})/(?P<day>[0-9]{{1,2}})/(?P<year>[0-9]{{4}}|[0-9][0-9])(?![\w/])"
        ),
        _date,
    ),
    (_pattern(r"(?<![\w-])[0-9]{4}(?:[-\s][0-9]{4}){3}(?![\w-])"), _telephone),  # of a card
    (
        _pattern(r"(?<![\w.])(?:\+?[0-9]{1,3}[-.\s]?)?\(?[0-9]{3}\)?[-.\s]?[0-9]{3}[-.\s][0-9]{4}(?!\w)"),
        _telephone,
    ),
    (_pattern(r"(?<![\w.-])[0-9]{3}-[0-9]{4}(?![\w-])|\+[0-9]{1,4}(?:[-\s]?[0-9]{2,5}){2,5}(?!\w)"), _telephone),
    (_pattern(r"(?<![\w.-])[0-9]{1,7}(?:-[0-9]{1,7}){3,5}(?![\w-])"), _telephone),  # an ISBN, an account
    (
        re.compile(rf"(?<![\w.,/])(?P<day>[0-9]{{1,2}})\s(?P<month>{_MONTH})(?:,?\s(?P<year>[0-9]{{4}}))?(?!\w)"),
        _day_month,
    ),
    (
        re.compile(r"(?<![\w/.])(?P<first>[0-9]{1,2})/(?P<second>[0-9]{1,2})(?![\w/]|\.[0-9]|\s?(?:in|inch|cup))"),
        _short_date,
    ),
    (re.compile(r"(?<![\w.,])(?P<feet>[1-8])['’′]\s?(?P<inches>1[01]|[0-9])(?:[\"”″]|''|’’)"), _height),
    (_pattern(r"(?P<number>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:st|nd|rd|th)(?!\w)"), _ordinal),
    (_pattern(r"(?P<year>[0-9]{4}|[0-9][0-9])['’]?s(?!\w)"), _decade),
    (_pattern(r"(?<![\w/.,])(?P<whole>[0-9]{1,4})\s(?P<upper>[0-9])/(?P<lower>[0-9]{1,2})(?![\w/])"), _mixed),
    (_pattern(r"(?<![\w/])(?P<upper>[0-9]{1,4})/(?P<lower>[0-9]{1,4})(?![\w/])"), _fraction),
    (_pattern(rf"(?<![\w-])(?P<from>{_RANGED})\s?[-–—]\s?(?P<to>{_RANGED}){_UNIT}"), _measured_range),
    (_pattern(rf"(?<![\w-])(?P<from>{_RANGED})\s?[-–—]\s?(?P<to>{_RANGED})(?![\w-]|[.,][0-9])"), _range),
    (_pattern(r"(?<![\w.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w]|\.[0-9])"), _ip_address),
    (_pattern(r"[0-9]{1,6}(?:\.[0-9]{1,6}){2,6}(?!\w)"), _version),
    (
        _pattern(rf"(?P<minus>(?<![\w)])[-−](?=[0-9]))?(?P<amount>{_AMOUNT}){_UNIT}"),
        _measure,
    ),
)
