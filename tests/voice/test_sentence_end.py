import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.sentence_end import FLOOR, MAX_CHARACTERS, START, log_probability, prompt


@pytest.mark.parametrize(
    "said", ["They took the cross", "They took the cross.", " They took the cross... ", "They took the cross,"]
)
def test_the_mark_that_recognition_wrote_is_not_shown(said: str):
    assert prompt(said) == START + "They took the cross"


@pytest.mark.parametrize("said", ["", "  ", "...", "?"])
def test_nothing_said_is_nothing_to_ask_about(said: str):
    assert prompt(said) is None


@given(st.text(st.sampled_from("ab ."), max_size=600))
def test_only_the_end_of_a_long_turn_is_shown_in_whole_words(said: str):
    shown = (prompt(said) or START).removeprefix(START)

    assert len(shown) <= MAX_CHARACTERS
    assert set(shown.split()) <= set(said.split()) | {word.rstrip(".") for word in said.split()}


def test_all_tokens_that_begin_with_a_stop_count():
    likely = {".": math.log(0.3), "?": math.log(0.2), ".\n": math.log(0.1), " and": math.log(0.2), "": math.log(0.1)}

    assert log_probability(likely) == pytest.approx(math.log(0.6))


@given(st.dictionaries(st.text(max_size=3), st.floats(-1000, 10), max_size=5))
def test_it_is_bounded_whatever_a_server_tells(likely: dict[str, float]):
    assert FLOOR <= log_probability(likely) <= 0.0
