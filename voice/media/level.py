"""Where speech is audible: energy of 10 ms frames against a threshold relative to the loudest.

VAD lags the last audible sample by 75 to 115 ms, so a turn latency counted from VAD would flatter us by that much.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wire.pcm import Pcm16

FRAME_S = 0.01
BELOW_PEAK = 10 ** (-30 / 20)  # quieter than 30 dB under the loudest frame is not speech
FLOOR = 0.003 * 32768  # about -50 dBFS RMS: room noise of a quiet line
ABOVE_NOISE = 2.0  # 6 dB: a frame of 10 ms of steady noise does not swing that far
AUDIBLE = 0.01 * 32768  # a sample above -40 dBFS makes synthesised speech audible


def speech_end(pcm: Pcm16, rate_hz: int, noise: float = 0.0) -> int:
    """Samples up to the end of the last audible frame, 0 when none is. `noise`: RMS of the line without speech."""
    frame = round(FRAME_S * rate_hz)
    num_frames = pcm.size // frame
    if not num_frames:
        return 0
    levels = np.sqrt(np.mean(pcm[: num_frames * frame].reshape(num_frames, frame).astype(np.float64) ** 2, axis=1))
    loud = np.flatnonzero(levels > max(FLOOR, ABOVE_NOISE * noise, BELOW_PEAK * levels.max()))
    return int(loud[-1] + 1) * frame if loud.size else 0


class Loudness:
    """Of windows of one utterance, as they come: which are as quiet as the line is between words."""

    def __init__(self, before: Iterable[Pcm16]) -> None:
        """`before`: windows ahead of the utterance. The quietest of them is taken for the line's noise."""
        self._noise = min(map(rms, before), default=0.0)
        self._peak = 0.0

    def is_quiet(self, window: Pcm16) -> bool:
        level = rms(window)
        self._peak = max(self._peak, level)
        return level < max(FLOOR, ABOVE_NOISE * self._noise, BELOW_PEAK * self._peak)


def rms(pcm: Pcm16) -> float:
    return float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2))) if pcm.size else 0.0


def first_audible(pcm: Pcm16) -> int | None:
    """Index of the first audible sample of synthesised speech."""
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > AUDIBLE)
    return int(loud[0]) if loud.size else None
