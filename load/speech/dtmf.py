"""Keys of a telephone as tones within the audio (ITU-T Q.23, Q.24), which nobody is told of but by ear. Pure."""

from __future__ import annotations

import numpy as np

from wire.pcm import Pcm32f

LOW_HZ = (697, 770, 852, 941)
HIGH_HZ = (1209, 1336, 1477, 1633)
KEYS = ("123A", "456B", "789C", "*0#D")
TONE_DBFS = -12.0  # of both tones together
RAMP_S = 0.003


def tones(keys: str, rate_hz: int, tone_s: float = 0.1, gap_s: float = 0.1) -> Pcm32f:
    """Q.24 wants at least 40 ms of both; `keys` are of `KEYS`."""
    gap = np.zeros(round(gap_s * rate_hz), np.float32)
    return np.concatenate([part for key in keys for part in (_tone(key, rate_hz, tone_s), gap)] or [gap[:0]])


def _tone(key: str, rate_hz: int, tone_s: float) -> Pcm32f:
    [(low_hz, high_hz)] = [(LOW_HZ[row], HIGH_HZ[names.index(key)]) for row, names in enumerate(KEYS) if key in names]
    t = np.arange(round(tone_s * rate_hz)) / rate_hz
    wave = np.sin(2 * np.pi * low_hz * t) + np.sin(2 * np.pi * high_hz * t)
    ramp = np.minimum(1, np.minimum(t, t[::-1]) / RAMP_S)
    return (wave * ramp * 10 ** (TONE_DBFS / 20)).astype(np.float32)
