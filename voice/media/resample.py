"""Streaming resampling of mono int16 by libswresample through PyAV.

It holds back half its filter, 16 samples of the lower rate: 1 ms from 16 kHz up, 2 ms where one side is 8 kHz.
Streaming soxr at HQ holds back up to 37 ms.
"""

from __future__ import annotations

import av
import numpy as np

from wire.pcm import Pcm16


class Resampler:
    """One direction of one call; `push` as audio comes, `flush` at the end of an utterance."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._from_hz, self._to_hz = from_hz, to_hz
        self._fresh()

    def push(self, pcm: Pcm16) -> Pcm16:
        if self._from_hz == self._to_hz or not pcm.size:
            return pcm
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(pcm)[np.newaxis], format="s16", layout="mono")
        frame.sample_rate = self._from_hz
        return _join(self._resampler.resample(frame))

    def flush(self) -> Pcm16:
        """What is still held back; the next `push` starts afresh."""
        if self._from_hz == self._to_hz:
            return np.zeros(0, np.int16)
        rest = _join(self._resampler.resample(None))
        self._fresh()
        return rest

    def _fresh(self) -> None:
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=self._to_hz)


def _join(frames: list[av.AudioFrame]) -> Pcm16:
    parts = [frame.to_ndarray()[0] for frame in frames]
    return np.concatenate(parts) if parts else np.zeros(0, np.int16)
