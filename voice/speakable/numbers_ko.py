"""Korean numbers as words: Sino-Korean, native before counters, and digit by digit. Pure."""

from __future__ import annotations

_DIGITS = "영일이삼사오육칠팔구"
_DIGITS_OF_CODES = "공일이삼사오육칠팔구"
_PLACES = ("", "십", "백", "천")
_SCALES = ("", "만", "억", "조", "경")
MAX_DIGITS = 4 * len(_SCALES)  # longer ones are read digit by digit

_NATIVE_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
_NATIVE_ONES = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")  # before a counter
MAX_NATIVE = 99


def sino(text: str) -> str:
    """`text` is a run of ASCII digits. Ten thousand is 만, a hundred million 일억."""
    text = text.lstrip("0")
    if len(text) > MAX_DIGITS:
        return digits(text)
    if not text:
        return "영"
    groups = -(-len(text) // 4)
    text = text.zfill(4 * groups)
    said: list[str] = []
    for i in range(groups):
        group, scale = text[4 * i : 4 * i + 4], _SCALES[groups - 1 - i]
        if int(group):
            words = "" if int(group) == 1 and scale == "만" else _below_ten_thousand(group)
            said.append(words + scale)
    return " ".join(said)


def _below_ten_thousand(group: str) -> str:
    """Four digits; a one before ten, hundred and thousand is not said."""
    said = ""
    for digit, place in zip(group, reversed(_PLACES), strict=True):
        if digit != "0":
            said += ("" if digit == "1" and place else _DIGITS[int(digit)]) + place
    return said


def native(value: int) -> str:
    """1 to 99 as they stand before a counter: 한, 스무, 스물한."""
    assert 1 <= value <= MAX_NATIVE
    tens, ones = divmod(value, 10)
    return "스무" if value == 20 else _NATIVE_TENS[tens] + _NATIVE_ONES[ones]


def digits(text: str) -> str:
    """Each digit by itself, as of a telephone number."""
    return "".join(_DIGITS_OF_CODES[int(c)] for c in text if c in "0123456789")


def decimal(text: str) -> str:
    """Digits with optional thousands commas and one point."""
    whole, _, fraction = text.replace(",", "").partition(".")
    return sino(whole) + ("점" + "".join(_DIGITS[int(c)] for c in fraction) if fraction else "")
