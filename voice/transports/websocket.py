"""`WS /v1/calls`: JSON events and binary PCM16 over one WebSocket (messages: `wire.calls`)."""

from __future__ import annotations

import asyncio

import numpy as np
from starlette.websockets import WebSocket

from wire import calls
from wire.errors import PeerError
from wire.messages import PROTOCOL_VERSION
from wire.pcm import Pcm16, from_bytes
from wire.sockets import Socket

HELLO_TIMEOUT_S = 10.0


class WebSocketTransport:
    def __init__(self, websocket: WebSocket) -> None:
        self.socket: Socket[calls.ClientMessage] = Socket(websocket, calls.CLIENT_MESSAGES, calls.Error)
        self.sample_rate_hz = 0
        self.output_sample_rate_hz = 0

    async def accept(self) -> calls.Hello:
        """Take the connection and wait for the caller's hello.

        Raises: Disconnected, PeerError.
        """
        await self.socket.accept()
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                first = await self.socket.receive()
        except TimeoutError:
            raise PeerError(f"no hello within {HELLO_TIMEOUT_S:.0f} s", code="no_hello") from None
        if not isinstance(first, calls.Hello):
            raise PeerError("the first message must be a hello", code="no_hello")
        if first.version != PROTOCOL_VERSION:
            raise PeerError(f"version {first.version} is not spoken here, only {PROTOCOL_VERSION}", code="bad_version")
        self.sample_rate_hz, self.output_sample_rate_hz = first.sample_rate_hz, first.output_sample_rate_hz
        return first

    async def receive(self) -> Pcm16 | calls.Played | calls.Hangup:
        message = await self.socket.receive()
        match message:
            case bytes():
                return from_bytes(message, self.sample_rate_hz)
            case calls.Hello():
                raise PeerError("a second hello", code="bad_message")
            case _:
                return message

    async def send(self, payload: Pcm16 | calls.ServerMessage) -> None:
        if isinstance(payload, np.ndarray):
            await self.socket.send(payload.astype("<i2", copy=False).tobytes())
        else:
            await self.socket.send(payload)
