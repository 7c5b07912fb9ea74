"""A response that is produced while it is sent, and whose producer is cancelled the moment the client is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from fastapi import Response
from starlette.types import Receive, Scope, Send

logger = logging.getLogger(__name__)


class ClientGone(Exception):
    pass


class Outgoing:
    """What the producer writes to. Until `start`, it may raise a WireError, which becomes the response."""

    def __init__(self, send: Send) -> None:
        self.started = False
        self._send = send

    async def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        assert not self.started
        self.started = True
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, chunk: bytes) -> None:
        """Waits while the client reads slower than we write."""
        assert self.started
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


Producer: TypeAlias = Callable[[Outgoing], Awaitable[None]]


class Streamed(Response):
    """Read the request's body before returning this: it watches the connection for its end."""

    def __init__(self, produce: Producer) -> None:
        super().__init__()
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        outgoing = Outgoing(send)
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(_watch(receive))
                await self._produce(outgoing)
                watch.cancel()
        except ExceptionGroup as failed:
            if failed.subgroup(ClientGone) is None:
                raise failed.exceptions[0] from None
            logger.debug("x the client is gone")
            return
        await outgoing.end()


async def _watch(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise ClientGone
