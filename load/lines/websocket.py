"""The caller's end of a call over `WS /v1/calls`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

import numpy as np
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from load.lines.boundary import SERVER_KINDS, Line, LineClosed, NoCall, Received
from load.lines.sockets import line_closed, open_socket, send
from wire import calls
from wire.messages import decode, encode
from wire.pcm import Pcm16, to_bytes


class WebSocketLine:
    counts_samples = True

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send_audio(self, pcm: Pcm16) -> None:
        await self._send(to_bytes(pcm))

    async def send(self, message: calls.ClientMessage) -> None:
        await self._send(encode(message))

    async def vanish(self) -> None:
        self._connection.transport.abort()

    async def receive(self) -> Received:
        try:
            data = await self._connection.recv()
        except ConnectionClosed as closed:
            raise line_closed(closed) from None
        now = time.monotonic()
        if isinstance(data, bytes):
            return now, np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        return now, decode(data, SERVER_KINDS)

    async def _send(self, data: str | bytes) -> None:
        await send(self._connection, data)


@contextlib.asynccontextmanager
async def websocket_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Raises: NoCall."""
    async with open_socket(url, key, "ws://127.0.0.1:8080/v1/calls") as connection:
        line = WebSocketLine(connection)
        try:
            await line.send(hello)
        except LineClosed as closed:
            raise NoCall(f"{url} took the call and hung up: {closed}") from None
        yield line
