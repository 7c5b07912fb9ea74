"""How Korean says what is no word: numbers with their counters, times, dates, money, addresses. Pure.

Counters decide between the two kinds of numbers: 세 개, 삼 층. Rules are tried in order at each position; the first
that matches and answers, wins.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from voice.speakable.numbers_ko import MAX_NATIVE, decimal, digits, native, sino
from voice.speakable.rewriting import Edit
from voice.speakable.words_ko import (
    CENTS,
    CURRENCIES,
    DOMAINS,
    IN_ADDRESSES,
    NATIVE_COUNTERS,
    SINO_COUNTERS,
    SYMBOLS,
    UNITS,
)

Rule: TypeAlias = Callable[[re.Match[str]], "str | None"]

_MONTHS = {"6": "유", "10": "시"}
_SCALES = {"K": " 천", "k": " 천", "M": " 백만", "B": " 십억"}
_HALVES = {"am": "오전", "pm": "오후"}
_HOURS_BY_DIAL = 12  # 열두 시, but 십삼 시
_NATIVE_DURATION = 19  # 열아홉 시간, but 이십사 시간


def readings(text: str) -> list[Edit]:
    """In order, without overlap."""
    edits: list[Edit] = []
    at = 0
    while found := _ANYTHING.search(text, at):
        at = found.start()
        for pattern, rule in _RULES:
            match = pattern.match(text, at)
            if match and (said := rule(match)) is not None:
                edits.append((at, match.end(), _apart(text, match, said)))
                at = match.end()
                break
        else:
            at += 1
    return edits


def _apart(text: str, match: re.Match[str], said: str) -> str:
    """Blanks from what stands right before, but for letters, and a blank before a Latin letter behind."""
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    is_joined = (before.isdigit() or before in set("%℃°")) and not said.startswith("에서")
    return f"{' ' * is_joined}{said}{' ' * (after.isascii() and after.isalnum())}"


def count(number: str, counter: str, before: str = "", behind: str = "") -> str:
    """A number with its counter. `before` and `behind` are the text around, which tells how some are meant."""
    whole = number.replace(",", "").lstrip("0") or "0"
    if counter == "월":
        return _MONTHS.get(whole, sino(whole)) + counter
    if counter == "일":
        return decimal(number) + counter
    if _takes_native(whole, counter, before, behind):
        return "첫 번째" if (whole, counter) == ("1", "번째") else f"{native(int(whole))} {counter}"
    return f"{decimal(number)} {counter}"


def _takes_native(whole: str, counter: str, before: str, behind: str) -> bool:
    if counter not in NATIVE_COUNTERS or not whole.isdigit() or not 1 <= int(whole) <= MAX_NATIVE:
        return False
    match counter:
        case "시":
            return int(whole) <= _HOURS_BY_DIAL
        case "시간":
            return int(whole) <= _NATIVE_DURATION
        case "대":
            return int(whole) % 10 != 0  # 이십 대: people in their twenties
        case "번":
            return bool(_HOW_OFTEN.search(before)) or not _IS_NAMED.match(behind)
    return not before.endswith("제")  # 제삼 장


def _counted(match: re.Match[str]) -> str:
    counter, text = match["counter"], match.string
    return _minus(match, counter) + count(match["number"], counter, text[: match.start()], text[match.end() :])


def _minus(match: re.Match[str], unit: str) -> str:
    if not match["minus"]:
        return ""
    return "영하 " if unit == "도" else "마이너스 "


def _counted_range(match: re.Match[str]) -> str:
    counter, behind = match["counter"], match.string[match.end() :]
    if not counter:
        return f"{decimal(match['from'])}에서 {decimal(match['to'])}"
    if all(_takes_native(match[end].replace(",", ""), counter, "", behind) for end in ("from", "to")):
        return f"{count(match['from'], counter)}에서 {count(match['to'], counter)}"
    return f"{decimal(match['from'])}에서 {count(match['to'], counter, '', behind)}"


def _measured(match: re.Match[str]) -> str:
    unit = match["unit"]
    said = UNITS[unit]
    before = {"km/h": "시속 ", "°F": "화씨 ", "℉": "화씨 "}.get(unit, "")
    since = f"{decimal(match['since'])}에서 " if match["since"] else ""
    return f"{before}{since}{_minus(match, said)}{decimal(match['number'])} {said}"


def _money(match: re.Match[str]) -> str:
    name = CURRENCIES[match["currency"]]
    minus = "마이너스 " if match["minus"] else ""
    whole, _, fraction = match["number"].replace(",", "").partition(".")
    scale = match["scale"]
    if scale or len(fraction) != 2 or name not in CENTS:
        return f"{minus}{decimal(match['number'])}{_SCALES.get(scale, scale) if scale else ''} {name}"
    cents = f"{sino(fraction)} {CENTS[name]}" if int(fraction) else ""
    main = f"{sino(whole)} {name}" if int(whole) or not cents else ""
    return minus + " ".join(part for part in (main, cents) if part)


def _money_behind(match: re.Match[str]) -> str:
    return f"{decimal(match['number'])} {CURRENCIES[match['currency']]}"


def _time(match: re.Match[str]) -> str | None:
    hour, minute = match["hour"], match["minute"]
    half = _HALVES[f"{match['half'][0]}m".lower()] if match["half"] else ""
    said = [half, count(str(int(hour)), "시") if int(hour) else "영 시"]
    if minute and int(minute):
        said.append(f"{sino(minute)} 분")
    if match["second"]:
        said.append(f"{sino(match['second'])} 초")
    return " ".join(part for part in said if part)


def _hour(match: re.Match[str]) -> str | None:
    if not 1 <= int(match["hour"]) <= _HOURS_BY_DIAL:
        return None
    return f"{_HALVES[match['half'][0].lower() + 'm']} {count(match['hour'], '시')}"


def _date(match: re.Match[str]) -> str | None:
    month, day = int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    year = f"{sino(match['year'])} 년 " if match["year"] else ""
    return f"{year}{count(str(month), '월')} {count(str(day), '일')}"


def _fraction(match: re.Match[str]) -> str | None:
    upper, lower = int(match["month"]), int(match["day"])
    if not 0 < upper < lower <= 10:
        return None
    return f"{sino(match['day'])}분의 {sino(match['month'])}"


def _ratio(match: re.Match[str]) -> str:
    return f"{sino(match['left'])} 대 {sino(match['right'])}"


def _telephone(match: re.Match[str]) -> str:
    plus = "플러스 " if match[0].startswith("+") else ""
    return plus + ", ".join(digits(group) for group in re.findall(r"[0-9]+", match[0]))


def _reference(match: re.Match[str]) -> str | None:
    before = match.string[: match.start()]
    is_code = _NAMES_CODE.search(before) or (len(match[0]) > 3 and before[-1:].isascii() and before[-1:].isalpha())
    return digits(match[0]) if is_code else None


def _version(match: re.Match[str]) -> str:
    return "점".join(sino(part) for part in match[0].split("."))


def _fixed(said: str) -> Rule:
    return lambda match: said


def _number(match: re.Match[str]) -> str:
    number = match["number"]
    if len(number) > 1 and number.isdigit() and number[0] == "0":
        return digits(number)
    return f"{'마이너스 ' if match['minus'] else ''}{decimal(number)}"


def _address(match: re.Match[str]) -> str:
    address = re.sub(r"^(?:https?://|mailto:)", "", match[0], flags=re.IGNORECASE).rstrip("/")
    said: list[str] = []
    for part in re.findall(r"[A-Za-z가-힣]+|[0-9]+|.", address):
        if part.lower() == "www":
            said.append("더블유더블유더블유")
        elif part.isascii() and part.isdigit():
            said.append(digits(part) if len(part) > 2 or part[0] == "0" else sino(part))
        elif part in IN_ADDRESSES:
            said.append(IN_ADDRESSES[part])
        elif part[0].isalpha():
            is_domain = said and said[-1] == "닷" and part.lower() in DOMAINS
            said.append(DOMAINS[part.lower()] if is_domain else part)
    return " ".join(said).replace("닷 컴", "닷컴").replace("닷 넷", "닷넷")


def _symbol(match: re.Match[str]) -> str:
    before, after = match.string[: match.start()], match.string[match.end() : match.end() + 1]
    glue = " " if after and not after.isspace() else ""
    is_apart = not before or before[-1].isspace() or match[0] == "="  # 이는
    return f"{'' if is_apart else ' '}{SYMBOLS[match[0]]}{glue}"


_ANYTHING = re.compile(r"[0-9A-Za-z&+=×÷%@#±$€£¥₩°℃№~∼〜(\-−]|[ \t]+(?=[~∼〜])")
_NOT_IN_NUMBER = r"(?<![0-9.,])"
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,24})(?:\.[0-9]{1,12})?"
_MINUS = r"(?P<minus>(?<![\w)~-])[-−](?=[0-9]))?"
_COUNTERS = "|".join(sorted({*NATIVE_COUNTERS, *SINO_COUNTERS}, key=len, reverse=True))
_TILDE = r"\s?[~∼〜–—-]\s?"
_UNIT = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
# 3번 출구, 1번을 누르세요: the one with that number; 3번 시도: three times.
_IS_NAMED = re.compile(
    r"(?:을|를|은|이|과|와|으로|의|,|\.|\s?(?:버튼|출구|창구|버스|승강장|게이트|문제|메뉴|국도|노선|방|항목|키|누르))"
)
_HOW_OFTEN = re.compile(r"(?:하루에?|매일|매주|매달|번에|일에|달에|총|모두|최대|최소|벌써|이미|겨우|약)\s?$")
_NAMES_CODE = re.compile(r"(?:번호|코드|끝자리|PIN|핀|OTP)(?:[는은가이:]|\s){0,4}$")
_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (re.compile(r"(?<![\w.])[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII), _address),
    (re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"가-힣]*[A-Za-z0-9/_-]", re.IGNORECASE), _address),
    (
        re.compile(
            r"(?<![A-Za-z0-9.@-])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:com|org|net|io|ai|kr|app|dev)(?![A-Za-z0-9-])"
            r"(?:/[A-Za-z0-9/_.#?=&%-]*[A-Za-z0-9/_-])?"
        ),
        _address,
    ),
    (re.compile(r"\(주\)\s?"), _fixed("주식회사 ")),
    (re.compile(r"(?<![A-Za-z])vs\.?(?![A-Za-z])"), _fixed("대")),
    (re.compile(r"(?<![0-9.,])1(?=[만천백십])"), _fixed("")),
    (
        re.compile(
            rf"{_NOT_IN_NUMBER}(?P<year>[0-9]{{4}})(?P<sep>[-./])\s?(?P<month>[0-9]{{1,2}})(?P=sep)\s?"
            r"(?P<day>[0-9]{1,2})(?![0-9])"
        ),
        _date,
    ),
    (re.compile(r"(?<![0-9-])\+?[0-9]{1,4}(?:[-\s][0-9]{3,4}){3}(?![0-9-])"), _telephone),  # of a card as well
    (re.compile(r"(?<![0-9-])(?:\+[0-9]{1,3}[-\s])?\(?[0-9]{2,4}[-\s)]\s?[0-9]{3,4}-[0-9]{4}(?![0-9-])"), _telephone),
    (re.compile(r"(?<![0-9-])(?:1[5-9][0-9]{2}|[0-9]{3})-[0-9]{4}(?![0-9-])"), _telephone),
    (re.compile(r"(?<![0-9-])[0-9]{5,7}-[0-9]{5,8}(?![0-9-])"), _telephone),
    (re.compile(r"(?<![0-9-])[0-9]{1,7}(?:-[0-9]{1,7}){2,5}(?![0-9-])"), _telephone),
    (
        re.compile(
            rf"(?P<minus>(?<![\w)])[-−])?(?P<currency>[$€£¥₩]|(?<![A-Za-z])(?:USD|EUR|GBP|JPY|KRW)\s)\s?"
            rf"(?P<number>{_NUMBER})(?P<scale>[KkMB](?![A-Za-z])|[천만억조]+)?"
        ),
        _money,
    ),
    (
        re.compile(
            rf"{_NOT_IN_NUMBER}(?P<number>{_NUMBER})\s?(?P<currency>USD|EUR|GBP|JPY|KRW|[$€£¥₩])(?![A-Za-z0-9])"
        ),
        _money_behind,
    ),
    (
        re.compile(
            rf"{_NOT_IN_NUMBER}(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?"
            r"(?:\s?(?P<half>[AaPp]\.?[Mm]\.?)(?![A-Za-z]))?(?![0-9:])"
        ),
        _time,
    ),
    (re.compile(rf"{_NOT_IN_NUMBER}(?P<hour>[0-9]{{1,2}})\s?(?P<half>[AaPp]\.?[Mm]\.?)(?![A-Za-z])"), _hour),
    (re.compile(r"(?<![0-9:])(?P<left>[0-9]{1,3}):(?P<right>[0-9]{1,3})(?![0-9:])"), _ratio),
    (re.compile(r"(?<![0-9/])(?P<quarter>[1-4])/4(?=분기)"), lambda m: sino(m["quarter"]) + "사"),
    (re.compile(r"(?<![0-9/])(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})(?![0-9/])"), _fraction),
    (re.compile(r"(?<![0-9/])(?P<year>)(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})(?![0-9/])"), _date),
    (
        re.compile(
            rf"(?<![0-9.,])(?:(?P<since>{_NUMBER}){_TILDE})?{_MINUS}(?P<number>{_NUMBER})\s?(?P<unit>{_UNIT})"
            r"(?![A-Za-z0-9])"
        ),
        _measured,
    ),
    (
        re.compile(rf"{_NOT_IN_NUMBER}(?P<from>{_NUMBER}){_TILDE}(?P<to>{_NUMBER})\s?(?P<counter>{_COUNTERS})?"),
        _counted_range,
    ),
    (
        re.compile(rf"(?<![0-9.,]){_MINUS}(?P<number>{_NUMBER})\s?(?P<counter>{_COUNTERS})"),
        _counted,
    ),
    (re.compile(r"[0-9]+(?:\.[0-9]+){2,}"), _version),
    (re.compile(r"[0-9]{3,24}(?![0-9.,]*[0-9])"), _reference),
    (re.compile(rf"{_MINUS}(?P<number>{_NUMBER})"), _number),
    (re.compile(r"(?<=[0-9시분일월년%℃원명개도])\s*[~∼〜]\s*(?=\S)"), _fixed("에서 ")),
    (re.compile("[" + re.escape("".join(SYMBOLS)) + "]"), _symbol),
)
