"""Cutting long audio into pieces that fit Whisper's 30 s view, at the quietest spot there is. Pure."""

from __future__ import annotations

import numpy as np

from stt.guards import FRAME_SAMPLES, frame_rms
from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16

MAX_PIECE_S = 28.0  # Whisper's 30 s less the 2 s of silence after which it ends reliably
EARLIEST_CUT_S = 16.0  # a spot is searched from here on: long enough that most speech has a pause in the 12 s after it
QUIET_S = 0.2  # a spot is as quiet as the 200 ms around it: a pause between words, not the closure of a plosive


def cuts(pcm: Pcm16) -> list[int]:
    """Ends of the pieces, the last one being `pcm.size`; no piece is empty or longer than `MAX_PIECE_S`."""
    longest = round(MAX_PIECE_S * SAMPLE_RATE_HZ)
    earliest = round(EARLIEST_CUT_S * SAMPLE_RATE_HZ)
    ends = []
    start = 0
    while pcm.size - start > longest:
        start += earliest + _quietest(pcm[start + earliest : start + longest])
        ends.append(start)
    return [*ends, pcm.size] if pcm.size else []


def _quietest(pcm: Pcm16) -> int:
    """Sample in the middle of the quietest 200 ms; the latest of equals, so that pieces are long."""
    width = round(QUIET_S * SAMPLE_RATE_HZ) // FRAME_SAMPLES
    power = np.convolve(frame_rms(pcm) ** 2, np.ones(width), mode="valid")
    last = len(power) - 1 - int(np.argmin(power[::-1]))
    return (last + width // 2) * FRAME_SAMPLES
