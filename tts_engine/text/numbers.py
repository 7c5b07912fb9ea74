"""Numbers as English words. Pure."""

from __future__ import annotations

# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_SCALES = ("", "thousand", "million", "billion", "trillion")
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_MAX_CARDINAL_DIGITS = 3 * len(_SCALES)  # longer ones are read digit by digit


def digits(text: str) -> list[str]:
    """Each digit by itself; anything else is skipped."""
    return [_ONES[int(c)] for c in text if c in "0123456789"]


def cardinal(text: str) -> list[str]:
    """`text` is a run of ASCII digits."""
    text = text.lstrip("0") or "0"
    if len(text) > _MAX_CARDINAL_DIGITS:
        return digits(text)
    if text == "0":
        return ["zero"]
    words: list[str] = []
    groups = -(-len(text) // 3)
    text = text.zfill(3 * groups)
    for i in range(groups):
        value = int(text[3 * i : 3 * i + 3])
        if value:
            scale = _SCALES[groups - 1 - i]
            words += [*_below_thousand(value), *([scale] if scale else [])]
    return words


def _below_thousand(value: int) -> list[str]:
    hundreds, rest = divmod(value, 100)
    words = [_ONES[hundreds], "hundred"] if hundreds else []
    return words + (below_hundred(rest) if rest else [])


def below_hundred(value: int) -> list[str]:
    if value < 20:
        return [_ONES[value]]
    tens, ones = divmod(value, 10)
    return [_TENS[tens], *([_ONES[ones]] if ones else [])]


def ordinal(text: str) -> list[str]:
    *rest, last = cardinal(text)
    if last in _IRREGULAR_ORDINALS:
        return [*rest, _IRREGULAR_ORDINALS[last]]
    return [*rest, last[:-1] + "ieth" if last.endswith("y") else last + "th"]


def year(text: str) -> list[str]:
    """Four digits: 1984, 1900, 1905, 2005, 2024."""
    century, rest = int(text[:2]), int(text[2:])
    if text[1:3] == "00":  # 2000, 2005
        return cardinal(text)
    if rest == 0:
        return [*below_hundred(century), "hundred"]
    tail = ["oh", _ONES[rest]] if rest < 10 else below_hundred(rest)
    return [*below_hundred(century), *tail]


def decimal(text: str) -> list[str]:
    """Digits with optional thousands commas and one point: "1,234.50"."""
    whole, _, fraction = text.replace(",", "").partition(".")
    return cardinal(whole or "0") + (["point", *digits(fraction)] if fraction else [])


def plain(text: str) -> list[str]:
    """A number of which nothing else is known.

    Four digits that may be a year are read as one. Five and more without commas are a reference, such as a ZIP code
    or an order number, and are read digit by digit unless they are round; so is anything with a leading zero.
    """
    if "," in text or "." in text:
        return decimal(text)
    if len(text) > 1 and text[0] == "0":
        return digits(text)
    if len(text) == 4 and 1100 <= int(text) <= 2099:
        return year(text)
    if len(text) >= 5 and not text.endswith("000"):
        return digits(text)
    return cardinal(text)


def clock(hour: int, minute: int) -> list[str]:
    if minute == 0:
        return below_hundred(hour)
    return [*below_hundred(hour), *(["oh", _ONES[minute]] if minute < 10 else below_hundred(minute))]
