"""The room around a caller: the microphone hears the agent out of the loudspeaker, later and softer. Pure."""

from __future__ import annotations

from collections import deque

import numpy as np

from wire.pcm import Pcm16, to_float, to_int16


class EchoRoom:
    """`rate_hz` is the microphone's, `output_rate_hz` the agent's; times are seconds of one clock."""

    def __init__(self, level_db: float, delay_s: float, rate_hz: int, output_rate_hz: int) -> None:
        self._gain = np.float32(10 ** (level_db / 20))
        self._delay_s = delay_s
        self._rate_hz = rate_hz
        self._output_rate_hz = output_rate_hz
        self._played: deque[tuple[float, Pcm16]] = deque()

    def play(self, pcm: Pcm16, at_s: float) -> None:
        """The agent's audio, as it will sound."""
        self._played.append((at_s, pcm))

    def clear(self, at_s: float) -> None:
        """What was to sound later will not."""
        while self._played and self._played[-1][0] >= at_s:
            self._played.pop()
        if self._played:
            start_s, pcm = self._played.pop()
            self._played.append((start_s, pcm[: max(0, round((at_s - start_s) * self._output_rate_hz))]))

    def heard(self, piece: Pcm16, at_s: float) -> Pcm16:
        """`piece` of the caller, which begins then, with the echo in it.

        That is read off between its samples in a straight line: exact where speech has its energy.
        """
        from_s = at_s - self._delay_s
        while self._played and self._end_s(*self._played[0]) < from_s:
            self._played.popleft()
        times_s = from_s + np.arange(piece.size) / self._rate_hz
        echo = np.zeros(piece.size, np.float32)
        for start_s, pcm in self._played:
            if start_s > times_s[-1] or not pcm.size:
                break
            at = (times_s - start_s) * self._output_rate_hz
            echo += np.interp(at, np.arange(pcm.size), to_float(pcm), left=0, right=0).astype(np.float32)
        return to_int16(to_float(piece) + self._gain * echo) if echo.any() else piece

    def _end_s(self, start_s: float, pcm: Pcm16) -> float:
        return start_s + pcm.size / self._output_rate_hz
