from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.measure import DRY_S
from load.replay.player import underruns_s
from wire.pcm import Pcm16

RATE_HZ = 1000


def packet(length_s: float) -> Pcm16:
    return np.zeros(round(length_s * RATE_HZ), np.int16)


def test_audio_ahead_of_time_never_runs_dry() -> None:
    assert underruns_s([(5.0, packet(1)), (5.1, packet(1)), (6.9, packet(1))], RATE_HZ) == []


def test_a_packet_that_comes_too_late_is_a_silence_and_moves_what_follows() -> None:
    audio = [(0.0, packet(0.5)), (0.8, packet(0.5)), (1.2, packet(0.5)), (2.0, packet(0.5))]
    assert underruns_s(audio, RATE_HZ) == pytest.approx([0.3, 0.2])


def test_what_a_listeners_buffer_holds_does_not_count() -> None:
    assert underruns_s([(0.0, packet(0.5)), (0.5 + 0.9 * DRY_S, packet(0.5))], RATE_HZ) == []


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0.01, 1)), min_size=1, max_size=20))
def test_silences_are_what_the_last_sample_is_late_by(steps: list[tuple[float, float]]) -> None:
    now, audio = 0.0, []
    for wait_s, length_s in steps:
        now += wait_s
        audio.append((now, packet(length_s)))
    dry_s = underruns_s(audio, RATE_HZ)
    end_s = max(
        at_s + sum(pcm.size for _, pcm in audio[i:]) / RATE_HZ for i, (at_s, _) in enumerate(audio)
    )  # it ends when what followed the packet that was last waited for has been played
    late_s = end_s - audio[0][0] - sum(pcm.size for _, pcm in audio) / RATE_HZ
    assert sum(dry_s) <= late_s + 1e-9
    assert sum(dry_s) >= late_s - len(audio) * DRY_S - 1e-9


def test_nothing_heard_is_no_silence() -> None:
    assert underruns_s([], RATE_HZ) == []
