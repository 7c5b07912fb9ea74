"""One utterance as audio, with the truth about it: where its speech begins and ends, and where its words meet. Pure.

The truth is labelled on clean audio, by what a listener hears (`load.hearing`). Effects move the labels along with the
samples; noise or a telephone band cannot blur them, for nothing is looked for after those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load.hearing import audible
from wire.pcm import Pcm16, Pcm32f, to_float, to_int16

FRAME_S = 0.02
MIN_RATE_HZ, MAX_RATE_HZ = 4000, 384_000  # of a recording: below, speech is not heard; above, no converter is
ACTIVE_RANGE_DB = 30.0  # frames this far below the loudest are pauses; speech itself spans about 30 dB (ITU-T P.56)


class Silent(ValueError):
    """Nothing in the audio is audible."""


@dataclass(frozen=True)
class Sound:
    """float32 mono. Speech lies in `audio[start:end]`; `borders` are samples between its words, ascending."""

    audio: Pcm32f
    rate_hz: int
    start: int
    end: int
    borders: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        assert 0 <= self.start < self.end <= self.audio.size
        assert list(self.borders) == sorted(self.borders)

    @property
    def duration_s(self) -> float:
        return self.audio.size / self.rate_hz

    @property
    def end_s(self) -> float:
        return self.end / self.rate_hz

    @property
    def pcm(self) -> Pcm16:
        """Clipped at full scale, as a line does."""
        return to_int16(self.audio)


def labelled(pcm: Pcm16, rate_hz: int) -> Sound:
    """Clean audio with the ends of its speech found.

    Raises: Silent.
    """
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise Silent(f"no speech can be heard at {rate_hz} Hz")
    spans = audible(pcm, rate_hz)
    if not spans:
        raise Silent("no speech in it, only silence")
    return Sound(to_float(pcm), rate_hz, spans[0].start, spans[-1].end)


def active_rms(sound: Sound) -> float:
    """RMS of the speech without its pauses, 1.0 being full scale: the level that a stated SNR refers to."""
    frame = round(FRAME_S * sound.rate_hz)
    power = frame_power(sound.audio[sound.start : sound.end], frame)
    active = power[power > power.max() * 10 ** (-ACTIVE_RANGE_DB / 10)]
    return float(np.sqrt(active.mean()))


def frame_power(audio: Pcm32f, frame: int) -> np.ndarray:
    """Mean square of each whole frame; of all there is where it is shorter than one."""
    if audio.size < frame:
        return np.array([float(np.mean(np.square(audio, dtype=np.float64)))])
    whole = audio[: audio.size // frame * frame].astype(np.float64)
    return np.asarray(np.mean(whole.reshape(-1, frame) ** 2, axis=1))
