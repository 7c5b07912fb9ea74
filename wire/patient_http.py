"""uvicorn's HTTP protocol, with an end to its patience: uvicorn 0.54 waits for the head of a request for ever.

A connection on which no request is served, nor has begun for `HEAD_TIMEOUT_S`, is closed; so one that a client keeps
alive has between that and twice as long. Bodies have a deadline of their own, which is the application's.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT_S = 10.0  # as a hello has


class PatientHttp(HttpToolsProtocol):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._served: Any = None  # the request that was served when we looked last
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._timer: asyncio.TimerHandle = self.loop.call_later(HEAD_TIMEOUT_S, self._look)

    def _look(self) -> None:
        if self.transport.get_protocol() is not self:  # a WebSocket by now
            return
        if self.cycle is self._served and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
            return
        self._served = self.cycle
        self._look_later()
