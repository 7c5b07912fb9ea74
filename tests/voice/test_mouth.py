from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.mouth import _as_written


def as_written(text: str) -> list[str]:
    return [_as_written(text, match.start(), match.end()) for match in re.finditer(r"[^\W_]+(?:'\w+)*", text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, you there!", ["Hello,", "you", "there!"]),
        ('He said: "Don\'t (ever)."', ["He", "said:", "\"Don't", '(ever)."']),
        ("a well-known plan", ["a", "well-", "known", "plan"]),
        ("At 3:30 it costs $5 - or so...", ["At", "3:", "30", "it", "costs", "$5", "or", "so..."]),
        ("", []),
    ],
)
def test_words_keep_the_punctuation_that_touches_them(text: str, words: list[str]) -> None:
    assert as_written(text) == words


def test_offsets_beyond_the_text_do_no_harm() -> None:
    assert _as_written("Hello.", 90, 95) == ""
    assert _as_written("Hello.", 0, 95) == "Hello."


@given(st.text(alphabet="ab1 .,'\"-(é", max_size=30))
def test_no_character_of_a_text_is_told_twice(text: str) -> None:
    joined = "".join(as_written(text)).replace(" ", "")
    rest = iter(text.replace(" ", ""))
    assert all(char in rest for char in joined)  # a subsequence
