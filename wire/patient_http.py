"""uvicorn's HTTP protocol, with an end to its patience: uvicorn 0.54 waits for the head of a request for ever.

A connection on which no request has been served or begun for `HEAD_TIMEOUT_S` is closed, which is looked at as often:
so one that a client keeps alive has between that and twice as long. Bodies have a deadline of their own, which is the
application's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT_S = 10.0  # as a hello has


class PatientHttp(HttpToolsProtocol):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._idle_since: Any = (
            None  # the request that had been served when we looked last; ourselves: one was under way
        )
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._timer: asyncio.TimerHandle = self.loop.call_later(HEAD_TIMEOUT_S, self._look)

    def _look(self) -> None:
        if self.transport.get_protocol() is not self:  # a WebSocket by now
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is self._idle_since:
            self.transport.close()
            return
        self._idle_since = self.cycle if is_idle else self
        self._look_later()
