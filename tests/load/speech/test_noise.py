from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.speech.noise import noise
from load.speech.sound import Sound
from tests.load.speech.waves import words

RATE_HZ = 16000
KINDS = ("white", "pink", "babble", "hum")
TALKERS = [words([0.3, 0.5]), words([0.7]), words([0.2, 0.2, 0.4])]


def band_power(audio: np.ndarray, low_hz: float, high_hz: float) -> float:
    hz = np.fft.rfftfreq(audio.size, 1 / RATE_HZ)
    return float(np.sum(np.abs(np.fft.rfft(audio))[(hz >= low_hz) & (hz < high_hz)] ** 2))


@pytest.mark.parametrize("kind", KINDS)
@given(num_samples=st.integers(1, 20_000), seed=st.integers(0, 100))
def test_noise_has_the_length_asked_for_an_rms_of_one_and_repeats(kind, num_samples: int, seed: int) -> None:
    first, second = (noise(kind, num_samples, RATE_HZ, np.random.default_rng(seed), TALKERS) for _ in range(2))
    assert first.size == num_samples
    assert np.array_equal(first, second)
    if num_samples > RATE_HZ // 2:
        assert np.sqrt(np.mean(first.astype(float) ** 2)) == pytest.approx(1, abs=0.01)


def test_no_noise_is_nothing() -> None:
    assert noise("pink", 0, RATE_HZ, np.random.default_rng(0)).size == 0


def test_white_has_equal_power_per_hertz_and_pink_per_octave() -> None:
    white = noise("white", 10 * RATE_HZ, RATE_HZ, np.random.default_rng(1))
    pink = noise("pink", 10 * RATE_HZ, RATE_HZ, np.random.default_rng(1))
    assert band_power(white, 2000, 4000) / band_power(white, 1000, 2000) == pytest.approx(2, rel=0.1)
    assert band_power(pink, 2000, 4000) / band_power(pink, 1000, 2000) == pytest.approx(1, rel=0.1)


def test_hum_is_harmonics_of_the_mains() -> None:
    hum = noise("hum", RATE_HZ, RATE_HZ, np.random.default_rng(2))
    loudest_hz = int(np.abs(np.fft.rfft(hum)).argmax())
    assert loudest_hz in (50, 60)
    assert band_power(hum, 0, 800) > 0.99 * band_power(hum, 0, 8000)


def test_babble_leaves_no_pause_that_a_single_talker_has() -> None:
    babble = noise("babble", 4 * RATE_HZ, RATE_HZ, np.random.default_rng(3), TALKERS)
    frames = babble.reshape(-1, RATE_HZ // 50)
    assert np.sqrt(np.mean(frames**2, axis=1)).min() > 0.1


def test_babble_does_not_depend_on_the_level_of_its_talkers() -> None:
    quiet = [Sound(sound.audio * np.float32(0.01), RATE_HZ, sound.start, sound.end) for sound in TALKERS]
    loud, soft = (noise("babble", RATE_HZ, RATE_HZ, np.random.default_rng(4), some) for some in (TALKERS, quiet))
    assert np.allclose(loud, soft, atol=1e-3)
