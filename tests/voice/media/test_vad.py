import numpy as np
import pytest

from tests.speech import clip, silence, tone, white_noise
from voice.media import vad
from voice.media.vad import WINDOW_SAMPLES, Silero
from wire.weights import model_dir


@pytest.fixture(scope="module")
def silero() -> Silero:
    return Silero(model_dir("silero-vad"))


def probabilities(silero: Silero, pcm: np.ndarray) -> np.ndarray:
    stream = silero.start()
    windows = pcm[: pcm.size // WINDOW_SAMPLES * WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)
    return np.array([stream.probability(window) for window in windows])


def test_speech_is_speech(silero: Silero):
    pcm, _ = clip("quick_brown_fox")

    assert np.mean(probabilities(silero, pcm) > 0.5) > 0.6


@pytest.mark.parametrize("pcm", [silence(2), white_noise(2, -40), white_noise(2, -20), tone(2, 440)])
def test_silence_noise_and_tones_start_no_utterance(silero: Silero, pcm: np.ndarray):
    is_speech = probabilities(silero, pcm) >= 0.5

    assert not np.any(is_speech[:-1] & is_speech[1:])


def test_streams_do_not_share_state(silero: Silero):
    pcm, _ = clip("hello_world")
    alone = probabilities(silero, pcm)
    other = silero.start()
    stream = silero.start()
    together = []
    for window in pcm[: pcm.size // WINDOW_SAMPLES * WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES):
        together.append(stream.probability(window))
        other.probability(np.flip(window).copy())

    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("down_db", [0, 20, 30])
@pytest.mark.parametrize("pause_s", [0.3, 0.8, 5.0])
def test_speech_after_a_rest_is_found_as_soon_as_without_one(
    silero: Silero, monkeypatch: pytest.MonkeyPatch, pause_s: float, down_db: float
):
    pause = silence(round(pause_s * 16000 / WINDOW_SAMPLES) * WINDOW_SAMPLES / 16000)
    speech = (clip("quick_brown_fox")[0] * 10 ** (-down_db / 20)).astype(np.int16)
    whole = speech[: speech.size // WINDOW_SAMPLES * WINDOW_SAMPLES]
    pcm = np.concatenate([whole, pause, whole])
    rested = probabilities(silero, pcm) > 0.5
    monkeypatch.setattr(vad, "REST_WINDOWS", 1 << 30)
    awake = probabilities(silero, pcm) > 0.5
    begin = (whole.size + pause.size) // WINDOW_SAMPLES
    assert np.argmax(rested[begin:]) <= np.argmax(awake[begin:]) + 1
    assert np.mean(rested == awake) > 0.95
