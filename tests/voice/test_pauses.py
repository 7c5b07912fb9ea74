import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.pauses import LONGEST_S, PRIOR_S, SHORTEST_S, Pauses


def after(*pauses_s: float) -> float:
    pauses = Pauses()
    for pause_s in pauses_s:
        pauses.add(pause_s)
    return pauses.usual_s


def test_an_unknown_caller_pauses_as_callers_do():
    assert after() == pytest.approx(PRIOR_S)


def test_a_slow_caller_is_known_after_a_few_pauses():
    assert after(1.0) < after(1.0, 1.0) < after(1.0, 1.0, 1.0) < 1.0


def test_a_caller_who_becomes_quick_is_soon_taken_for_quick():
    assert after(*[1.2] * 50, *[0.25] * 12) < PRIOR_S


@pytest.mark.parametrize("pause_s", [0.0, 0.032, 0.1, 5.0])
def test_what_is_no_pause_inside_a_turn_does_not_count(pause_s: float):
    assert after(pause_s) == pytest.approx(PRIOR_S)


@given(st.lists(st.floats(0, 100), max_size=100))
def test_the_usual_pause_lies_among_those_that_count(pauses_s: list[float]):
    assert SHORTEST_S - 1e-9 <= after(*pauses_s) <= LONGEST_S
