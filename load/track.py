"""The agent's audio as a caller without a jitter buffer plays it: at arrival, or behind what still plays. Pure.

What has not been played when the server clears it is dropped, as docs/protocol.md asks of every client.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load.hearing import audible
from load.record import CallRecord, Placed
from wire.pcm import Pcm16

PAUSE_S = 0.05  # of nothing to play, from which on audio is one that goes on after a pause; a late packet is shorter
_NOTHING: Pcm16 = np.zeros(0, np.int16)


@dataclass(frozen=True)
class Heard:
    """A stretch of audible audio, as played; `arrived_s` is when the packet that holds its first sample arrived."""

    start_s: float
    end_s: float
    arrived_s: float


@dataclass(frozen=True)
class Pause:
    """Where playing stopped for a while: what was played until then, what had come and was dropped, what followed."""

    before: Pcm16
    dropped: Pcm16
    after: Pcm16


@dataclass(frozen=True)
class _Piece:
    start_s: float
    arrived_s: float
    ahead_s: float  # audio that lay there unplayed when it had come, it included
    pcm: Pcm16
    dropped: Pcm16  # what followed in it when it was cleared


class Track:
    """`clears_s`: when the server said that what has not been played is to be dropped."""

    def __init__(self, pieces: Sequence[Placed], rate_hz: int, clears_s: Sequence[float] = ()) -> None:
        self.rate_hz = rate_hz
        self._pieces: list[_Piece] = []
        clears = deque(sorted(clears_s))
        for arrived_s, pcm in pieces:
            while clears and clears[0] <= arrived_s:
                self._clear(clears.popleft())
            start_s = max(arrived_s, self.end_s)
            ahead_s = start_s - arrived_s + pcm.size / rate_hz
            self._pieces.append(_Piece(start_s, arrived_s, ahead_s, pcm, _NOTHING))
        for at_s in clears:
            self._clear(at_s)
        self._starts = [piece.start_s for piece in self._pieces]

    @property
    def end_s(self) -> float:
        """When all that came has been played."""
        return self._end_s(self._pieces[-1]) if self._pieces else -np.inf

    def render(self, from_s: float, to_s: float) -> Pcm16:
        """What is played in that time, silence included."""
        out = np.zeros(max(0, round((to_s - from_s) * self.rate_hz)), np.int16)
        for piece in self._between(from_s, to_s):
            at = round((piece.start_s - from_s) * self.rate_hz)
            begin, end = max(0, at), min(out.size, at + piece.pcm.size)
            if end > begin:
                out[begin:end] = piece.pcm[begin - at : end - at]
        return out

    def joined(self, from_s: float, to_s: float) -> Pcm16:
        """What is played in that time, without the silence in which there was nothing to play."""
        parts = []
        for piece in self._between(from_s, to_s):
            begin, end = (round((at_s - piece.start_s) * self.rate_hz) for at_s in (from_s, to_s))
            parts.append(piece.pcm[max(0, begin) : max(0, end)])
        return np.concatenate(parts) if parts else _NOTHING

    def audible(self, from_s: float, to_s: float) -> list[Heard]:
        """Audible stretches of that time."""
        found = []
        for span in audible(self.render(from_s, to_s), self.rate_hz):
            start_s, end_s = from_s + span.start / self.rate_hz, from_s + span.end / self.rate_hz
            found.append(Heard(start_s, end_s, self._arrival_s(start_s)))
        return found

    def first_packet_s(self, after_s: float, before_s: float) -> float | None:
        """Arrival of the first audio of that time, silent or not, but for silence that only follows what came."""
        end_s = -np.inf
        for piece in self._pieces:
            is_rest = _is_silent(piece) and piece.start_s - end_s < PAUSE_S
            if after_s <= piece.arrived_s < before_s and not is_rest:
                return piece.arrived_s
            end_s = self._end_s(piece)
        return None

    def dry_s(self, from_s: float, to_s: float) -> list[float]:
        """Lengths of the stretches within that time in which nothing was there to be played."""
        gaps = []
        end_s: float | None = None
        for piece in self._between(from_s, to_s):
            if end_s is not None and piece.start_s - end_s > 1 / self.rate_hz:
                gaps.append(piece.start_s - end_s)
            end_s = self._end_s(piece)
        return gaps

    def lead_s(self, from_s: float, to_s: float) -> float | None:
        """The most audio that lay there unplayed when a packet had come, of those that are played in that time."""
        leads = (
            piece.ahead_s
            for piece in self._between(from_s, to_s)
            if piece.start_s + (piece.pcm.size + piece.dropped.size) / self.rate_hz > from_s
        )
        return max(leads, default=None)

    def pauses(self, from_s: float, to_s: float) -> list[Pause]:
        """Within that time, where something was dropped or there was nothing to play, and playing went on."""
        runs: list[tuple[list[Pcm16], list[Pcm16]]] = [([], [])]  # played without a pause, then dropped
        end_s = np.inf
        for piece in self._between(from_s, to_s):
            if _is_silent(piece):  # of a line that sends silence behind speech
                continue
            played, dropped = runs[-1]
            if piece.pcm.size and played and (dropped or piece.start_s - end_s >= PAUSE_S):
                played, dropped = [], []
                runs.append((played, dropped))
            if piece.pcm.size:
                played.append(piece.pcm)
                end_s = self._end_s(piece)
            if piece.dropped.size:
                dropped.append(piece.dropped)
        joined = [
            (np.concatenate([_NOTHING, *played]), np.concatenate([_NOTHING, *dropped])) for played, dropped in runs
        ]
        return [
            Pause(np.concatenate([played for played, _ in joined[: i + 1]]), joined[i][1], joined[i + 1][0])
            for i in range(len(joined) - 1)
        ]

    def _clear(self, at_s: float) -> None:
        for i in range(len(self._pieces) - 1, -1, -1):
            piece = self._pieces[i]
            if self._end_s(piece) <= at_s:
                return
            keep = max(0, round((at_s - piece.start_s) * self.rate_hz))
            self._pieces[i] = replace(
                piece, start_s=min(piece.start_s, at_s), pcm=piece.pcm[:keep], dropped=piece.pcm[keep:]
            )

    def _between(self, from_s: float, to_s: float) -> list[_Piece]:
        """What is played then, if only in part."""
        first = max(0, bisect.bisect_right(self._starts, from_s) - 1)
        last = bisect.bisect_left(self._starts, to_s)
        if first < last and self._end_s(self._pieces[first]) <= from_s:
            first += 1
        return self._pieces[first:last]

    def _arrival_s(self, at_s: float) -> float:
        piece = self._pieces[max(0, bisect.bisect_right(self._starts, at_s + 0.5 / self.rate_hz) - 1)]
        return piece.arrived_s

    def _end_s(self, piece: _Piece) -> float:
        return piece.start_s + piece.pcm.size / self.rate_hz


def _is_silent(piece: _Piece) -> bool:
    return not piece.pcm.any() and not piece.dropped.any()


def track_of(call: CallRecord) -> Track:
    return Track(call.heard, call.output_sample_rate_hz, drops_s(call))


def drops_s(call: CallRecord) -> list[float]:
    """When what had not been played was to be dropped: for good, or to come again."""
    return [at_s for at_s, message in call.messages if message.get("type") in ("clear", "rewind")]


def clears_s(call: CallRecord) -> list[float]:
    """When the server took back what had not been played, for good."""
    return [at_s for at_s, message in call.messages if message.get("type") == "clear"]
