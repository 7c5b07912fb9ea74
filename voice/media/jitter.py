"""What to play of the packets that came, and when: a jitter buffer for ears that are a program. Pure; `now` is given.

A loudspeaker at 48 kHz needs a sample every 21 us, so a client's jitter buffer holds everything back for as long as the
worst packet takes. Recognition needs the words in order and nothing else. So a packet is played when it comes, and only
a hole is waited for: until the packet that is missing would be later than nearly all (`target_s`, which follows the
arrivals). A clean link is not delayed at all, and no delay can outlast its cause, because nothing paces the output.

    in order                    Decode at once
    missing, later ones here    wait until it is `target_s` late; then Recover it from the next, or Conceal it
    nothing comes               Conceal, after 60 ms Comfort, in real time: a silence must go on to end a turn
    late, played over already   Decode too when it is next in line: real words are worth more than a straight clock
    without audio               No hole: it counts as a number in the sequence, and says nothing of time

Times on the wire are the sender's RTP clock; sequence numbers and timestamps wrap (RFC 3550, 5.1). That clock is the
sender's word alone, so what it asks for is bounded by ours: `MAX_SPEED`, with `MAX_BURST_S` at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from voice.media.lateness import Lateness

QUIET_S = 0.06  # without a packet, beyond the target: the sender rests or the network does
CONCEAL_S = 0.06  # made up from the sound before; longer would be a drone
PIECE_S = 0.02  # of what is made up while nothing comes
MAX_FILL_S = 0.2  # of timestamps without packets: a longer jump is a new clock, not silence
MAX_HELD = 64  # packets behind a hole
MAX_JUMP = 1000  # of sequence numbers, 20 s: beyond, the sender has started anew (RFC 3550, A.1 has 3000)
NUM_REFUSED = 50  # packets in a row that come too late to be true: so it has, close by
GRID_S = 0.0025  # Opus conceals multiples of this
MAX_SPEED = 1.1  # seconds of audio a second by the sender's clock, which drifts by thousandths at most
MAX_BURST_S = 2.0  # more than the backlog of `STALE_S` that is still worth hearing


@dataclass(frozen=True)
class Packet:
    """As it stands on the wire. `num_samples` is how long its audio is, on the RTP clock; 0 for padding and events."""

    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes
    num_samples: int


@dataclass(frozen=True)
class Decode:
    payload: bytes


@dataclass(frozen=True)
class Recover:
    """The packet before `following` is lost, and `following` holds a copy of it."""

    following: bytes
    num_samples: int


@dataclass(frozen=True)
class MakeUp:
    """`conceal`: in the manner of the sound before; `comfort`: the line's background."""

    how: Literal["conceal", "comfort"]
    num_samples: int


@dataclass(frozen=True)
class Restart:
    """Another sender: nothing that comes has to do with what came."""


Step: TypeAlias = Decode | Recover | MakeUp | Restart


@dataclass
class Counts:
    """Packets by what became of them."""

    received: int = 0
    lost: int = 0
    recovered: int = 0  # of the lost
    late: int = 0  # of the lost: came after they were given up
    repeated: int = 0
    stale: int = 0
    excess: int = 0  # left out: more than anybody says in the time
    bridged: int = 0  # pieces that were made up because nothing came


@dataclass(frozen=True)
class _Held:
    payload: bytes
    timestamp: int  # unwrapped
    num_samples: int
    arrived_s: float
    is_stale: bool


class JitterBuffer:
    """`insert` each packet, then `take`; `take` again at `wake_s`."""

    def __init__(self, clock_hz: int, has_fec: Callable[[bytes], bool]) -> None:
        self.counts = Counts()
        self._credit_s = MAX_BURST_S  # of audio by the sender's clock
        self._taken_s = -math.inf
        self._num_refused = 0  # in a row
        self.use(clock_hz, has_fec)

    def use(self, clock_hz: int, has_fec: Callable[[bytes], bool]) -> None:
        """Another codec from the next packet on. What is held is dropped: `drain` first."""
        self._clock_hz = clock_hz
        self._has_fec = has_fec
        self._ssrc: int | None = None
        self._restarts = False
        self._stray: int | None = None  # what follows the last packet that jumped
        self._begin(0, 0)

    @property
    def target_s(self) -> float:
        return self._lateness.target_s

    @property
    def has_hole(self) -> bool:
        """A packet is waited for."""
        return bool(self._held)

    def insert(self, packet: Packet, now: float) -> None:
        self.counts.received += 1
        if not packet.num_samples:
            self._pass_over(packet, now)
            return
        if packet.ssrc != self._ssrc:
            self._restarts = self._ssrc is not None
            self._ssrc = packet.ssrc
            self._begin(packet.sequence, packet.timestamp)
        ahead = signed(packet.sequence - self._next, 16)
        if abs(ahead) > MAX_JUMP:
            if packet.sequence != self._stray:
                self._stray = (packet.sequence + 1) % (1 << 16)
                return
            self._begin(packet.sequence, packet.timestamp)
        elif ahead < 0 or self._next + ahead in self._held:
            self._num_refused += 1
            if self._num_refused < NUM_REFUSED:
                self._refuse(self._next + ahead, packet, now)
                return
            self._begin(packet.sequence, packet.timestamp)
        self._num_refused = 0
        self._hold(packet, now)

    def take(self, now: float) -> list[Step]:
        """Everything that is due."""
        self._credit_s = min(MAX_BURST_S, self._credit_s + MAX_SPEED * (now - self._taken_s))
        self._taken_s = now
        steps: list[Step] = [Restart()] if self._restarts else []
        self._restarts = False
        while True:
            if (held := self._held.pop(self._next, None)) is not None:
                self._play(held, steps)
            elif self._held:
                if len(self._held) <= MAX_HELD and now < self._hole_due_s():
                    return steps
                self._give_up(steps)
            elif self._is_quiet(now):
                self._bridge(steps)
            else:
                return steps

    def drain(self) -> list[Step]:
        """Everything that is held; what is missing between is given up."""
        steps: list[Step] = []
        while self._held:
            if (held := self._held.pop(self._next, None)) is not None:
                self._play(held, steps)
            else:
                self._give_up(steps)
        return steps

    def wake_s(self) -> float | None:
        """When `take` has something if nothing comes until then; None before the first packet."""
        if self._held:
            return self._hole_due_s()
        if math.isinf(self._covered_s):
            return None
        return self._covered_s + (PIECE_S if self._is_bridging else self.target_s + QUIET_S)

    def _begin(self, sequence: int, timestamp: int) -> None:
        self._next, self._next_timestamp = sequence, timestamp  # unwrapped from here on
        self._held: dict[int, _Held] = {}
        self._given_up: dict[int, None] = {}
        self._lateness = Lateness()
        self._stray = None
        self._num_refused = 0
        self._made_up = 0  # samples since the last real one
        self._covered_s = math.inf  # until when, on our clock, there is audio
        self._is_bridging = False

    def _hold(self, packet: Packet, now: float) -> None:
        sequence = self._next + signed(packet.sequence - self._next, 16)
        timestamp, _ = self._observe(packet, now)
        self._held[sequence] = _Held(packet.payload, timestamp, packet.num_samples, now, self._lateness.is_stale)

    def _pass_over(self, packet: Packet, now: float) -> None:
        """Not even the beginning of a stream: of what has none of its audio yet, nothing can be missing."""
        ahead = signed(packet.sequence - self._next, 16)
        sequence = self._next + ahead
        if packet.ssrc != self._ssrc or abs(ahead) > MAX_JUMP:
            return
        if ahead >= 0:
            self._held.setdefault(sequence, _Held(b"", self._next_timestamp, 0, now, is_stale=False))
        elif sequence in self._given_up:
            del self._given_up[sequence]
            self.counts.late += 1

    def _refuse(self, sequence: int, packet: Packet, now: float) -> None:
        _, late_s = self._observe(packet, now)
        if sequence in self._given_up:
            del self._given_up[sequence]
            self.counts.late += 1
            self._lateness.missed(late_s, now)
        else:
            self.counts.repeated += 1

    def _observe(self, packet: Packet, now: float) -> tuple[int, float]:
        """Its unwrapped timestamp, and how late it is."""
        timestamp = self._next_timestamp + signed(packet.timestamp - self._next_timestamp, 32)
        return timestamp, self._lateness.observe(timestamp / self._clock_hz, now)

    def _play(self, held: _Held, steps: list[Step]) -> None:
        self._next += 1
        if not held.num_samples:
            return
        gap = held.timestamp - self._next_timestamp
        if held.is_stale:
            self.counts.stale += 1
        else:
            if 0 < gap <= MAX_FILL_S * self._clock_hz:
                self._fill(gap, steps)
            if self._can_pay(held.num_samples):
                steps.append(Decode(held.payload))
                self._made_up = 0
        self._next_timestamp = held.timestamp + held.num_samples
        self._covered_s = held.arrived_s + held.num_samples / self._clock_hz
        self._is_bridging = False

    def _hole_due_s(self) -> float:
        """When the next packet is late enough to be given up; counted from when it was to come, or the next has."""
        first = min(self._held)
        behind = self._held[first]
        expected = behind.timestamp - (first - self._next) * behind.num_samples
        expected_s = self._lateness.base_s + expected / self._clock_hz  # of a clock that may have jumped since
        return min(expected_s, behind.arrived_s) + self.target_s

    def _give_up(self, steps: list[Step]) -> None:
        """The next packet alone: those behind it have until later."""
        first = min(self._held)
        behind = self._held[first]
        num_missing = first - self._next
        if behind.timestamp - self._next_timestamp > MAX_FILL_S * self._clock_hz:
            self._skip(first, behind, steps)
            return
        missing = max(0, min(behind.timestamp - self._next_timestamp, num_missing * behind.num_samples))
        self.counts.lost += 1
        self._given_up[self._next] = None
        while len(self._given_up) > MAX_HELD:
            del self._given_up[next(iter(self._given_up))]
        if num_missing == 1 and self._may_recover(behind, missing) and self._can_pay(behind.num_samples):
            self._fill(missing - behind.num_samples, steps)
            steps.append(Recover(behind.payload, behind.num_samples))
            self.counts.recovered += 1
            self._made_up = 0
            self._next_timestamp = behind.timestamp
        else:
            share = missing // num_missing
            self._fill(share, steps)
            self._next_timestamp += share
        self._next += 1

    def _may_recover(self, behind: _Held, missing: int) -> bool:
        """Where no time is missing there was no audio, and the copy is of what has been heard."""
        is_audio = behind.num_samples > 0 and (missing > 0 or self._made_up > 0)
        return is_audio and not behind.is_stale and self._has_fec(behind.payload)

    def _skip(self, first: int, behind: _Held, steps: list[Step]) -> None:
        """All that is missing at once: what a few bytes may make us make up is bounded."""
        self.counts.lost += first - self._next
        self._fill(round(MAX_FILL_S * self._clock_hz), steps)
        self._next, self._next_timestamp = first, behind.timestamp

    def _is_quiet(self, now: float) -> bool:
        wake_s = self.wake_s()
        return wake_s is not None and now >= wake_s

    def _bridge(self, steps: list[Step]) -> None:
        num_samples = round(PIECE_S * self._clock_hz)
        self._make_up(num_samples, steps)
        self.counts.bridged += 1
        self._next_timestamp += num_samples
        self._covered_s += PIECE_S
        self._is_bridging = True

    def _fill(self, num_samples: int, steps: list[Step]) -> None:
        """Time that the sender's clock says has passed."""
        num_samples = min(num_samples, round(self._credit_s * self._clock_hz))
        self._credit_s -= max(0, num_samples) / self._clock_hz
        self._make_up(num_samples, steps)

    def _can_pay(self, num_samples: int) -> bool:
        if self._credit_s <= 0:
            self.counts.excess += 1
            return False
        self._credit_s -= num_samples / self._clock_hz
        return True

    def _make_up(self, num_samples: int, steps: list[Step]) -> None:
        if num_samples <= 0:
            return
        grid = round(GRID_S * self._clock_hz)
        left = max(0, round(CONCEAL_S * self._clock_hz) - self._made_up)
        concealed = min(num_samples, left) // grid * grid
        if concealed > 0:
            steps.append(MakeUp("conceal", concealed))
        if num_samples > concealed:
            steps.append(MakeUp("comfort", num_samples - concealed))
        self._made_up += num_samples


def signed(difference: int, bits: int) -> int:
    """Of counters that wrap: the shorter way round."""
    half = 1 << (bits - 1)
    return (difference + half) % (1 << bits) - half
