"""Audio files that the caller of a test call speaks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import soundfile

from deploy.errors import CallError
from load.caller import Speech
from voice.media.level import speech_end
from voice.media.resample import Resampler
from wire.calls import SampleRate
from wire.pcm import Pcm16, to_int16

SENDABLE_HZ: tuple[SampleRate, ...] = get_args(SampleRate)
DEFAULT_HZ: SampleRate = 16000  # for files whose rate the protocol does not have, or that differ from each other


def read_speech(paths: Sequence[Path], rate_hz: SampleRate | None = None) -> tuple[list[Speech], SampleRate]:
    """The files as mono at `rate_hz`; without it at their own where they share one that the protocol has.

    Silence behind the last audible sample is part of the file, not of the turn.

    Raises: CallError.
    """
    read = [_read_mono(path) for path in paths]
    rates = {rate_hz for _, rate_hz in read}
    rate_hz = rate_hz or _shared_rate(rates)
    speeches = []
    for path, (pcm, from_hz) in zip(paths, read, strict=True):
        resampler = Resampler(from_hz, rate_hz)
        pcm = np.concatenate([resampler.push(pcm), resampler.flush()])
        end = speech_end(pcm, rate_hz)
        if end == 0:
            raise CallError(f"{path}: no speech in it, only silence", "give a recording of somebody who speaks")
        speeches.append(Speech(path.name, "", pcm, 0, end))
    return speeches, rate_hz


def _shared_rate(rates: set[int]) -> SampleRate:
    for rate_hz in SENDABLE_HZ:
        if rates == {rate_hz}:
            return rate_hz
    return DEFAULT_HZ


def _read_mono(path: Path) -> tuple[Pcm16, int]:
    if not path.is_file():
        raise CallError(f"{path}: no such file")
    try:
        audio, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError) as error:
        raise CallError(f"{path}: cannot read it as audio: {error}", "wav, flac, ogg and mp3 files work") from None
    return to_int16(audio.mean(axis=1)), rate_hz
