"""The core of one `/v1/listen` connection: which audio is there, and what is known about it. Pure.

Samples are counted from the start of the connection and never renumbered. Audio between `start_sample` and
`received` is kept; `drop` forgets its beginning. At most `MAX_UTTERANCE_S` is kept: a client that neither finalizes
nor discards for that long is told so and closed, because dropping either end in silence would lose words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from wire.errors import PeerError
from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16

MAX_UTTERANCE_S = 60.0  # 1.9 MB, and two or three engine steps for a final
MAX_SPECULATIONS = 8  # remembered per utterance; the oldest is forgotten first

S = TypeVar("S")


@dataclass(frozen=True)
class Span:
    """Kept audio up to `end_sample`."""

    start_sample: int
    end_sample: int
    pcm: Pcm16


class Stream(Generic[S]):
    """`S` is whatever stands for a speculation, running or done."""

    def __init__(self, partial_interval_s: float) -> None:
        self.start_sample = 0
        self.received = 0
        self._interval = round(partial_interval_s * SAMPLE_RATE_HZ)
        self._chunks: list[Pcm16] = []
        self._partial_end = 0
        self._revision = 0
        self._speculations: dict[int, S] = {}

    def push(self, pcm: Pcm16) -> None:
        """Raises: PeerError when more than `MAX_UTTERANCE_S` would be kept."""
        if self.received + pcm.size - self.start_sample > MAX_UTTERANCE_S * SAMPLE_RATE_HZ:
            raise PeerError(f"more than {MAX_UTTERANCE_S:.0f} s of audio without finalize or discard", code="too_long")
        if pcm.size:
            self._chunks.append(pcm)
            self.received += pcm.size

    def span(self, end_sample: int | None) -> Span:
        """Kept audio up to `end_sample`, default all.

        Raises: PeerError when `end_sample` was not received yet, or lies before what is kept.
        """
        end = self._checked(end_sample)
        if end < self.start_sample:
            raise PeerError(f"audio up to {self.start_sample} is dropped, asked for {end}", code="bad_range")
        kept = np.concatenate(self._chunks) if self._chunks else np.zeros(0, np.int16)
        self._chunks = [kept] if kept.size else []
        return Span(self.start_sample, end, kept[: end - self.start_sample])

    def drop(self, end_sample: int | None) -> bool:
        """Forget audio up to `end_sample`, default all, and what was speculated; False when it was gone already.

        Raises: PeerError when `end_sample` was not received yet.
        """
        end = self._checked(end_sample)
        if end <= self.start_sample:
            return False
        rest = self.span(None).pcm[end - self.start_sample :]
        self._chunks = [rest.copy()] if rest.size else []  # a view would keep the whole utterance alive
        self.start_sample = end
        self._speculations.clear()
        return True

    def remember(self, end_sample: int, speculation: S) -> None:
        """Of the audio kept now, up to `end_sample`."""
        self._speculations.pop(end_sample, None)
        self._speculations[end_sample] = speculation
        if len(self._speculations) > MAX_SPECULATIONS:
            del self._speculations[next(iter(self._speculations))]

    def speculated(self, end_sample: int) -> S | None:
        return self._speculations.get(end_sample)

    def next_revision(self) -> int:
        self._revision += 1
        return self._revision

    @property
    def partial_due(self) -> bool:
        return self.received - max(self._partial_end, self.start_sample) >= self._interval

    def take_partial(self) -> Span:
        """All kept audio; the next partial is due an interval later."""
        self._partial_end = self.received
        return self.span(None)

    def _checked(self, end_sample: int | None) -> int:
        end = self.received if end_sample is None else end_sample
        if not 0 <= end <= self.received:
            raise PeerError(f"sample {end} is outside the {self.received} received", code="bad_range")
        return end
