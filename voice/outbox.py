"""Everything that leaves for the caller, in one order: word times before their audio, `clear` after the last of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeAlias

from voice.transports.boundary import Transport
from wire import calls
from wire.pcm import Pcm16
from wire.sockets import Disconnected

SIZE = 512  # payloads; ten seconds of audio messages. Full: the caller does not read, which ends the call
FLUSH_TIMEOUT_S = 2.0

Payload: TypeAlias = Pcm16 | calls.ServerMessage
Written: TypeAlias = Callable[[float], None]


class Outbox:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._queue: asyncio.Queue[tuple[Payload, Written | None]] = asyncio.Queue(SIZE)

    def post(self, payload: Payload, written: Written | None = None) -> None:
        """`written` is called with the time at which the payload was given to the socket.

        Raises: Disconnected when the caller does not read.
        """
        try:
            self._queue.put_nowait((payload, written))
        except asyncio.QueueFull:
            raise Disconnected("the caller does not read") from None

    async def run(self) -> None:
        """Send until cancelled. Raises: Disconnected."""
        while True:
            payload, written = await self._queue.get()
            await self._transport.send(payload)
            if written is not None:
                written(time.monotonic())

    async def flush(self, last: calls.ServerMessage) -> None:
        """After `run`: send what is left but audio, then `last`. Silent when the caller is gone."""
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                while not self._queue.empty():
                    payload, _ = self._queue.get_nowait()
                    if isinstance(payload, calls.SERVER_MESSAGES):
                        await self._transport.send(payload)
                await self._transport.send(last)
        except (TimeoutError, Disconnected):
            return
