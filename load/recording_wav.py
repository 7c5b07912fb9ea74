"""A call as it can be heard and read again: left what the caller said, right what was heard of the agent, each when it
sounded; beside it what the caller said and what the server told, a line each, with seconds since the call was placed.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from load.errors import LoadError
from load.record import CallRecord
from load.speech.resample import resampled
from load.track import Track, track_of
from wire.pcm import to_float, to_int16


def make_folder(folder: Path) -> None:
    """For recordings, before the calls and not after them. Raises: LoadError when nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LoadError(f"{folder}: cannot make this folder: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LoadError(f"{folder}: nothing can be written there")


def write_call(folder: Path, call: CallRecord) -> Path:
    """Into `folder`, which is made, from when the call was placed to its end; the audio's file, with a .jsonl beside.

    Raises: LoadError.
    """
    make_folder(folder)
    path = folder / f"call-{call.number:04d}.wav"
    caller = Track(call.sent, call.sample_rate_hz)
    write_stereo(path, caller, track_of(call), call.placed_s, call.ended_s or call.placed_s)
    events = path.with_suffix(".jsonl")
    try:
        events.write_text("".join(f"{line}\n" for line in told(call)), encoding="utf-8")
    except OSError as error:
        raise LoadError(f"{events}: cannot write: {error.strerror or error}") from None
    return path


def told(call: CallRecord) -> list[str]:
    """JSON lines in the order of time. Pure."""
    said = [(said.end_s, {"type": "said", **dataclasses.asdict(said)}) for said in call.said]
    events = sorted([*said, *call.messages], key=lambda event: event[0])
    return [json.dumps({"at_s": round(at_s - call.placed_s, 3), **event}, ensure_ascii=False) for at_s, event in events]


def write_stereo(path: Path, left: Track, right: Track, start_s: float, end_s: float) -> None:
    """Raises: LoadError."""
    try:
        soundfile.write(path, stereo(left, right, start_s, end_s), right.rate_hz, subtype="PCM_16")
    except (OSError, ValueError, TypeError, soundfile.LibsndfileError) as error:
        raise LoadError(
            f"{path}: cannot write the recording: {error}", "name a .wav file in a folder that exists"
        ) from None


def stereo(left: Track, right: Track, start_s: float, end_s: float) -> NDArray[np.int16]:
    """[samples, 2] at the right side's rate, to `end_s` and as much longer as either sounds. Pure."""
    end_s = max(start_s, end_s, left.end_s, right.end_s)
    sides = [
        to_int16(resampled(to_float(left.render(start_s, end_s)), left.rate_hz, right.rate_hz)),
        right.render(start_s, end_s),
    ]
    both = np.zeros((max(side.size for side in sides), 2), np.int16)
    for number, side in enumerate(sides):
        both[: side.size, number] = side
    return both
