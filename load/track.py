"""The agent's audio as a caller without a jitter buffer plays it: at arrival, or behind what still plays. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load.hearing import audible
from load.record import Placed
from wire.pcm import Pcm16


@dataclass(frozen=True)
class Heard:
    """A stretch of audible audio, as played; `arrived_s` is when the packet that holds its first sample arrived."""

    start_s: float
    end_s: float
    arrived_s: float


@dataclass(frozen=True)
class _Piece:
    start_s: float
    arrived_s: float
    pcm: Pcm16


class Track:
    def __init__(self, pieces: Sequence[Placed], rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._pieces: list[_Piece] = []
        end_s = -np.inf
        for arrived_s, pcm in pieces:
            start_s = max(arrived_s, end_s)
            self._pieces.append(_Piece(start_s, arrived_s, pcm))
            end_s = start_s + pcm.size / rate_hz
        self._starts = [piece.start_s for piece in self._pieces]

    def render(self, from_s: float, to_s: float) -> Pcm16:
        """What is played in that time, silence included."""
        out = np.zeros(max(0, round((to_s - from_s) * self.rate_hz)), np.int16)
        for piece in self._between(from_s, to_s):
            at = round((piece.start_s - from_s) * self.rate_hz)
            begin, end = max(0, at), min(out.size, at + piece.pcm.size)
            if end > begin:
                out[begin:end] = piece.pcm[begin - at : end - at]
        return out

    def audible(self, from_s: float, to_s: float) -> list[Heard]:
        """Audible stretches of that time."""
        found = []
        for span in audible(self.render(from_s, to_s), self.rate_hz):
            start_s, end_s = from_s + span.start / self.rate_hz, from_s + span.end / self.rate_hz
            found.append(Heard(start_s, end_s, self._arrival_s(start_s)))
        return found

    def first_packet_s(self, after_s: float, before_s: float) -> float | None:
        """Arrival of the first audio of that time."""
        for piece in self._pieces:
            if after_s <= piece.arrived_s < before_s:
                return piece.arrived_s
        return None

    def dry_s(self, from_s: float, to_s: float) -> list[float]:
        """Lengths of the stretches within that time in which nothing was there to be played."""
        gaps = []
        end_s: float | None = None
        for piece in self._between(from_s, to_s):
            if end_s is not None and piece.start_s - end_s > 1 / self.rate_hz:
                gaps.append(piece.start_s - end_s)
            end_s = piece.start_s + piece.pcm.size / self.rate_hz
        return gaps

    def _between(self, from_s: float, to_s: float) -> list[_Piece]:
        first = max(0, bisect.bisect_right(self._starts, from_s) - 1)
        last = bisect.bisect_left(self._starts, to_s)
        return self._pieces[first:last]

    def _arrival_s(self, at_s: float) -> float:
        piece = self._pieces[max(0, bisect.bisect_right(self._starts, at_s + 0.5 / self.rate_hz) - 1)]
        return piece.arrived_s
