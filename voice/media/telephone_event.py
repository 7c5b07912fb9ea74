"""Keys of a telephone as they come over RTP (RFC 4733): each press once, however often it is told. Pure.

A press is told by many packets, the last of them three times, so that losing some loses nothing. All have the time at
which it began as their timestamp: the same timestamp is the same press. It counts from its first packet on, whichever
that is; what comes of an older one is a repetition, or too late, because digits out of order are another number.

A press that outlasts the 16 bits of its duration goes on under another timestamp (2.5.1.3), at 48 kHz after 1.4 s.
"""

from __future__ import annotations

from dataclasses import dataclass

from voice.media.jitter import signed
from wire.calls import KEYS

BLOCK_BYTES = 4  # event, E bit and volume, duration (2.3); digits have pauses between, so no packet holds two
MAX_DURATION = 0xFFFF
SEGMENT_S = 0.1  # a segment begins with a packet, and these come every 50 ms at most (2.5.1)
OLD_S = 10.0  # no network is so slow: the sender's clock began anew


class BadEvent(ValueError):
    """The payload is no key."""


@dataclass(frozen=True)
class TelephoneEvent:
    """`duration` so far, in ticks of the RTP clock; `volume_dbm0` of the tone that it stands for."""

    key: str
    has_ended: bool
    volume_dbm0: int
    duration: int


def parse(payload: bytes) -> TelephoneEvent:
    """Raises: BadEvent, which does not tell the payload: it may be part of a secret."""
    if not payload or len(payload) % BLOCK_BYTES:
        raise BadEvent(f"telephone event of {len(payload)} bytes")
    event, flags = payload[0], payload[1]
    if event >= len(KEYS):
        raise BadEvent("telephone event that is no key")
    return TelephoneEvent(KEYS[event], bool(flags & 0x80), -(flags & 0x3F), int.from_bytes(payload[2:4], "big"))


@dataclass
class _Press:
    key: str
    ssrc: int
    timestamp: int
    has_ended: bool


class Presses:
    """`push` each packet of the payload types that carry events."""

    def __init__(self) -> None:
        self._num_bad = 0
        self._last: _Press | None = None

    def take_num_bad(self) -> int:
        """Packets that held no key, since it was asked last."""
        taken, self._num_bad = self._num_bad, 0
        return taken

    def push(self, payload: bytes, timestamp: int, ssrc: int, clock_hz: int) -> str | None:
        """The key, if this packet is the first that tells of its press."""
        try:
            event = parse(payload)
        except BadEvent:
            self._num_bad += 1
            return None
        last = self._last
        if last is not None and last.ssrc == ssrc:
            since = signed(timestamp - last.timestamp, 32)
            if -OLD_S * clock_hz < since <= 0:
                last.has_ended |= event.has_ended and since == 0
                return None
            if event.key == last.key and not last.has_ended and 0 <= since - MAX_DURATION <= SEGMENT_S * clock_hz:
                last.timestamp, last.has_ended = timestamp, event.has_ended
                return None
        self._last = _Press(event.key, ssrc, timestamp, event.has_ended)
        return event.key
