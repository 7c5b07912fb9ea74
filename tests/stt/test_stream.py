from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stt.stream import MAX_SPECULATIONS, MAX_UTTERANCE_S, Stream
from tests.speech import silence
from wire.errors import PeerError


def counting(start: int, size: int) -> np.ndarray:
    """Samples that tell their own number."""
    return (np.arange(start, start + size) % 32768).astype(np.int16)


def stream_with(num_samples: int) -> Stream[str]:
    stream: Stream[str] = Stream(0.5)
    stream.push(counting(0, num_samples))
    return stream


def test_a_span_is_the_kept_audio_up_to_its_end() -> None:
    stream = stream_with(1000)
    assert stream.drop(300)
    span = stream.span(700)
    assert (span.start_sample, span.end_sample) == (300, 700)
    assert np.array_equal(span.pcm, counting(300, 400))


@pytest.mark.parametrize("end", [-1, 1001])
def test_audio_that_was_not_received_cannot_be_asked_for(end: int) -> None:
    stream = stream_with(1000)
    with pytest.raises(PeerError, match="1000 received") as caught:
        stream.span(end)
    assert caught.value.code == "bad_range"


def test_dropped_audio_cannot_be_asked_for() -> None:
    stream = stream_with(1000)
    stream.drop(500)
    with pytest.raises(PeerError, match="dropped"):
        stream.span(499)


def test_dropping_what_is_gone_changes_nothing() -> None:
    stream = stream_with(1000)
    stream.drop(500)
    stream.remember(900, "text")
    assert not stream.drop(400)
    assert stream.start_sample == 500
    assert stream.speculated(900) == "text"


def test_too_much_kept_audio_is_an_error_and_none_of_it_is_dropped_in_silence() -> None:
    stream: Stream[str] = Stream(0.5)
    stream.push(silence(MAX_UTTERANCE_S))
    with pytest.raises(PeerError) as caught:
        stream.push(silence(0.02))
    assert caught.value.code == "too_long"
    assert stream.span(None).pcm.size == 16000 * MAX_UTTERANCE_S


def test_a_speculation_is_known_by_its_end_until_the_audio_before_it_changes() -> None:
    stream = stream_with(1000)
    stream.remember(600, "one")
    assert stream.speculated(600) == "one"
    assert stream.speculated(601) is None
    stream.drop(100)
    assert stream.speculated(600) is None


def test_the_oldest_speculation_is_forgotten_first() -> None:
    stream = stream_with(1000)
    for end in range(MAX_SPECULATIONS + 1):
        stream.remember(end, str(end))
    assert stream.speculated(0) is None
    assert stream.speculated(1) == "1"


def test_a_partial_is_due_after_half_a_second_of_new_audio() -> None:
    stream = stream_with(7999)
    assert not stream.partial_due
    stream.push(counting(0, 1))
    assert stream.partial_due
    assert stream.take_partial().end_sample == 8000
    assert not stream.partial_due


def test_after_a_final_the_next_partial_waits_for_its_own_audio() -> None:
    stream = stream_with(20000)
    stream.drop(16000)
    assert not stream.partial_due


@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "drop", "span", "partial", "revision"]), st.integers(0, 20000)), max_size=40
    )
)
def test_audio_is_neither_lost_nor_renumbered(events: list[tuple[str, int]]) -> None:
    stream: Stream[str] = Stream(0.5)
    start = received = 0
    revisions = [0]
    for what, number in events:
        end = min(number, received)
        match what:
            case "push":
                stream.push(counting(received, number))
                received += number
            case "drop":
                stream.drop(end)
                start = max(start, end)
            case "span" if end >= start:
                assert np.array_equal(stream.span(end).pcm, counting(start, end - start))
            case "partial" if stream.partial_due:
                span = stream.take_partial()
                assert (span.start_sample, span.end_sample) == (start, received)
                assert not stream.partial_due
            case "revision":
                revisions.append(stream.next_revision())
        assert (stream.start_sample, stream.received) == (start, received)
    assert np.array_equal(stream.span(None).pcm, counting(start, received - start))
    assert revisions == sorted(set(revisions))
