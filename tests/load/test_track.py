from __future__ import annotations

import numpy as np
import pytest

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
