"""Sounds without words, and what a telephone does to speech. int16, 16 kHz."""

from __future__ import annotations

from collections.abc import Iterator

import av
import numpy as np

RATE_HZ = 16000
LEVELS_DBFS = (-60, -40, -25, -10)


def wordless(seconds: float, seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """Named signals at several levels."""
    rng = np.random.default_rng(seed)
    num_samples = round(seconds * RATE_HZ)
    yield "silence", np.zeros(num_samples, np.int16)
    shapes = {
        "white": rng.standard_normal(num_samples),
        "pink": _pink(rng, num_samples),
        "brown": np.cumsum(rng.standard_normal(num_samples)),
        "hum50": _harmonics(num_samples, 50),
        "hum60": _harmonics(num_samples, 60),
        "sine440": _tones(num_samples, 440),
        "sine1000": _tones(num_samples, 1000),
        "dial": _tones(num_samples, 350, 440),
        "dial425": _tones(num_samples, 425),
        "busy": _gated(_tones(num_samples, 480, 620), 0.5, 0.5),
        "fax": _tones(num_samples, 2100),
        "dtmf": _dtmf(num_samples),
        "clicks": (rng.random(num_samples) < 10 / RATE_HZ).astype(float),
    }
    for name, shape in shapes.items():
        unit = (shape - shape.mean()) / shape.std()
        for level in LEVELS_DBFS:
            yield f"{name} at {level} dBFS", (unit * 32768 * 10 ** (level / 20)).clip(-32768, 32767).astype(np.int16)


def attenuated(pcm: np.ndarray, by_db: float) -> np.ndarray:
    return np.rint(pcm * 10 ** (-by_db / 20)).astype(np.int16)


def telephone(pcm: np.ndarray) -> np.ndarray:
    """8 kHz and mu-law (ITU-T G.711, the continuous curve) there and back."""
    narrow = _resampled(pcm, RATE_HZ, 8000) / 32768
    coded = np.rint(np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256) * 127) / 127
    linear = np.sign(coded) * (256 ** np.abs(coded) - 1) / 255
    return _resampled((linear * 32767).astype(np.int16), 8000, RATE_HZ)


def noisy(pcm: np.ndarray, snr_db: float, seed: int = 0) -> np.ndarray:
    level = np.sqrt(np.mean(pcm.astype(float) ** 2)) * 10 ** (-snr_db / 20)
    noise = np.random.default_rng(seed).standard_normal(pcm.size) * level
    return (pcm + noise).clip(-32768, 32767).astype(np.int16)


def _tones(num_samples: int, *hz: float) -> np.ndarray:
    t = np.arange(num_samples) / RATE_HZ
    return np.sum([np.sin(2 * np.pi * each * t) for each in hz], axis=0)


def _harmonics(num_samples: int, hz: float) -> np.ndarray:
    return np.sum([_tones(num_samples, hz * k) / k for k in range(1, 9)], axis=0)


def _gated(shape: np.ndarray, on_s: float, off_s: float) -> np.ndarray:
    return shape * (np.arange(shape.size) / RATE_HZ % (on_s + off_s) < on_s)


def _dtmf(num_samples: int) -> np.ndarray:
    keys = [(697, 1209), (770, 1336), (852, 1477), (941, 1336), (697, 1477)]
    parts = [_gated(_tones(RATE_HZ // 5, *keys[i % 5]), 0.1, 0.1) for i in range(num_samples * 5 // RATE_HZ + 1)]
    return np.concatenate(parts)[:num_samples]


def _pink(rng: np.random.Generator, num_samples: int) -> np.ndarray:
    spectrum = np.fft.rfft(rng.standard_normal(num_samples))
    return np.fft.irfft(spectrum / np.sqrt(np.maximum(1, np.arange(spectrum.size))), num_samples)


def _resampled(pcm: np.ndarray, from_hz: int, to_hz: int) -> np.ndarray:
    resampler = av.AudioResampler(format="s16", layout="mono", rate=to_hz)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(pcm)[np.newaxis], format="s16", layout="mono")
    frame.sample_rate = from_hz
    return np.concatenate([out.to_ndarray()[0] for out in [*resampler.resample(frame), *resampler.resample(None)]])
