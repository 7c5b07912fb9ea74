import numpy as np
import pytest

from tests.speech import silence, tone, white_noise
from voice.media.level import Loudness, first_audible, rms, speech_end

RATE_HZ = 16000


@pytest.mark.parametrize("noise_dbfs", [-90, -60])
@pytest.mark.parametrize("end_s", [0.31, 0.5, 1.27])
def test_the_end_of_speech_is_found_to_10_ms(noise_dbfs: float, end_s: float):
    pcm = white_noise(2.0, noise_dbfs)
    pcm[: round(end_s * RATE_HZ)] += tone(end_s, 220)

    assert speech_end(pcm, RATE_HZ) == pytest.approx(end_s * RATE_HZ, abs=0.01 * RATE_HZ)


def test_the_end_of_speech_is_found_on_a_noisy_line_whose_noise_is_known():
    pcm = white_noise(2.0, -38)
    pcm[:16000] += tone(1.0, 220)

    assert speech_end(pcm, RATE_HZ) == pcm.size  # noise 26 dB below the speech passes for it
    assert speech_end(pcm, RATE_HZ, rms(pcm[20000:])) == pytest.approx(16000, abs=160)


@pytest.mark.parametrize("pcm", [silence(1), white_noise(1, -70), silence(0.005), silence(0)])
def test_no_speech_ends_nowhere(pcm: np.ndarray):
    assert speech_end(pcm, RATE_HZ) == 0


def test_first_audible_skips_silence_and_comfort_noise():
    pcm = white_noise(0.5, -60)
    pcm[4000:] += tone(0.5, 200)[: pcm.size - 4000]

    assert first_audible(pcm) == pytest.approx(4000, abs=5)
    assert first_audible(white_noise(0.5, -60)) is None


@pytest.mark.parametrize("noise_dbfs", [-90, -40])
def test_a_line_is_quiet_as_it_was_before_the_utterance(noise_dbfs: float):
    noise = white_noise(0.32, noise_dbfs)
    windows = [noise[i * 512 : (i + 1) * 512] for i in range(10)]
    loudness = Loudness(windows[:5])

    assert not loudness.is_quiet(windows[5] + tone(0.032, 220))
    assert all(loudness.is_quiet(window) for window in windows[6:])


def test_speech_is_not_quiet_where_nothing_is_known_of_the_line():
    loudness = Loudness(())

    assert not loudness.is_quiet(tone(0.032, 220))
    assert not loudness.is_quiet((tone(0.032, 220) // 2).astype(np.int16))
