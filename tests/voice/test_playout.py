import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.playout import (
    ACKNOWLEDGED_WITHIN_S,
    GUESSED_WITHIN_S,
    MAX_BEHIND_S,
    REPORTED_WITHIN_S,
    Heard,
    Playout,
    SpokenWord,
)
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


def test_a_lowered_voice_loses_no_sample_and_makes_no_click():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(np.full(RATE_HZ, 10_000, np.int16))
    drain(playout, 0.0)
    playout.duck(0.25)
    lowered = np.concatenate(drain(playout, 0.1))
    playout.duck(1.0)
    raised = np.concatenate(drain(playout, 0.2))
    assert lowered[-1] == 2500
    assert raised[-1] == 10_000
    assert np.abs(np.diff(np.concatenate([[10_000], lowered, raised]).astype(int))).max() < 100
    assert playout.sent == pytest.approx((0.2 + LEAD_S) * RATE_HZ, abs=MESSAGE)


def test_a_voice_that_was_lowered_is_as_loud_as_ever_in_the_next_utterance():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(np.full(MESSAGE, 10_000, np.int16))
    playout.duck(0.25)
    drain(playout, 0.0)
    playout.end_utterance()
    playout.push(np.full(MESSAGE, 10_000, np.int16))
    assert np.concatenate(drain(playout, 1.0)).min() == 10_000


def test_a_pause_ends_where_it_began():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    before = drain(playout, 0.0, more_comes=True)
    playout.pause()
    assert drain(playout, 0.5, more_comes=True) == []
    assert playout.next_due_s(0.5, more_comes=True) is None
    assert playout.heard(0.5) == playout.sent  # what the listener had still sounded
    playout.resume(0.6)
    after = drain(playout, 0.6, more_comes=True)
    np.testing.assert_array_equal(np.concatenate([*before, *after]), ramp(0, round(2 * LEAD_S * RATE_HZ)))
    assert playout.num_underruns == 0
    assert playout.heard(0.65) == pytest.approx((LEAD_S + 0.05) * RATE_HZ, abs=1)


def test_a_listener_who_dropped_what_he_had_gets_it_again_from_where_he_stopped():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    drain(playout, 0.0)
    playout.pause()
    playout.acknowledge(1000, 0.07)
    playout.resume(0.5, at_sample=1000)
    again = np.concatenate(drain(playout, 0.5))
    np.testing.assert_array_equal(again, ramp(1000, again.size))
    assert playout.heard(0.51) == pytest.approx(1000 + 0.01 * RATE_HZ, abs=0.005 * RATE_HZ)
    assert playout.end == RATE_HZ


@pytest.mark.parametrize("way_s", [0.0, 0.01, 0.05])
def test_an_acknowledgement_is_as_old_as_its_way(way_s: float):
    """The listener has 30 ms of audio lying before him, and plays it in real time."""
    playout = Playout(RATE_HZ, LEAD_S)
    playout.way_s = way_s
    playout.push(ramp(0, 2 * RATE_HZ))
    drain(playout, 0.0)
    for step in range(1, 20):
        now = step * 0.02
        drain(playout, now)
        played = round((now - 2 * way_s - 0.03) * RATE_HZ)  # when he said so
        if played > 0:
            assert playout.acknowledge(played, now)
    truth = (now - way_s - 0.03) * RATE_HZ
    assert playout.heard(now) == pytest.approx(truth, abs=2)
    assert playout.take_back(now) == pytest.approx(truth + way_s * RATE_HZ, abs=2)


@pytest.mark.parametrize("sample", [-1, RATE_HZ])
def test_what_was_not_sent_cannot_be_sent_again(sample: int):
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    drain(playout, 0.0)
    with pytest.raises(ValueError, match="not among the last"):
        playout.resume(0.1, at_sample=sample)


def test_what_became_of_each_word():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    words = [SpokenWord(str(n), n * 1600, (n + 1) * 1600, n) for n in range(4)]
    playout.add_words(words)
    play(playout, 0.0, 0.16)
    assert [state for _, state in playout.ledger(0.16)] == ["heard", "heard", "sent", "queued"]
    playout.clear(0.16)
    assert playout.ledger(0.2) == [(words[2], "cleared"), (words[3], "cleared")]
    playout.end_utterance()
    assert playout.ledger(0.2) == []


def test_a_late_loop_gets_a_longer_lead_and_a_punctual_one_the_usual():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, 30 * RATE_HZ))
    now = 0.0
    for late_s in (0.0, 0.005, 0.12):
        drain(playout, now)
        now += playout.next_due_s(now, more_comes=False) + late_s
    drain(playout, now)
    assert playout.lead_s(now) == pytest.approx(0.24, abs=0.001)
    assert playout.sent - now * RATE_HZ == pytest.approx(0.24 * RATE_HZ, abs=MESSAGE)
    assert playout.lead_s(now + 3) == LEAD_S
    playout.next_due_s(now, more_comes=False)
    drain(playout, now + 5)
    assert playout.lead_s(now + 5) == 0.4


def test_how_far_he_has_heard_is_told_with_how_sure_it_is():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    play(playout, 0.0, 0.5)
    assert playout.heard_up_to(0.5) == Heard(round(0.5 * RATE_HZ), GUESSED_WITHIN_S)
    playout.listener_delay_s = 0.06
    assert playout.heard_up_to(0.5) == Heard(round(0.44 * RATE_HZ), REPORTED_WITHIN_S)
    assert playout.acknowledge(round(0.42 * RATE_HZ), 0.5)
    assert playout.heard_up_to(0.5) == Heard(round(0.42 * RATE_HZ), ACKNOWLEDGED_WITHIN_S)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 5000)),
        st.tuples(st.just("wait"), st.floats(0, 0.5)),
        st.tuples(st.just("clear"), st.just(0)),
        st.tuples(st.just("ack"), st.integers(0, 60000)),
        st.tuples(st.just("pause"), st.just(0)),
        st.tuples(st.just("resume"), st.just(0)),
        st.tuples(st.just("again"), st.integers(0, 3000)),
        st.tuples(st.just("duck"), st.sampled_from([0.25, 1.0])),
    ),
    max_size=60,
)


@given(steps, st.booleans())
def test_samples_are_conserved_in_order_and_never_further_ahead_than_the_lead(
    events: list[tuple[str, float]], more_comes: bool
):
    playout, now, pushed, expected, taken, ducked = Playout(RATE_HZ, LEAD_S), 1.0, 0, [], [], False
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
            case "pause":
                playout.pause()
            case "resume":
                playout.resume(now)
            case "again":
                flat = np.concatenate(taken) if taken else np.zeros(0, np.int16)
                keep = flat.size - min(int(value), flat.size)
                try:
                    playout.resume(now, at_sample=keep)
                    taken = [flat[:keep]]
                except ValueError:
                    assert flat.size - keep > 0  # cleared, or too long ago
            case "duck":
                ducked = ducked or value < 1
                playout.duck(value)
        before = playout.sent
        taken += (more := drain(playout, now, more_comes=more_comes))
        assert not more or not playout.is_paused
        assert playout.sent - before <= (LEAD_S + 0.5) * RATE_HZ + MESSAGE
        assert 0 <= playout.heard(now) <= playout.sent <= playout.end
    got = np.concatenate(taken) if taken else np.zeros(0, np.int16)
    flat = np.concatenate(expected) if expected else np.zeros(0, np.int16)
    if not ducked:
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


@pytest.mark.parametrize(("way_s", "acknowledges", "within_s"), [(0.03, True, 0.04), (0.03, False, 0.08)])
@pytest.mark.parametrize("gap_at_s", [None, 1.0])
def test_what_he_has_heard_is_known_to_within_what_is_told(
    way_s: float, acknowledges: bool, within_s: float, gap_at_s: float | None
):
    """A listener who plays what comes `way_s` later, and says each 100 ms how far he is, or whose delay is reported."""
    playout, delay_s = Playout(RATE_HZ, LEAD_S), way_s + 0.02
    playout.listener_delay_s = None if acknowledges else delay_s - 0.01  # nobody knows his buffer exactly
    under_way: list[tuple[float, int]] = []  # arrives, samples
    acks: list[tuple[float, int]] = []
    played, buffered, worst_s = 0.0, 0, 0.0
    playout.push(ramp(0, RATE_HZ // 4))  # so that a gap of the voice is heard
    for tick in range(3000):
        now = tick / 1000
        if tick % 10 == 0 and not (gap_at_s is not None and gap_at_s <= now < gap_at_s + 0.4):
            playout.push(ramp(0, RATE_HZ // 100))
        under_way += [(now + delay_s, pcm.size) for pcm in drain(playout, now, more_comes=True)]
        while under_way and under_way[0][0] <= now:
            buffered += under_way.pop(0)[1]
        step = min(float(buffered), RATE_HZ / 1000)
        played, buffered = played + step, buffered - round(step)
        if acknowledges and tick % 100 == 0:
            acks.append((now + way_s, int(played)))
        while acks and acks[0][0] <= now:
            playout.acknowledge(acks.pop(0)[1], now)
        if tick > 300:
            found = playout.heard_up_to(now)
            assert found.within_s == within_s
            worst_s = max(worst_s, abs(found.sample - played) / RATE_HZ)
    assert worst_s <= within_s
    assert playout.num_underruns == (gap_at_s is not None)


def test_a_listener_who_stops_playing_does_not_keep_the_utterance_for_ever():
    playout = Playout(RATE_HZ, LEAD_S)
    playout.push(ramp(0, RATE_HZ))
    for tenth in range(round(10 * (1 + MAX_BEHIND_S))):
        drain(playout, 0.1 * tenth)
        playout.acknowledge(0, 0.1 * tenth)
        assert not playout.is_over(0.1 * tenth)

    now = 1.0 + MAX_BEHIND_S
    playout.acknowledge(0, now)
    assert playout.is_over(now)
    assert playout.heard(now) == 0
