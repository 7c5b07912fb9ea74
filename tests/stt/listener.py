"""A client of `WS /v1/listen` for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from wire import listen
from wire.messages import decode, encode

MESSAGE_SAMPLES = 1600  # 100 ms
M = TypeVar("M", bound=listen.ServerMessage)


class Listener:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: list[listen.ServerMessage] = []  # in the order of arrival

    async def feed(self, pcm: np.ndarray) -> None:
        for start in range(0, pcm.size, MESSAGE_SAMPLES):
            await self.connection.send(pcm[start : start + MESSAGE_SAMPLES].tobytes())

    async def send(self, message: listen.ClientMessage) -> None:
        await self.connection.send(encode(message))

    async def receive(self) -> listen.ServerMessage:
        async with asyncio.timeout(20):
            data = await self.connection.recv()
        assert isinstance(data, str)
        self.seen.append(decode(data, listen.SERVER_MESSAGES))
        return self.seen[-1]

    async def next(self, kind: type[M]) -> M:
        """The next message of `kind`; those before it are in `seen`."""
        while not isinstance(message := await self.receive(), kind):
            assert not isinstance(message, listen.Error), message
        return message

    async def failure(self) -> tuple[str, int | None]:
        """Code of the error that comes next, and the close code that follows."""
        error = await self.next(listen.Error)
        try:
            while True:
                await self.receive()
        except ConnectionClosed:
            return error.code, self.connection.close_code


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Listener]:
    async with connect(url.replace("http", "ws") + "/v1/listen", compression=None, proxy=None) as connection:
        yield Listener(connection)


@asynccontextmanager
async def listening(url: str, *, partials: bool = False, **hello: object) -> AsyncIterator[Listener]:
    """Past `ready`."""
    async with connected(url) as listener:
        await listener.send(listen.Hello(1, partials=partials, **hello))  # type: ignore[arg-type]
        await listener.next(listen.Ready)
        yield listener
