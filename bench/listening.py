"""Listeners at the caller's end, which know what of the agent's audio sounds when. Pure.

`Player` is a client of the WebSocket: it plays from a small buffer, in real time. `play` is a browser's jitter buffer
for RTP, much as NetEQ in libwebrtc works: it aims at the delay that 95 % of the packets of late have needed, in steps
of 20 ms, and gets there by leaving out or stretching 10 ms at most every 50 ms. What a sound card adds is not in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from load.report.statistics import percentile
from wire.pcm import Pcm16

TICK_S = 0.01
STRETCH_EVERY_S = 0.05
STEP_S = 0.02  # of the target
LEAST_S, MOST_S = 0.04, 0.08  # of the target
FASTEST_OF_S = 2.0
NUM_LATE = 100  # packets, of which the lateness is looked at
FOLLOWS = 0.1  # of the difference, in a tick: the level is smoothed


@dataclass
class _Stretch:
    sample: int  # its first
    start_s: float
    num_samples: int


@dataclass
class Player:
    """What has run dry waits for `buffer_s` before it plays again."""

    rate_hz: int
    buffer_s: float = 0.06
    received: int = 0  # samples since the start of the call
    _stretches: list[_Stretch] = field(default_factory=list)

    def hear(self, num_samples: int, now: float) -> None:
        last = self._stretches[-1] if self._stretches else None
        end_s = last.start_s + last.num_samples / self.rate_hz if last is not None else -np.inf
        self._stretches.append(_Stretch(self.received, end_s if end_s > now else now + self.buffer_s, num_samples))
        self.received += num_samples

    def clear(self, sample: int, now: float) -> None:
        """Drop what has not been played; the next audio begins with `sample`."""
        for stretch in self._stretches:
            played = round((now - stretch.start_s) * self.rate_hz)
            stretch.num_samples = min(stretch.num_samples, max(0, played))
        self.received = sample

    def played(self, now: float) -> int:
        """The last sample that has sounded, `now` or at a time before."""
        for stretch in reversed(self._stretches):
            if stretch.start_s < now and stretch.num_samples:
                return stretch.sample + min(stretch.num_samples, int((now - stretch.start_s) * self.rate_hz))
        return 0


@dataclass(frozen=True)
class RtpPacket:
    """`timestamp`: unwrapped, in samples."""

    at_s: float
    timestamp: int
    payload: bytes


@dataclass(frozen=True)
class Playing:
    """Every `TICK_S` from `start_s` on: the timestamp that sounds, and whether there was nothing for it."""

    start_s: float
    positions: np.ndarray
    made_up: np.ndarray

    def position(self, at_s: float) -> int:
        ticks = (at_s - self.start_s) / TICK_S
        return round(float(np.interp(ticks, np.arange(self.positions.size), self.positions)))


def play(packets: Sequence[RtpPacket], clock_hz: int, packet_samples: int) -> Playing:
    """`packets` in the order of their arrival."""
    start_s, position = packets[0].at_s, float(packets[0].timestamp)
    end, have, late = position, set[int](), _Lateness(clock_hz)
    level_s = stretched_s = 0.0
    tick = TICK_S * clock_hz
    positions, made_up, at, has_begun = [], [], 0, False
    for number in range(round((packets[-1].at_s - start_s) / TICK_S) + 1):
        now = start_s + number * TICK_S
        while at < len(packets) and packets[at].at_s <= now:
            late.observe(packets[at])
            have.add(packets[at].timestamp // packet_samples)
            end = max(end, packets[at].timestamp + packet_samples)
            at += 1
        span_s = (end - position) / clock_hz
        has_begun = has_begun or span_s >= late.target_s
        positions.append(position)
        if not has_begun:
            made_up.append(False)
            level_s = span_s
            continue
        level_s += FOLLOWS * (span_s - level_s)
        made_up.append(span_s < TICK_S or int(position) // packet_samples not in have)
        may_stretch = now - stretched_s >= STRETCH_EVERY_S
        if span_s < TICK_S:
            continue
        if may_stretch and level_s > late.target_s + STEP_S and span_s > 2 * TICK_S:
            position, level_s, stretched_s = position + 2 * tick, level_s - TICK_S, now
        elif may_stretch and level_s < 0.75 * late.target_s:
            level_s, stretched_s = level_s + TICK_S, now
        else:
            position += tick
    return Playing(start_s, np.array(positions), np.array(made_up))


class _Lateness:
    def __init__(self, clock_hz: int) -> None:
        self._clock_hz = clock_hz
        self._seen: deque[tuple[float, float]] = deque()  # when, and how far behind the sender's clock
        self._late: deque[float] = deque(maxlen=NUM_LATE)
        self.target_s = MOST_S

    def observe(self, packet: RtpPacket) -> None:
        behind_s = packet.at_s - packet.timestamp / self._clock_hz
        self._seen.append((packet.at_s, behind_s))
        while self._seen[0][0] < packet.at_s - FASTEST_OF_S:
            self._seen.popleft()
        self._late.append(behind_s - min(behind for _, behind in self._seen))
        needed_s = STEP_S * (1 + int(percentile(list(self._late), 95) / STEP_S))
        self.target_s = min(MOST_S, max(LEAST_S, needed_s))


def find(part: Pcm16, whole: Pcm16) -> tuple[int, float]:
    """Where in `whole` lies what is most like `part`, and how like it is: normalised cross-correlation."""
    if whole.size < part.size:
        return 0, 0.0
    a, b = whole.astype(np.float64), part.astype(np.float64)
    size = 1 << (a.size + b.size - 1).bit_length()
    products = np.fft.irfft(np.fft.rfft(a, size) * np.conj(np.fft.rfft(b, size)), size)[: a.size - b.size + 1]
    energy = np.concatenate([[0.0], np.cumsum(a**2)])
    energies = (energy[b.size :] - energy[: -b.size]) * float(b @ b)
    alike = products / np.sqrt(np.maximum(energies, 1.0))
    best = int(np.argmax(alike))
    return best, float(alike[best])
