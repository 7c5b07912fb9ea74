"""What a call does when nothing happens, or when it has lasted too long. Pure."""

from __future__ import annotations

from enum import Enum, auto

GOODBYE_S = 3.0  # of the drain time is kept for saying goodbye
DRAIN_MARGIN_S = 0.5  # before the server's patience ends, the call does, in order
GRACE_S = 10.0  # a call whose time is up may finish the turn


class Due(Enum):
    IDLE_PROMPT = auto()
    IDLE_GOODBYE = auto()
    LENGTH_GOODBYE = auto()  # as soon as nobody speaks
    LENGTH_END = auto()  # at once
    DRAIN_GOODBYE = auto()
    DRAIN_END = auto()


class Patience:
    """`due` on every tick; `heard_caller` when the caller speaks."""

    def __init__(self, started_s: float, *, idle_after_s: float, max_call_s: float, drain_timeout_s: float) -> None:
        self._started_s = started_s
        self._idle_after_s = idle_after_s
        self._max_call_s = max_call_s
        self._drain_goodbye_s = max(0.0, drain_timeout_s - GOODBYE_S - GRACE_S)
        self._drain_end_s = max(0.0, drain_timeout_s - DRAIN_MARGIN_S)
        self._draining_since_s: float | None = None
        self._prompted = False

    def heard_caller(self) -> None:
        self._prompted = False

    def due(self, now: float, *, quiet_since_s: float | None, draining: bool) -> Due | None:
        """`quiet_since_s`: since when neither side speaks, None while one does."""
        if draining and self._draining_since_s is None:
            self._draining_since_s = now
        draining_s = now - self._draining_since_s if self._draining_since_s is not None else -1.0
        over_s = now - self._started_s - self._max_call_s
        if draining_s >= self._drain_end_s:
            return Due.DRAIN_END
        if draining_s >= self._drain_goodbye_s:
            return Due.DRAIN_GOODBYE if quiet_since_s is not None else None
        if over_s >= GRACE_S:
            return Due.LENGTH_END
        if over_s >= 0:
            return Due.LENGTH_GOODBYE if quiet_since_s is not None else None
        if quiet_since_s is None or now - quiet_since_s < self._idle_after_s:
            return None
        if self._prompted:
            return Due.IDLE_GOODBYE
        self._prompted = True
        return Due.IDLE_PROMPT
