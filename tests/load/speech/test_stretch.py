from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load.speech.stretch import HOP_S, SEARCH_S, stretched

RATE_HZ = 16000


@settings(max_examples=30)
@given(st.integers(1, 20_000), st.floats(0.5, 2.0))
def test_length_follows_the_speed_and_labels_stay_inside_and_in_order(size: int, speed: float) -> None:
    audio = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    made = stretched(audio, RATE_HZ, speed)
    assert made.audio.size == round(size / speed)
    carried = [made.carry(sample) for sample in range(0, size, 97)]
    assert carried == sorted(carried)
    assert all(0 <= at <= made.audio.size for at in carried)


def test_full_speed_changes_nothing() -> None:
    audio = np.random.default_rng(1).standard_normal(8000).astype(np.float32)
    assert np.allclose(stretched(audio, RATE_HZ, 1.0).audio, audio, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("speed", [0.6, 0.8, 1.25, 1.7])
@settings(max_examples=20)
@given(at_s=st.floats(0.1, 0.8), length_s=st.floats(0.1, 0.5))
def test_a_burst_sounds_where_its_middle_is_carried(speed: float, at_s: float, length_s: float) -> None:
    start, end = round(at_s * RATE_HZ), round((at_s + length_s) * RATE_HZ)
    audio = np.zeros(2 * RATE_HZ, np.float32)
    audio[start:end] = np.sin(2 * np.pi * 210 * np.arange(end - start) / RATE_HZ)
    made = stretched(audio, RATE_HZ, speed)
    loud = np.flatnonzero(np.abs(made.audio) > 0.05)
    assert made.carry((start + end) // 2) == pytest.approx((loud[0] + loud[-1]) / 2, abs=(HOP_S + SEARCH_S) * RATE_HZ)
    assert (loud[-1] - loud[0]) == pytest.approx((end - start) / speed, abs=2 * (HOP_S + SEARCH_S) * RATE_HZ)
