"""Recorded speech for tests: clips of the dev dependency `pytest-audioeval`, found without importing it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import soundfile

from voice.media.resample import Resampler
from wire.pcm import to_int16

RATE_HZ = 16000


def clip_paths(language: str = "en") -> list[Path]:
    spec = find_spec("pytest_audioeval")
    assert spec is not None, "pip install --no-deps pytest-audioeval"
    assert spec.submodule_search_locations is not None
    return sorted((Path(spec.submodule_search_locations[0]) / "samples/audio" / language).glob("*.wav"))


def read(path: Path, rate_hz: int = RATE_HZ) -> np.ndarray:
    """int16 mono at `rate_hz`."""
    # As float: read as int16, soundfile does not scale files that hold floats.
    audio, from_hz = soundfile.read(path, dtype="float32", always_2d=True)
    resampler = Resampler(from_hz, rate_hz)
    return np.concatenate([resampler.push(to_int16(audio[:, 0])), resampler.flush()])


def clip(name: str, rate_hz: int = RATE_HZ) -> tuple[np.ndarray, str]:
    """An English clip and its text."""
    [path] = [p for p in clip_paths() if p.stem == name]
    return read(path, rate_hz), path.with_suffix(".txt").read_text().strip()


def silence(seconds: float, rate_hz: int = RATE_HZ) -> np.ndarray:
    return np.zeros(round(seconds * rate_hz), np.int16)


def white_noise(seconds: float, dbfs: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        (rng.standard_normal(round(seconds * RATE_HZ)) * 32768 * 10 ** (dbfs / 20)).clip(-32768, 32767).astype(np.int16)
    )


def tone(seconds: float, hz: float, dbfs: float = -12) -> np.ndarray:
    t = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    return (np.sin(2 * np.pi * hz * t) * 32767 * 10 ** (dbfs / 20)).astype(np.int16)
