"""A simulated listener: plays the agent's audio in real time as it arrives, and knows what was heard when. Pure.

A block starts when it arrives or when the one before has ended, whichever is later, as in a player without a jitter
buffer. `clear` drops what has not sounded yet. Positions are the server's output sample count (`wire.calls`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wire.pcm import Pcm16


@dataclass
class _Block:
    start_s: float
    sample: int  # position of its first sample
    pcm: Pcm16


class Player:
    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._blocks: list[_Block] = []
        self._next_sample = 0
        self.end_s = -np.inf  # when everything received so far has sounded

    def receive(self, pcm: Pcm16, now: float) -> None:
        start_s = max(now, self.end_s)
        self._blocks.append(_Block(start_s, self._next_sample, pcm))
        self._next_sample += pcm.size
        self.end_s = start_s + pcm.size / self._rate_hz

    def clear(self, sample: int, now: float) -> None:
        """Drop what has not sounded; what comes next is sample number `sample`."""
        kept = [block for block in self._blocks if block.start_s < now]
        if kept:
            last = kept[-1]
            last.pcm = last.pcm[: self._sounded(last, now)]
        self._blocks = kept
        self._next_sample = sample
        self.end_s = min(self.end_s, now)

    def is_playing(self, now: float) -> bool:
        return now < self.end_s

    def played(self, now: float) -> int:
        """Position up to which everything has sounded."""
        for block in reversed(self._blocks):
            if (sounded := self._sounded(block, now)) > 0:
                return block.sample + sounded
        return 0

    def blocks(self) -> list[tuple[float, Pcm16]]:
        """What was played, with the time at which each piece began."""
        return [(block.start_s, block.pcm) for block in self._blocks]

    def _sounded(self, block: _Block, now: float) -> int:
        return min(block.pcm.size, max(0, round((now - block.start_s) * self._rate_hz)))
