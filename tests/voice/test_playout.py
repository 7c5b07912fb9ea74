import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.playout import Playout, SpokenWord
from wire.pcm import AUDIO_FRAME_S

RATE_HZ = 16000
LEAD_S = 0.16
MESSAGE = round(AUDIO_FRAME_S * RATE_HZ)


def ramp(start: int, num_samples: int) -> np.ndarray:
    return np.arange(start, start + num_samples, dtype=np.int64).astype(np.int16)


def drain(playout: Playout, now: float, *, more_comes: bool = False) -> list[np.ndarray]:
    messages = []
    while (pcm := playout.take(now, more_comes=more_comes)) is not None:
        messages.append(pcm)
    return messages


def play(playout: Playout, start: float, end: float, every: float = AUDIO_FRAME_S) -> None:
    for step in range(round((end - start) / every) + 1):
        drain(playout, start + step * every)


def test_the_lead_leaves_at_once_and_the_rest_in_real_time():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))

    assert sum(map(len, drain(playout, 10.0))) == LEAD_S * RATE_HZ
    assert playout.next_due_s(10.0, more_comes=False) == pytest.approx(0.0)
    play(playout, 10.0, 10.5)
    assert playout.sent == pytest.approx((0.5 + LEAD_S) * RATE_HZ, abs=MESSAGE)


def test_stalls_shorter_than_the_lead_do_not_shift_the_clock():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, 4 * RATE_HZ))
    play(playout, 0.0, 1.5, every=0.15)

    assert playout.heard(1.5) == pytest.approx(1.5 * RATE_HZ, abs=1)
    assert playout.num_underruns == 0


def test_a_stall_longer_than_the_lead_stops_the_clock_for_as_long():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, 4 * RATE_HZ))
    drain(playout, 0.0)
    drain(playout, 0.5)

    assert playout.num_underruns == 1
    assert playout.heard(0.6) == pytest.approx((LEAD_S + 0.1) * RATE_HZ, abs=1)


def test_running_dry_within_an_utterance_is_an_underrun():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, MESSAGE))
    drain(playout, 0.0, more_comes=True)
    playout.push(ramp(0, MESSAGE))
    drain(playout, 1.0, more_comes=False)

    assert playout.num_underruns == 1
    assert playout.heard(1.0) == MESSAGE  # the clock stood while there was nothing to hear


def test_silence_between_utterances_is_no_underrun():
    playout = Playout(RATE_HZ, LEAD_S)
    for now in (0.0, 5.0):
        playout.push(ramp(0, MESSAGE))
        drain(playout, now)
        playout.end_utterance()

    assert playout.num_underruns == 0


def test_a_part_of_a_message_waits_for_its_rest():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, MESSAGE - 1))

    assert playout.take(0.0, more_comes=True) is None
    assert playout.next_due_s(0.0, more_comes=True) is None
    assert len(drain(playout, 0.0, more_comes=False)[0]) == MESSAGE - 1


def test_words_count_once_more_than_half_was_heard():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    playout.add_words([SpokenWord("one", 0, 4000, 3), SpokenWord("two", 4000, 8000, 7)])
    play(playout, 0.0, 0.6)

    assert playout.heard_chars(0.12, 0) == 0
    assert playout.heard_chars(0.13, 0) == 3
    assert playout.heard_chars(0.6, 0) == 7


def test_an_acknowledgement_corrects_the_estimate():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    drain(playout, 0.0)

    assert playout.acknowledge(800, 0.1)  # the listener is 50 ms behind
    assert playout.heard(0.1) == 800
    assert playout.heard(0.11) == pytest.approx(800 + 160, abs=1)


@pytest.mark.parametrize("sample", [-1, RATE_HZ])
def test_an_acknowledgement_of_what_was_never_sent_is_refused(sample: int):
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, MESSAGE))
    drain(playout, 0.0)

    assert not playout.acknowledge(sample, 0.0)


def test_clear_drops_what_is_queued_and_nothing_of_it_counts_as_heard_later():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    playout.add_words([SpokenWord("word", 0, RATE_HZ, 4)])
    drain(playout, 0.0)

    assert playout.clear(0.05) == RATE_HZ - LEAD_S * RATE_HZ
    assert drain(playout, 9.0) == []
    assert playout.heard_chars(9.0, 0) == 0
    assert playout.is_over(0.05)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 5000)),
        st.tuples(st.just("wait"), st.floats(0, 0.5)),
        st.tuples(st.just("clear"), st.just(0)),
        st.tuples(st.just("ack"), st.integers(0, 60000)),
    ),
    max_size=60,
)


@given(steps, st.booleans())
def test_samples_are_conserved_in_order_and_never_further_ahead_than_the_lead(
    events: list[tuple[str, float]], more_comes: bool
):
    playout, now, pushed, expected, taken = Playout(RATE_HZ, LEAD_S), 1.0, 0, [], []
    for what, value in events:
        match what:
            case "push":
                expected.append(ramp(pushed, int(value)))
                playout.push(expected[-1])
                pushed += int(value)
            case "wait":
                now += value
            case "clear":
                queued = playout.end - playout.sent
                assert playout.clear(now) == queued
                flat = np.concatenate(expected) if expected else np.zeros(0, np.int16)
                expected = [flat[: flat.size - queued]]
            case "ack":
                playout.acknowledge(int(value), now)
        before = playout.sent
        taken += drain(playout, now, more_comes=more_comes)
        assert playout.sent - before <= (LEAD_S + 0.5) * RATE_HZ + MESSAGE
        assert 0 <= playout.heard(now) <= playout.sent <= playout.end
    got = np.concatenate(taken) if taken else np.zeros(0, np.int16)
    flat = np.concatenate(expected) if expected else np.zeros(0, np.int16)
    np.testing.assert_array_equal(got, flat[: got.size])
    assert flat.size - got.size == playout.end - playout.sent


@given(st.lists(st.floats(0.001, 0.3), min_size=1, max_size=50))
def test_no_more_than_the_lead_is_ever_ahead(waits: list[float]):
    playout, now = Playout(RATE_HZ, LEAD_S), 0.0
    playout.push(ramp(0, 30 * RATE_HZ))
    for wait in waits:
        drain(playout, now)
        assert playout.sent - now * RATE_HZ <= LEAD_S * RATE_HZ + MESSAGE
        now += wait
