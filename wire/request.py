"""Who asks, for which turn, and how much time is left: the `x-offhook-*` headers.

Time left travels, never a wall-clock instant: two machines need not agree on the time of day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wire.errors import PeerError

DEADLINE_HEADER = "x-offhook-deadline-ms"
CALL_HEADER = "x-offhook-call"
TURN_HEADER = "x-offhook-turn"
REVISION_HEADER = "x-offhook-revision"


@dataclass(frozen=True)
class RequestContext:
    """`deadline_s` is an instant of the receiving process's monotonic clock, None when the caller set none."""

    call: str = ""
    turn: int | None = None
    revision: int | None = None
    deadline_s: float | None = None

    def left_s(self, now: float) -> float:
        """Seconds until the deadline; infinite without one, negative when it has passed."""
        return math.inf if self.deadline_s is None else self.deadline_s - now

    def headers(self, now: float) -> dict[str, str]:
        """Headers for the next hop; a deadline already passed travels as 0."""
        result = {CALL_HEADER: self.call} if self.call else {}
        if self.turn is not None:
            result[TURN_HEADER] = str(self.turn)
        if self.revision is not None:
            result[REVISION_HEADER] = str(self.revision)
        if self.deadline_s is not None:
            result[DEADLINE_HEADER] = str(max(0, round(1000 * self.left_s(now))))
        return result


def from_headers(headers: Mapping[str, str], now: float) -> RequestContext:
    """Raises: PeerError for a header that is no number, negative or unprintable."""
    call = headers.get(CALL_HEADER, "")
    if len(call) > 64 or not call.isascii() or not (call.isprintable() or not call):
        raise PeerError(f"{CALL_HEADER}: at most 64 printable characters")
    deadline_ms = _number(headers, DEADLINE_HEADER)
    return RequestContext(
        call=call,
        turn=_number(headers, TURN_HEADER),
        revision=_number(headers, REVISION_HEADER),
        deadline_s=None if deadline_ms is None else now + deadline_ms / 1000,
    )


def _number(headers: Mapping[str, str], name: str) -> int | None:
    value = headers.get(name)
    if value is None:
        return None
    if not value.isascii() or not value.isdecimal() or len(value) > 9:
        raise PeerError(f"{name}: expected a whole number, got {value!r:.20}")
    return int(value)
