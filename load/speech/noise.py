"""What is heard behind a caller: hiss, traffic, mains hum, other people. Pure; every noise has an RMS of 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from load.speech.sound import Sound, active_rms
from wire.pcm import Pcm32f

NoiseKind: TypeAlias = Literal["white", "pink", "babble", "hum"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)
LOWEST_HZ = 50.0  # of pink noise: below, it would be most of the power and nothing of the sound
MAINS_HZ = (50.0, 60.0)
NUM_HARMONICS = 12
NUM_TALKERS = 6  # fewer can be understood, more sound like hiss


def noise(
    kind: NoiseKind, num_samples: int, rate_hz: int, rng: np.random.Generator, talkers: Sequence[Sound] = ()
) -> Pcm32f:
    """`talkers`, at `rate_hz`, are what babble is made of."""
    if not num_samples:
        return np.zeros(0, np.float32)
    if kind == "white":
        made = rng.standard_normal(num_samples)
    elif kind == "pink":
        made = _pink(num_samples, rate_hz, rng)
    elif kind == "hum":
        made = _hum(num_samples, rate_hz, rng)
    else:
        made = _babble(num_samples, rate_hz, rng, talkers)
    return (made / max(float(np.sqrt(np.mean(made**2))), 1e-9)).astype(np.float32)


def _pink(num_samples: int, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    """Equal power in every octave: amplitudes fall with the root of the frequency."""
    hz = np.fft.rfftfreq(num_samples, 1 / rate_hz)
    spectrum = np.fft.rfft(rng.standard_normal(num_samples))
    shape = np.where(hz < LOWEST_HZ, 0.0, 1 / np.sqrt(np.maximum(hz, LOWEST_HZ)))
    return np.fft.irfft(spectrum * shape, num_samples)


def _hum(num_samples: int, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    t = np.arange(num_samples) / rate_hz
    mains_hz = float(rng.choice(MAINS_HZ))
    made = np.zeros(num_samples)
    for harmonic in range(1, NUM_HARMONICS + 1):
        made += np.sin(2 * np.pi * (harmonic * mains_hz * t + rng.random())) / harmonic
    return made


def _babble(num_samples: int, rate_hz: int, rng: np.random.Generator, talkers: Sequence[Sound]) -> np.ndarray:
    """Each talker goes through the utterances in an order of their own, begun somewhere in the middle."""
    assert talkers, "babble is made of speech"
    assert all(sound.rate_hz == rate_hz for sound in talkers)
    speech = [sound.audio[sound.start : sound.end] / active_rms(sound) for sound in talkers]
    made = np.zeros(num_samples)
    for _ in range(NUM_TALKERS):
        track = np.concatenate([speech[i] for i in rng.permutation(len(speech))])
        begin = int(rng.integers(track.size))
        made += track[(begin + np.arange(num_samples)) % track.size]
    return made
