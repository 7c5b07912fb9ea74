from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.voice.speakable.texts import TEXTS
from voice.script import Script


def script_of(*units: str, language: str = "en") -> Script:
    script = Script(language)
    for unit in units:
        script.add(unit)
    return script


def written(script: Script, word: str, *, after: str = "") -> str:
    """What of the written text the voice's `word` is."""
    start = script.spoken.index(word, script.spoken.index(after))
    return script.written[slice(*script.span(start, start + len(word)))]


def test_the_texts_are_those_of_all_units():
    script = script_of("It is **$3.50**,", " all in. 😀")

    assert script.written == "It is **$3.50**, all in. 😀"
    assert script.spoken == "It is three dollars and fifty cents, all in. "


@pytest.mark.parametrize(
    ("unit", "word", "expected"),
    [
        ("Hello there.", "Hello", "Hello"),
        ("It is $3.50 now.", "three", "$3.50"),
        ("It is $3.50 now.", "cents", "$3.50"),
        ("It is $3.50 now.", "now", "now"),
        ("**Note** this.", "Note", "Note**"),
        ("See [our site](https://x.com/a) now.", "site", "site](https://x.com/a)"),
        ("See [our site](https://x.com/a) now.", "now", "now"),
        ("Call 555-1234, please.", "five, one", "555-1234"),
        ("Dr. Kim", "doctor", "Dr."),
    ],
)
def test_a_spoken_word_stands_for_what_was_written(unit: str, word: str, expected: str):
    assert written(script_of("Well, ", unit), word) == expected


def test_korean_words_stand_for_what_was_written():
    script = script_of("가격은 3,000원입니다.", " 오후 3시에 오세요.", language="ko")

    assert script.spoken == "가격은 삼천 원입니다. 오후 세 시에 오세요."
    assert written(script, "삼천") == "3,000원"
    assert written(script, "원입니다") == "3,000원입니다"
    assert written(script, "세") == "3시"
    assert written(script, "오세요") == "오세요"


@given(st.lists(TEXTS, max_size=4), st.sampled_from(["en", "ko", "de"]), st.integers(-5, 400), st.integers(-5, 400))
def test_spans_lie_within_the_text_whatever_a_voice_says(units: list[str], language: str, start: int, end: int):
    script = script_of(*units, language=language)

    first, last = script.span(start, end)
    assert 0 <= first <= last <= len(script.written)


@given(st.lists(TEXTS, max_size=4), st.sampled_from(["en", "ko", "de"]))
def test_words_in_order_stand_for_parts_in_order_and_all_of_them_for_all_that_is_heard(units: list[str], language: str):
    script = script_of(*units, language=language)
    spans = [script.span(*match.span()) for match in re.finditer(r"\S+", script.spoken)]

    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(spans))
    assert script.written == "".join(units)
    whole = script.span(0, len(script.spoken))
    assert script.spoken == "" or whole[1] == len(script.written)
