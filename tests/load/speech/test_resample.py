from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.speech.resample import band_passed, resampled

RATES_HZ = (8000, 16000, 22050, 24000, 44100, 48000)


def sine(hz: float, seconds: float, rate_hz: int) -> np.ndarray:
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    # It begins and ends softly: a cut sine has frequencies of its own.
    return (0.5 * np.sin(2 * np.pi * hz * t) * np.sin(np.pi * t / seconds) ** 2).astype(np.float32)


@given(st.sampled_from(RATES_HZ), st.sampled_from(RATES_HZ), st.floats(100, 3000))
def test_a_tone_is_the_same_tone_at_the_same_time(from_hz: int, to_hz: int, hz: float) -> None:
    made, wanted = resampled(sine(hz, 0.3, from_hz), from_hz, to_hz), sine(hz, 0.3, to_hz)
    size = min(made.size, wanted.size)
    assert abs(made.size - wanted.size) <= 1
    assert np.abs(made[:size] - wanted[:size]).max() < 0.002


@pytest.mark.parametrize("hz", [4500, 6000, 7900])
def test_what_the_lower_rate_cannot_hold_does_not_fold_back(hz: float) -> None:
    made = resampled(sine(hz, 0.3, 16000), 16000, 8000)
    assert np.abs(made).max() < 0.002


@given(st.integers(0, 3000), st.sampled_from(RATES_HZ), st.sampled_from(RATES_HZ))
def test_every_length_is_kept_in_seconds(size: int, from_hz: int, to_hz: int) -> None:
    made = resampled(np.zeros(size, np.float32), from_hz, to_hz)
    assert made.size == -(-size * to_hz // from_hz)


@pytest.mark.parametrize(("hz", "passes"), [(150, False), (400, True), (3000, True), (3700, False)])
def test_only_the_band_passes(hz: float, *, passes: bool) -> None:
    tone = sine(hz, 0.5, 8000)
    made = band_passed(tone, 8000, 300, 3400, 100)
    assert np.abs(made - tone).max() < 0.005 if passes else np.abs(made).max() < 0.005
