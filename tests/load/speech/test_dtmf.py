from __future__ import annotations

import numpy as np
import pytest

from load.hearing import clicks
from load.speech.dtmf import HIGH_HZ, KEYS, LOW_HZ, tones
from wire.pcm import to_int16

RATE_HZ = 8000


@pytest.mark.parametrize("key", "".join(KEYS))
def test_each_key_is_its_two_frequencies(key: str) -> None:
    tone = tones(key, RATE_HZ, tone_s=0.5, gap_s=0)
    spectrum = np.abs(np.fft.rfft(tone))
    loudest = sorted(np.argsort(spectrum)[-2:] * 2)  # bins are 2 Hz wide
    row = next(row for row, names in enumerate(KEYS) if key in names)
    assert loudest == pytest.approx([LOW_HZ[row], HIGH_HZ[KEYS[row].index(key)]], abs=2)


def test_keys_follow_each_other_with_gaps() -> None:
    audio = tones("1#4", RATE_HZ, tone_s=0.1, gap_s=0.05)
    assert audio.size == round(3 * 0.15 * RATE_HZ)
    assert np.all(audio[800:1200] == 0)
    assert clicks(to_int16(audio), RATE_HZ) == []


def test_no_key_is_no_tone() -> None:
    assert tones("", RATE_HZ).size == 0
