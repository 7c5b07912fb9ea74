from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.alignment import HeardWord, reply_begins_at, word_error_rate


def heard(text: str) -> list[HeardWord]:
    return [HeardWord(word, float(i), i + 0.5) for i, word in enumerate(text.split())]


@pytest.mark.parametrize(
    ("spoken", "reply", "begins_at"),
    [
        ("We open at nine tomorrow", "We open at nine tomorrow.", 0),
        ("One moment please. We open at nine", "We open at nine tomorrow.", 3),
        ("One moment please. The open at nine", "We open at nine tomorrow.", 3),  # its first word was misheard
        ("Hm. Yes.", "Yes.", 1),
        ("One moment please.", "We open at nine tomorrow.", None),
        ("", "We open at nine.", None),
        ("We open", "", None),
    ],
)
def test_a_filler_is_no_part_of_the_reply(spoken: str, reply: str, begins_at: int | None) -> None:
    assert reply_begins_at(heard(spoken), reply) == begins_at


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=8))
def test_a_reply_that_was_heard_as_it_is_begins_at_once(words: list[str]) -> None:
    text = " ".join(words)
    assert reply_begins_at(heard(text), text) == 0


@pytest.mark.parametrize(
    ("reference", "hypothesis", "rate"),
    [
        ("One two three.", "one two three", 0.0),
        ("one two", "one", 0.5),
        ("", "", 0.0),
        ("", "one", 1.0),
        ("a", "", 1.0),
    ],
)
def test_word_errors_count_edits(reference: str, hypothesis: str, rate: float) -> None:
    assert word_error_rate(reference, hypothesis) == rate
