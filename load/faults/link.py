"""One direction of an impaired path: for each packet, when its copies leave. Pure; the order of stages is Impairment's.

Every stage draws from a generator of its own, the same number of values for every packet. So whether packet 17 is lost
depends on the seed and on 17 alone, not on when it came or on what else the path does.
"""

from __future__ import annotations

import bisect
from collections import deque
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from load.faults.impairment import MAX_DELAY_S, Bandwidth, BurstLoss, Drift, Impairment, Jitter

Fate: TypeAlias = Literal["delivered", "lost", "dropped"]  # dropped: the bottleneck's queue was full

PARETO_SHAPE = 3.0  # finite mean and variance, heavy tail
DRAWN_AHEAD = 256  # values drawn at once, because a call of numpy costs as much as a hundred values
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Passage:
    """`leaves_s`: first the packet, then its copy if there is one; empty unless delivered."""

    fate: Fate
    leaves_s: tuple[float, ...] = ()


@dataclass
class Tally:
    """`num_offered` is the sum of delivered, lost and dropped; copies are counted beside them."""

    num_offered: int = 0
    num_delivered: int = 0
    num_lost: int = 0
    num_dropped: int = 0
    num_copies: int = 0  # that leave
    num_copies_dropped: int = 0
    num_held: int = 0  # to be overtaken

    @property
    def lost_share(self) -> float:
        return self.num_lost / self.num_offered if self.num_offered else 0.0


class Link:
    def __init__(self, impairment: Impairment, rng: np.random.Generator) -> None:
        self.tally = Tally()
        self._impairment = impairment
        self._loss, self._burst, self._reorder, self._duplicate, self._jitter = (_Draws(r) for r in rng.spawn(5))
        self._in_bad = False
        self._first_s: float | None = None
        self._last_at_s = 0.0  # when the last packet that keeps its place came to the bottleneck,
        self._last_left_s = 0.0  # and when it left
        self._bottleneck = _Bottleneck(impairment.bandwidth) if impairment.bandwidth is not None else None

    def offer(self, size_bytes: int, now: float) -> Passage:
        """A packet arrives. `now` must not go back."""
        self.tally.num_offered += 1
        is_lost, is_copied, is_held, takes_s = self._draw(now)
        if is_lost:
            self.tally.num_lost += 1
            return Passage("lost")
        hold_s = self._impairment.reorder.hold_s if self._impairment.reorder is not None and is_held else 0.0
        has_place = self._keeps_order and not is_held
        at_s = now + takes_s + hold_s
        if has_place:
            at_s = self._last_at_s = max(at_s, self._last_at_s)
        leaves_s = self._through(size_bytes, at_s, now, self._last_left_s if has_place else 0.0)
        if leaves_s is not None and has_place:
            self._last_left_s = leaves_s
        if leaves_s is None:
            self.tally.num_dropped += 1
            return Passage("dropped")
        self.tally.num_delivered += 1
        self.tally.num_held += is_held
        copy_s = self._copy(size_bytes, leaves_s, now) if is_copied else None
        return Passage("delivered", (leaves_s,) if copy_s is None else (leaves_s, copy_s))

    @property
    def _keeps_order(self) -> bool:
        jitter = self._impairment.jitter
        return jitter is None or jitter.keeps_order

    def _draw(self, now: float) -> tuple[bool, bool, bool, float]:
        """Whether the packet is lost, copied, held; and how long the path takes."""
        path = self._impairment
        loss, copied, held, jitter = (d.next() for d in (self._loss, self._duplicate, self._reorder, self._jitter))
        is_lost = path.loss is not None and loss < path.loss.share
        if path.burst_loss is not None:
            is_lost = self._burst_takes(path.burst_loss) or is_lost
        self._first_s = now if self._first_s is None else self._first_s
        takes_s = path.delay.delay_s if path.delay is not None else 0.0
        takes_s += _drift_s(path.drift, now - self._first_s) if path.drift is not None else 0.0
        takes_s += _jitter_s(path.jitter, jitter) if path.jitter is not None else 0.0
        is_copied = path.duplicate is not None and copied < path.duplicate.share
        return is_lost, is_copied, path.reorder is not None and held < path.reorder.share, takes_s

    def _burst_takes(self, burst: BurstLoss) -> bool:
        turn, loss = self._burst.next(), self._burst.next()
        self._in_bad = turn >= burst.leave_bad if self._in_bad else turn < burst.enter_bad
        return self._in_bad and loss < burst.loss_in_bad

    def _copy(self, size_bytes: int, after_s: float, now: float) -> float | None:
        assert self._impairment.duplicate is not None
        copy_s = self._through(size_bytes, after_s + self._impairment.duplicate.after_s, now)
        if copy_s is None:
            self.tally.num_copies_dropped += 1
        else:
            self.tally.num_copies += 1
        return copy_s

    def _through(self, size_bytes: int, at_s: float, now: float, not_before_s: float = 0.0) -> float | None:
        return at_s if self._bottleneck is None else self._bottleneck.send(size_bytes, at_s, now, not_before_s)


class _Bottleneck:
    """A wire that sends one packet at a time, and its queue. Packets may be announced out of order: each takes the
    first time that is free from when it is there.
    """

    def __init__(self, bandwidth: Bandwidth) -> None:
        self._bandwidth = bandwidth
        self._sendings: list[_Sending] = []  # by start; they do not overlap

    def send(self, size_bytes: int, at_s: float, now: float, not_before_s: float) -> float | None:
        """When the packet that is there at `at_s` has left; None when the queue has no room for it."""
        sendings = self._sendings
        del sendings[: bisect.bisect_right(sendings, now, key=_end)]
        waiting = sum(other.size_bytes for other in sendings if other.at_s <= at_s < other.start_s)
        if waiting + size_bytes > self._bandwidth.queue_bytes:
            return None
        takes_s = 8 * size_bytes / self._bandwidth.rate_bit_per_s
        start_s = max(at_s, not_before_s)
        place = bisect.bisect_right(sendings, start_s, key=_end)
        while place < len(sendings) and sendings[place].start_s < start_s + takes_s:
            start_s = sendings[place].end_s
            place += 1
        sendings.insert(place, _Sending(at_s, start_s, start_s + takes_s, size_bytes))
        return start_s + takes_s


@dataclass(frozen=True)
class _Sending:
    at_s: float
    start_s: float
    end_s: float
    size_bytes: int


def _end(sending: _Sending) -> float:
    return sending.end_s


class _Draws:
    """Uniform values from 0 to 1."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._drawn: deque[float] = deque()

    def next(self) -> float:
        if not self._drawn:
            self._drawn.extend(self._rng.random(DRAWN_AHEAD).tolist())
        return self._drawn.popleft()


def _drift_s(drift: Drift, since_first_s: float) -> float:
    """How much later than on a true clock a packet leaves `since_first_s` after the first; never less than 0."""
    drifted_s = min(since_first_s, drift.for_s)
    reserve_s = max(0.0, -drift.ppm) * 1e-6 * drift.for_s
    return max(0.0, reserve_s + drift.ppm * 1e-6 * drifted_s)


def _jitter_s(jitter: Jitter, uniform: float) -> float:
    """By inverting the distribution, so that one value is drawn whatever the distribution."""
    mean_s = jitter.spread_s / 2
    match jitter.distribution:
        case "uniform":
            return jitter.spread_s * uniform
        case "normal":
            return min(jitter.spread_s, max(0.0, mean_s + jitter.spread_s / 4 * _normal(uniform)))
        case "exponential":
            return min(MAX_DELAY_S, -mean_s * float(np.log1p(-uniform)))
        case "pareto":  # Lomax: from 0, mean scale / (shape - 1)
            scale_s = mean_s * (PARETO_SHAPE - 1)
            return float(min(MAX_DELAY_S, scale_s * ((1 - uniform) ** (-1 / PARETO_SHAPE) - 1)))


def _normal(uniform: float) -> float:
    return _NORMAL.inv_cdf(min(max(uniform, 1e-12), 1 - 1e-12))
