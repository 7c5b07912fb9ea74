"""What a network may do to packets, each as one frozen dataclass; `Impairment` is all of them for one direction. Pure.

`up` is from the caller to the server, `down` the other way. In words of RFC 8868 (evaluation of RTP congestion control)
and RFC 4737 (reordering): loss in `share` of packets, delay one way. A path is a line of stages in this order:

    loss -> duplication -> delay, drift, jitter -> reordering -> bottleneck

so that the bottleneck's rate holds for what leaves. What the caller hears is stated for a server that keeps its
promises: no silence over 1.5 s without a word, and nothing of the conversation lost but what the network took.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Direction: TypeAlias = Literal["up", "down", "both"]
Distribution: TypeAlias = Literal["uniform", "normal", "exponential", "pareto"]

MAX_DELAY_S = 10.0  # longer is no path that anybody would call over
MAX_DRIFT_PPM = 1000.0  # crystals are within 100 ppm of nominal, two of them within 200 of each other


@dataclass(frozen=True)
class Loss:
    """Each packet alone is lost with probability `share`.

    Expected: up to 0.05 the call runs on; concealed gaps of 20 ms each, every turn answered, words may be misheard.
    """

    KIND: ClassVar[str] = "loss"
    share: float
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_share("share", self.share)


@dataclass(frozen=True)
class BurstLoss:
    """Losses come in bursts, by the two-state chain of Gilbert and Elliott: `share` is the mean over all packets.

    In the bad state, which lasts `mean_burst_packets` on average, a packet is lost with `loss_in_bad`.

    Expected: gaps of `mean_burst_packets` * 20 ms in the answer; a whole word may be gone, no turn is.
    """

    KIND: ClassVar[str] = "burst_loss"
    share: float
    mean_burst_packets: float = 5.0
    loss_in_bad: float = 1.0
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_share("share", self.share)
        if not 0 < self.loss_in_bad <= 1:
            raise ValueError(f"loss_in_bad must be above 0 and at most 1, got {self.loss_in_bad}")
        if self.mean_burst_packets < 1:
            raise ValueError(f"mean_burst_packets must be at least 1, got {self.mean_burst_packets}")
        if self.share >= self.loss_in_bad or self.enter_bad > 1:
            raise ValueError(f"share {self.share} cannot be reached in bursts of {self.mean_burst_packets} packets")

    @property
    def leave_bad(self) -> float:
        """Probability, per packet, that the bad state ends."""
        return 1 / self.mean_burst_packets

    @property
    def enter_bad(self) -> float:
        """Probability, per packet, that the bad state begins: the stationary share of bad is `share / loss_in_bad`."""
        bad = self.share / self.loss_in_bad
        return self.leave_bad * bad / (1 - bad)


@dataclass(frozen=True)
class Delay:
    """Every packet takes `delay_s` longer.

    Expected: turn latency grows by `delay_s` of each direction and by nothing else.
    """

    KIND: ClassVar[str] = "delay"
    delay_s: float
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_delay("delay_s", self.delay_s)


@dataclass(frozen=True)
class Jitter:
    """A packet takes `spread_s` / 2 longer on average: 0 to `spread_s` for uniform and normal (a fourth of it is the
    deviation), without an end short of 10 s for exponential and pareto (shape 3, heavy tail).

    Queues keep the order: a packet waits for those before it, unless `keeps_order` is false.

    Expected: with 40 ms no turn is lost and the answer has no audible gaps behind the client's jitter buffer; turn
    latency grows by at most `spread_s` of each direction.
    """

    KIND: ClassVar[str] = "jitter"
    spread_s: float
    distribution: Distribution = "uniform"
    keeps_order: bool = True
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_delay("spread_s", self.spread_s)


@dataclass(frozen=True)
class Reorder:
    """`share` of the packets are held for `hold_s`, so that those behind them overtake.

    Expected: nothing audible while `hold_s` is within the receiver's jitter buffer, else the same as so much loss;
    never audio out of order.
    """

    KIND: ClassVar[str] = "reorder"
    share: float
    hold_s: float = 0.03
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_share("share", self.share)
        _require_delay("hold_s", self.hold_s)


@dataclass(frozen=True)
class Duplicate:
    """`share` of the packets come a second time, `after_s` later.

    Expected: nothing audible, no word twice, no event twice.
    """

    KIND: ClassVar[str] = "duplicate"
    share: float
    after_s: float = 0.0
    direction: Direction = "both"

    def __post_init__(self) -> None:
        _require_share("share", self.share)
        _require_delay("after_s", self.after_s)


@dataclass(frozen=True)
class Bandwidth:
    """At most `rate_bit_per_s` of payload leave; `queue_bytes` may wait, a packet that finds no room is dropped.

    Expected: above the call's own rate (Opus 20 to 100 kbit/s, PCM 256 and 384 kbit/s) nothing but the queue's delay;
    below it the queue stays full, and what is heard is broken: a call that cannot be held is ended or goes on, and
    never leaves the server with ever more to send.
    """

    KIND: ClassVar[str] = "bandwidth"
    rate_bit_per_s: float
    queue_bytes: int = 16_000
    direction: Direction = "both"

    def __post_init__(self) -> None:
        if not 0 < self.rate_bit_per_s < float("inf"):
            raise ValueError(f"rate_bit_per_s must be above 0, got {self.rate_bit_per_s}")
        if self.queue_bytes < 1500:
            raise ValueError(f"queue_bytes must hold a packet (1500), got {self.queue_bytes}")


@dataclass(frozen=True)
class Drift:
    """The sender's clock is slow by `ppm` (fast when negative), as seen by the pacing of its packets.

    A fast clock's packets come early, which a relay can only show out of a reserve: it delays all of them by what
    `for_s` of drift takes, and after that time the drift has ended.

    Expected: nothing audible for the length of the call: the delay between the two sides neither grows without end
    nor runs dry with a click.
    """

    KIND: ClassVar[str] = "drift"
    ppm: float
    for_s: float = 300.0
    direction: Direction = "both"

    def __post_init__(self) -> None:
        if not abs(self.ppm) <= MAX_DRIFT_PPM:
            raise ValueError(f"ppm must be within {MAX_DRIFT_PPM:.0f} of 0, got {self.ppm}")
        if not 0 < self.for_s <= 86_400:
            raise ValueError(f"for_s must be above 0 and at most a day, got {self.for_s}")


NetworkFault: TypeAlias = Loss | BurstLoss | Delay | Jitter | Reorder | Duplicate | Bandwidth | Drift
NETWORK_FAULTS = (Loss, BurstLoss, Delay, Jitter, Reorder, Duplicate, Bandwidth, Drift)
STREAM_FAULTS = (Delay, Jitter, Bandwidth)  # those TCP does not repair


@dataclass(frozen=True)
class Impairment:
    """What one direction does. `loss` and `burst_loss` together: lost by either."""

    loss: Loss | None = None
    burst_loss: BurstLoss | None = None
    delay: Delay | None = None
    jitter: Jitter | None = None
    reorder: Reorder | None = None
    duplicate: Duplicate | None = None
    bandwidth: Bandwidth | None = None
    drift: Drift | None = None

    @classmethod
    def of(cls, faults: Iterable[NetworkFault], direction: Literal["up", "down"]) -> Impairment:
        """Those of `faults` that concern `direction`. Raises: ValueError for two of one kind."""
        found: dict[str, NetworkFault] = {}
        for fault in faults:
            if fault.direction not in (direction, "both"):
                continue
            if fault.KIND in found:
                raise ValueError(f"{fault.KIND} is given twice for {direction}")
            found[fault.KIND] = fault
        return dataclasses.replace(cls(), **found)  # type: ignore[arg-type]  # KIND is the field's name

    def without_drops(self) -> Impairment:
        """The same path with a sender that waits while the queue is full."""
        if self.bandwidth is None:
            return self
        return dataclasses.replace(self, bandwidth=dataclasses.replace(self.bandwidth, queue_bytes=1 << 62))


NO_IMPAIRMENT = Impairment()


def for_streams(faults: Sequence[NetworkFault]) -> Sequence[NetworkFault]:
    """Raises: ValueError for a fault that a byte stream cannot have."""
    for fault in faults:
        if not isinstance(fault, STREAM_FAULTS):
            raise ValueError(f"{fault.KIND} is of packets: TCP would repair it; over TCP use delay, jitter, bandwidth")
    return faults


def _require_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be 0 to 1, got {value}")


def _require_delay(name: str, value: float) -> None:
    if not 0 <= value <= MAX_DELAY_S:
        raise ValueError(f"{name} must be 0 to {MAX_DELAY_S:.0f} s, got {value}")
