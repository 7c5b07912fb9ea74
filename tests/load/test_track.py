from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.track import Track
from tests.load.test_hearing import silence, tone

RATE_HZ = 16000


def packets(pcm: np.ndarray, at_s: float, every_s: float = 0.02) -> list[tuple[float, np.ndarray]]:
    size = round(0.02 * RATE_HZ)
    return [(at_s + i * every_s, pcm[n : n + size]) for i, n in enumerate(range(0, pcm.size, size))]


def test_a_burst_is_played_in_order_and_its_onset_counts_from_its_own_packet() -> None:
    """Audio sent ahead: the tone's first packet arrives at 1.005 s and sounds at 1.1 s."""
    pieces = packets(np.concatenate([silence(0.1, RATE_HZ), tone(0.3, RATE_HZ)]), 1.0, every_s=0.001)
    [heard] = Track(pieces, RATE_HZ).audible(0.0, 3.0)
    assert heard.start_s == pytest.approx(1.1, abs=0.01)
    assert heard.end_s == pytest.approx(1.4, abs=0.01)
    assert heard.arrived_s == pytest.approx(1.005)


def test_late_packets_leave_the_player_dry() -> None:
    first, second = packets(tone(0.2, RATE_HZ), 1.0), packets(tone(0.2, RATE_HZ), 1.35)
    track = Track([*first, *second], RATE_HZ)
    assert track.dry_s(1.0, 2.0) == [pytest.approx(0.15)]
    assert len(track.audible(0.0, 3.0)) == 1  # shorter than a pause: one stretch of speech with a hole in it


def test_a_window_cuts_what_it_does_not_hold() -> None:
    track = Track(packets(tone(1.0, RATE_HZ), 1.0), RATE_HZ)
    assert np.any(track.render(1.5, 1.6))
    assert not np.any(track.render(0.0, 0.9))
    [heard] = track.audible(1.5, 1.75)
    assert (heard.start_s, heard.end_s) == (pytest.approx(1.5, abs=0.01), pytest.approx(1.75, abs=0.01))


def test_the_first_packet_counts_silent_or_not() -> None:
    track = Track(packets(silence(0.1, RATE_HZ), 1.0), RATE_HZ)
    assert track.first_packet_s(0.5, 2.0) == 1.0
    assert track.first_packet_s(1.09, 2.0) is None
    assert track.audible(0.0, 2.0) == []


def test_nothing_received_is_nothing_heard() -> None:
    track = Track([], RATE_HZ)
    assert (track.audible(0.0, 1.0), track.dry_s(0.0, 1.0), track.first_packet_s(0.0, 1.0)) == ([], [], None)


def test_what_was_not_played_when_it_was_cleared_is_dropped() -> None:
    """Half a second comes at once; the server takes back what is left after 0.2 s, and speaks anew at 1.6 s."""
    pieces = [*packets(tone(0.5, RATE_HZ), 1.0, every_s=0.0), *packets(tone(0.1, RATE_HZ), 1.6)]
    first, second = Track(pieces, RATE_HZ, [1.2]).audible(0.0, 3.0)
    assert (first.start_s, first.end_s) == (pytest.approx(1.0, abs=0.01), pytest.approx(1.2, abs=0.01))
    assert second.start_s == pytest.approx(1.6, abs=0.01)


def test_what_comes_after_a_clear_is_played_at_once_and_not_behind_what_was_dropped() -> None:
    pieces = [*packets(tone(0.5, RATE_HZ), 1.0, every_s=0.0), *packets(tone(0.1, RATE_HZ), 1.25)]
    track = Track(pieces, RATE_HZ, [1.2, 1.21])
    assert track.dry_s(1.0, 2.0) == [pytest.approx(0.05)]
    assert track.end_s == pytest.approx(1.35)
    assert Track(pieces, RATE_HZ).end_s == pytest.approx(1.6)


def test_lead_is_what_lies_unplayed_when_a_packet_has_come() -> None:
    assert Track(packets(tone(0.4, RATE_HZ), 1.0), RATE_HZ).lead_s(1.0, 2.0) == pytest.approx(0.02)
    assert Track(packets(tone(0.4, RATE_HZ), 1.0, every_s=0.0), RATE_HZ).lead_s(1.0, 2.0) == pytest.approx(0.4)
    assert Track([], RATE_HZ).lead_s(0.0, 1.0) is None


def test_lead_is_that_of_the_packet_that_sounds_and_of_what_was_cleared() -> None:
    assert Track([(1.0, tone(3.0, RATE_HZ))], RATE_HZ).lead_s(1.001, 4.0) == pytest.approx(3.0)
    seconds = [(1.0, tone(1.0, RATE_HZ))] * 5
    assert Track(seconds, RATE_HZ, [2.5]).lead_s(1.001, 3.0) == pytest.approx(5.0)
    assert Track(seconds[:2], RATE_HZ).lead_s(3.0, 4.0) is None


@pytest.mark.parametrize("early_s", [0.0, 1e-9, 0.05])
def test_what_was_played_before_that_time_makes_no_gap_and_no_pause_in_it(early_s: float) -> None:
    track = Track([*packets(tone(0.2, RATE_HZ), 1.0), *packets(tone(0.2, RATE_HZ), 3.0)], RATE_HZ)
    assert track.dry_s(3.0 - early_s, 3.2) == []
    assert track.pauses(3.0 - early_s, 3.2) == []


def test_silence_behind_speech_is_no_packet_and_no_end_of_a_pause() -> None:
    """A line over WebRTC hands silence on for a while."""
    loud, quiet = tone(0.1, RATE_HZ), silence(0.1, RATE_HZ)
    track = Track([(1.0, loud), (1.1, quiet), (1.2, quiet), (1.3, loud)], RATE_HZ)
    assert track.first_packet_s(1.05, 2.0) == 1.3
    assert track.dry_s(1.0, 1.4) == []
    assert len(track.pauses(1.0, 1.4)) == 1


def test_a_pause_knows_what_was_played_what_was_dropped_and_what_followed() -> None:
    first, second = tone(0.5, RATE_HZ), tone(0.2, RATE_HZ, hz=440.0)
    pieces = [*packets(first, 1.0, every_s=0.0), *packets(second, 1.6)]
    [pause] = Track(pieces, RATE_HZ, [1.2]).pauses(1.0, 2.0)
    played = round(0.2 * RATE_HZ)
    assert np.array_equal(pause.before, first[:played])
    assert np.array_equal(pause.dropped, first[played:])
    assert np.array_equal(pause.after, second)
    assert Track(packets(first, 1.0), RATE_HZ).pauses(1.0, 2.0) == []
    late = [*packets(first, 1.0), *packets(second, 1.54)]
    assert Track(late, RATE_HZ).pauses(1.0, 2.0) == []  # a late packet is no pause


def test_audio_is_joined_over_what_ran_dry() -> None:
    whole = tone(0.4, RATE_HZ)
    half = whole.size // 2
    track = Track([*packets(whole[:half], 1.0), *packets(whole[half:], 1.5)], RATE_HZ)
    assert np.array_equal(track.joined(0.0, 3.0), whole)
    assert np.array_equal(track.joined(1.1, 1.6), whole[round(0.1 * RATE_HZ) : round(0.3 * RATE_HZ)])
    assert track.joined(5.0, 6.0).size == 0


@given(
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 800)), max_size=12),
    st.lists(st.floats(0, 6), max_size=4),
)
def test_no_sample_is_played_twice_or_before_it_came_or_after_it_was_cleared(
    packets: list[tuple[float, int]], clears_s: list[float]
) -> None:
    pieces = [(at_s, np.full(size, i + 1, np.int16)) for i, (at_s, size) in enumerate(sorted(packets))]
    track = Track(pieces, 1000, clears_s)
    played = track.render(0.0, 20.0)
    for i, (at_s, pcm) in enumerate(pieces):
        samples = np.flatnonzero(played == i + 1)
        assert samples.size <= pcm.size
        if samples.size:
            assert samples[0] >= round(1000 * at_s) - 1
            ends = [clear_s for clear_s in clears_s if clear_s > at_s]
            assert samples[-1] <= round(1000 * min([*ends, 20.0]))
