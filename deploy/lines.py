"""The caller's end of a call's connection, and the one over `WS /v1/calls`."""

from __future__ import annotations

import contextlib
import ipaddress
import time
import urllib.parse
from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from deploy.errors import CallError
from wire import calls
from wire.messages import decode, encode
from wire.pcm import Pcm16

CONNECT_TIMEOUT_S = 10.0
SERVER_KINDS: tuple[type[calls.ServerMessage], ...] = calls.SERVER_MESSAGES

Received: TypeAlias = tuple[float, Pcm16 | calls.ServerMessage]


class LineClosed(Exception):
    """`code`: the WebSocket's close code, where there was one."""

    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Line(Protocol):
    """Audio is int16 mono at the rates of the hello it was opened with.

    `counts_samples`: what is received is all of the agent's audio, so that its samples can be counted.
    """

    counts_samples: bool

    async def send_audio(self, pcm: Pcm16) -> None:
        """20 ms, in real time. Raises: LineClosed."""

    async def send(self, message: calls.ClientMessage) -> None:
        """Raises: LineClosed."""

    async def receive(self) -> Received:
        """The next of the agent's audio or messages, and when it arrived.

        Raises: LineClosed; wire.errors.PeerError for what is no message of ours.
        """


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
    """Raises: CallError."""
    try:
        connection = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {key}"} if key is not None else {},
            proxy=None if is_here(url) else True,
            compression=None,
            open_timeout=CONNECT_TIMEOUT_S,
            close_timeout=1.0,
        )
    except InvalidStatus as answer:
        raise refused(url, answer.response.status_code, "/v1/calls") from None
    except InvalidURI:
        raise CallError(f"{url} is no WebSocket address", "it looks like ws://127.0.0.1:8080/v1/calls") from None
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


def refused(url: str, status: int, path: str) -> CallError:
    if status == 401:
        return CallError(f"{url} wants an API key (HTTP {status})", "give the file that holds it: --key-file")
    return CallError(f"{url} takes no calls (HTTP {status})", f"the path of these calls is {path}")


def unreachable(url: str, error: BaseException) -> CallError:
    problem = getattr(error, "strerror", None) or str(error) or "no answer"
    return CallError(f"no call server at {url}: {problem}", "start one: offhook up")


def is_here(url: str) -> bool:
    """A proxy, if the environment names one, cannot reach this machine's loopback for us."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
