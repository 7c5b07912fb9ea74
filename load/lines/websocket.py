"""The caller's end of a call over `WS /v1/calls`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from load.lines.boundary import (
    CONNECT_TIMEOUT_S,
    SERVER_KINDS,
    Line,
    LineClosed,
    NoCall,
    Received,
    is_here,
    refused,
    unreachable,
)
from wire import calls
from wire.messages import decode, encode
from wire.pcm import Pcm16

PING_S = 2.0  # a server that stands still is noticed within two of these


class WebSocketLine:
    counts_samples = True

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send_audio(self, pcm: Pcm16) -> None:
        await self._send(pcm.astype("<i2", copy=False).tobytes())

    async def send(self, message: calls.ClientMessage) -> None:
        await self._send(encode(message))

    async def receive(self) -> Received:
        try:
            data = await self._connection.recv()
        except ConnectionClosed as closed:
            raise _closed(closed) from None
        now = time.monotonic()
        if isinstance(data, bytes):
            return now, np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        return now, decode(data, SERVER_KINDS)

    async def _send(self, data: str | bytes) -> None:
        try:
            await self._connection.send(data)
        except ConnectionClosed as closed:
            raise _closed(closed) from None


@contextlib.asynccontextmanager
async def websocket_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Raises: NoCall."""
    try:
        connection = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {key}"} if key is not None else {},
            proxy=None if is_here(url) else True,
            compression=None,
            open_timeout=CONNECT_TIMEOUT_S,
            close_timeout=1.0,
            ping_interval=PING_S,
            ping_timeout=PING_S,
        )
    except InvalidStatus as answer:
        raise refused(url, answer.response.status_code, "/v1/calls") from None
    except InvalidURI:
        raise NoCall(f"{url} is no WebSocket address", "it looks like ws://127.0.0.1:8080/v1/calls") from None
    except (OSError, TimeoutError, InvalidHandshake) as error:
        raise unreachable(url, error) from None
    async with connection:
        line = WebSocketLine(connection)
        await line.send(hello)
        yield line


def _closed(closed: ConnectionClosed) -> LineClosed:
    if closed.rcvd is None:
        return LineClosed(None, "the connection was lost")
    return LineClosed(closed.rcvd.code, f"code {closed.rcvd.code} {closed.rcvd.reason}".strip())
