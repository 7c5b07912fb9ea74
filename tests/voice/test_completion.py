from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.completion import STOP_LOGPROB, WEIGHTS, Evidence, log_odds, wait_s, weights
from voice.endings import Ending, ending

PROBABILITIES = st.floats(0, 1)
ENDINGS = st.builds(
    Ending,
    st.sampled_from(["stop", "more", "none"]),
    st.sampled_from(["closing", "hanging", "open"]),
    st.integers(0, 60),
    st.booleans(),
)
EVIDENCE = st.builds(
    Evidence,
    st.none() | PROBABILITIES,
    st.floats(0, 60),
    st.none() | ENDINGS,
    st.booleans(),
    st.none() | st.floats(-4, 0),
)
LANGUAGES = st.sampled_from(["en", "ko", "de-AT", "xx"])
LOW_S, HIGH_S, PATIENCE = 0.16, 1.5, 0.3


@given(LANGUAGES, EVIDENCE, st.floats(-3, 3), st.floats(-3, 3))
def test_more_patience_waits_longer(language: str, evidence: Evidence, a: float, b: float):
    odds = log_odds(evidence, weights(language))
    short, long = (wait_s(odds, patience, 0.45, LOW_S, HIGH_S) for patience in sorted((a, b)))

    assert short <= long


USUAL_S = st.floats(0.16, 3.0)


def wait_for(language: str, evidence: Evidence, usual_s: float = 0.45) -> float:
    return wait_s(log_odds(evidence, weights(language)), PATIENCE, usual_s, LOW_S, HIGH_S)


@given(LANGUAGES, EVIDENCE, USUAL_S)
def test_the_wait_is_bounded_whatever_is_known_or_missing(language: str, evidence: Evidence, usual_s: float):
    assert LOW_S <= wait_for(language, evidence, usual_s) <= HIGH_S


@given(LANGUAGES, EVIDENCE, PROBABILITIES, PROBABILITIES)
def test_the_surer_the_turn_model_the_shorter_the_wait(language: str, evidence: Evidence, a: float, b: float):
    low, high = (wait_for(language, replace(evidence, probability=probability)) for probability in sorted((a, b)))

    assert high <= low


@given(LANGUAGES, EVIDENCE, USUAL_S, USUAL_S)
def test_who_pauses_longer_is_given_longer(language: str, evidence: Evidence, a: float, b: float):
    short, long = (wait_for(language, evidence, usual_s) for usual_s in sorted((a, b)))

    assert short <= long


@given(st.floats(-20, 20), st.floats(-20, 20), USUAL_S)
def test_a_little_more_certainty_never_moves_the_wait_by_much(a: float, b: float, usual_s: float):
    first_s, second_s = (wait_s(odds, PATIENCE, usual_s, LOW_S, HIGH_S) for odds in (a, b))

    assert abs(first_s - second_s) <= usual_s * abs(a - b) + 1e-9


@pytest.mark.parametrize("language", sorted(WEIGHTS))
@pytest.mark.parametrize("probability", [None, 0.03, 0.5, 0.97])
def test_a_word_that_cannot_end_a_sentence_waits_longer_than_one_that_can(language: str, probability: float | None):
    hanging, closing = (Ending("stop", last_word, 6) for last_word in ("hanging", "closing"))

    assert log_odds(Evidence(probability, ending=hanging), weights(language)) < log_odds(
        Evidence(probability, ending=closing), weights(language)
    )


def test_few_words_are_a_whole_answer_after_a_question_only():
    said = ending("Tuesday morning.", "en")

    unasked, asked = (log_odds(Evidence(0.6, ending=said, answers=answers), weights("en")) for answers in (False, True))

    assert unasked < asked


def test_a_hanging_answer_is_none():
    said = ending("On the", "en")

    assert log_odds(Evidence(ending=said, answers=True), weights("en")) < 0.0


def test_only_english_is_calibrated():
    assert [language for language, row in WEIGHTS.items() if row.is_calibrated] == ["en"]


@given(LANGUAGES, EVIDENCE, st.floats(-4, 0), st.floats(-4, 0))
def test_the_likelier_a_full_stop_the_shorter_the_wait(language: str, evidence: Evidence, a: float, b: float):
    low, high = (wait_for(language, replace(evidence, stop_logprob=value)) for value in sorted((a, b)))

    assert high <= low


def test_a_fragment_counts_less_where_a_language_model_has_judged_it():
    said = ending("the cross", "en")

    alone, judged = (
        log_odds(Evidence(ending=said, stop_logprob=value), weights("en")) for value in (None, STOP_LOGPROB)
    )

    assert alone < judged


@pytest.mark.parametrize("answers", [False, True])
def test_an_answer_ends_without_a_full_stop(answers: bool):
    likely, unlikely = (log_odds(Evidence(answers=answers, stop_logprob=value), weights("en")) for value in (0.0, -4.0))

    assert (likely == unlikely) == answers
