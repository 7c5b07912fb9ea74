from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from stt.files import decode
from tests.speech import RATE_HZ, tone
from wire.errors import PeerError


def file(pcm: np.ndarray, rate_hz: int, form: str, subtype: str | None = None) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate_hz, format=form, subtype=subtype)
    return buffer.getvalue()


def loudest_hz(pcm: np.ndarray) -> float:
    return float(np.argmax(np.abs(np.fft.rfft(pcm))) * RATE_HZ / pcm.size)


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3"])
@pytest.mark.parametrize("rate_hz", [8000, 16000, 44100, 48000])
def test_every_format_and_rate_becomes_16_khz(form: str, rate_hz: int) -> None:
    t = np.arange(rate_hz) / rate_hz
    pcm = decode(file(0.5 * np.sin(2 * np.pi * 500 * t), rate_hz, form))
    assert pcm.dtype == np.int16
    assert pcm.size == pytest.approx(RATE_HZ, abs=0.1 * RATE_HZ)
    assert loudest_hz(pcm) == pytest.approx(500, abs=3)


def test_channels_are_averaged() -> None:
    left = tone(1, 300, -20)
    pcm = decode(file(np.stack([left, -left], axis=1), RATE_HZ, "WAV"))
    assert np.abs(pcm).max() <= 1


def test_16_khz_mono_passes_through_unchanged() -> None:
    pcm = tone(1, 300, -20)
    assert np.array_equal(decode(file(pcm, RATE_HZ, "WAV")), pcm)


def test_values_that_are_no_numbers_do_not_get_through() -> None:
    audio = np.full(RATE_HZ, np.nan, np.float32)
    assert not decode(file(audio, RATE_HZ, "WAV", "FLOAT")).any()


@pytest.mark.parametrize("data", [b"", b"RIFF", b"no audio at all" * 100, file(tone(1, 300), 16000, "FLAC")[:20]])
def test_what_is_no_audio_file_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(PeerError, match=r"cannot read the file as audio|no audio") as caught:
        decode(data)
    assert caught.value.code == "bad_audio"
    assert "0x" not in str(caught.value)


def test_a_file_without_samples_is_an_error() -> None:
    with pytest.raises(PeerError, match="no audio"):
        decode(file(np.zeros(0, np.int16), RATE_HZ, "WAV"))


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_hours_is_refused() -> None:
    data = file(np.zeros(1801 * 8000, np.int16), 8000, "FLAC")
    assert len(data) < 200_000
    with pytest.raises(PeerError, match="1800 s") as caught:
        decode(data)
    assert caught.value.code == "too_long"


@pytest.mark.parametrize("rate_hz", [1, 7, 3999])
def test_a_rate_that_would_multiply_a_small_file_is_refused(rate_hz: int) -> None:
    with pytest.raises(PeerError, match=f"sample rate {rate_hz} Hz"):
        decode(file(np.zeros(12000, np.int16), rate_hz, "WAV"))
