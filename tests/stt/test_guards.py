from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stt.guards import FLOOR_RMS, audible_span, cut_loop, frame_rms, has_words, is_speech
from tests.speech import clip, silence
from tests.stt.signals import attenuated

PCM = arrays(np.int16, st.integers(0, 4000))
TOKENS = st.lists(st.integers(0, 4), max_size=60)


def test_silence_has_no_audible_span() -> None:
    assert audible_span(silence(1)) is None
    assert audible_span(silence(0)) is None


def test_a_constant_offset_is_not_audible() -> None:
    assert audible_span(silence(1) + np.int16(500)) is None


def test_speech_40_db_down_is_audible_and_keeps_its_margins() -> None:
    speech, _ = clip("hello_world")
    quiet = np.concatenate([silence(2), attenuated(speech, 40), silence(2)])
    span = audible_span(quiet)
    assert span is not None
    start, end = span
    assert 1.5 * 16000 < start <= 2.2 * 16000
    assert end < quiet.size - 1.5 * 16000


@given(PCM)
def test_the_audible_span_lies_within_and_everything_outside_is_below_the_floor(pcm: np.ndarray) -> None:
    span = audible_span(pcm)
    loud = frame_rms(pcm) > FLOOR_RMS if pcm.size else np.zeros(0, bool)
    if span is None:
        assert not loud.any()
        return
    start, end = span
    assert 0 <= start < end <= pcm.size
    samples = np.repeat(loud, 320)[: pcm.size]
    assert not samples[:start].any()
    assert not samples[end:].any()


@pytest.mark.parametrize(
    ("no_speech", "logprob", "looped", "spoken"),
    [
        (0.05, -0.2, False, True),
        (0.84, -0.14, False, True),  # base, speech after 3 s of silence
        (0.15, -2.3, False, True),  # half a word, cut off
        (0.90, -0.9, False, False),  # "Thank you." out of noise
        (0.58, -2.0, False, False),
        (0.70, -0.2, True, False),
    ],
)
def test_doubt_needs_two_witnesses(no_speech: float, logprob: float, looped: bool, spoken: bool) -> None:
    assert is_speech(no_speech, logprob, looped=looped) is spoken


@pytest.mark.parametrize(("text", "expected"), [(" . . .", False), ("", False), ("아니요", True), (" 7!", True)])
def test_punctuation_alone_is_no_word(text: str, expected: bool) -> None:
    assert has_words(text) is expected


def test_a_loop_that_spent_the_budget_is_cut_after_its_first_round() -> None:
    assert cut_loop([1, 2, 3, 9, 3, 9, 3, 9, 3], 5, ran_out=True) == [1, 2, 3, 9]
    assert cut_loop([7] * 10, 5, ran_out=True) == [7]


def test_a_sentence_said_again_and_again_too_fast_to_be_spoken_is_cut() -> None:
    sentence = [1, 2, 3, 4, 5, 6]
    assert cut_loop(sentence * 3, 1.0, ran_out=False) == sentence


def test_people_may_repeat_themselves() -> None:
    five = [5, 6] * 5
    assert cut_loop(five, 3.0, ran_out=False) == five
    again = [1, 2, 3, 4, 5, 6] * 8
    assert cut_loop(again, 14.0, ran_out=False) == again


def test_nobody_says_the_same_fifteen_times_over() -> None:
    assert cut_loop([8, *[1, 2] * 40, 9], 30.0, ran_out=False) == [8, 1, 2]


def test_running_out_of_budget_without_a_loop_loses_nothing() -> None:
    assert cut_loop(list(range(30)), 3.0, ran_out=True) == list(range(30))


@given(TOKENS, st.floats(0.1, 30), st.booleans())
def test_what_is_kept_is_a_beginning(tokens: list[int], audible_s: float, ran_out: bool) -> None:
    kept = cut_loop(tokens, audible_s, ran_out=ran_out)
    assert kept == tokens[: len(kept)]
    assert bool(kept) == bool(tokens)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(3, 9))
def test_after_a_cut_the_budget_is_no_loop_any_more(unit: list[int], rounds: int) -> None:
    kept = cut_loop(unit * rounds, 1.0, ran_out=True)
    assert len(kept) <= len(unit)
