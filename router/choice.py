"""Which worker serves a request. Pure.

A conversation stays where its KV is, unless that worker is gone or clearly busier than another: recomputing a prompt
costs less than waiting behind `STICKY_SLACK` other requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

STICKY_SLACK = 2  # requests a session's worker may have more than the least busy one
MAX_SESSIONS = 10_000  # conversations remembered; the least recently used is forgotten first


@dataclass(frozen=True)
class Load:
    worker: str
    is_healthy: bool
    num_active: int


def order(loads: Sequence[Load], sticky: str | None) -> list[str]:
    """Workers to try, best first. Unhealthy ones come last: a wrong mark must not refuse what could be served."""
    ranked = sorted(loads, key=lambda load: (not load.is_healthy, load.num_active))
    names = [load.worker for load in ranked]
    kept = next((load for load in loads if load.worker == sticky and load.is_healthy), None)
    if kept is not None and kept.num_active <= ranked[0].num_active + STICKY_SLACK:
        names.remove(kept.worker)
        names.insert(0, kept.worker)
    return names


class Sessions:
    """Which worker served a conversation last."""

    def __init__(self, max_sessions: int = MAX_SESSIONS) -> None:
        self._max_sessions = max_sessions
        self._workers: OrderedDict[str, str] = OrderedDict()

    def get(self, session: str) -> str | None:
        return self._workers.get(session)

    def note(self, session: str, worker: str) -> None:
        if not session:
            return
        self._workers[session] = worker
        self._workers.move_to_end(session)
        if len(self._workers) > self._max_sessions:
            self._workers.popitem(last=False)
