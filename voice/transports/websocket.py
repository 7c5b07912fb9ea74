"""`WS /v1/calls`: JSON events and binary PCM16 over one WebSocket (messages: `wire.calls`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from starlette.websockets import WebSocket

from voice.transports.boundary import Received
from wire import calls
from wire.errors import PeerError
from wire.pcm import Pcm16, from_bytes, to_bytes
from wire.quick_websocket import QuickWebSocket
from wire.sockets import Socket

LONGEST_PING_WAY_S = 0.3  # of a line on which one can talk (ITU-T G.114 ends at 0.4)


class WebSocketTransport:
    def __init__(self, websocket: WebSocket, lead_s: float) -> None:
        self.socket: Socket[calls.ClientMessage] = Socket(websocket, calls.CLIENT_MESSAGES, calls.Error)
        self.sample_rate_hz = 0
        self.output_sample_rate_hz = 0
        self.lead_s = lead_s
        self.listener_delay_s: float | None = None
        self.takes_back = True
        self.take: Callable[[Pcm16], bool] | None = None
        self._protocol: QuickWebSocket = websocket.scope["state"]["websocket"]
        self._protocol.on_binary = self._offer

    @property
    def way_s(self) -> float:
        """Half of the last ping's way there and back; 0 before one is back, or if it waited for something else."""
        way_s = self._protocol.last_ping_rtt / 2
        return way_s if way_s <= LONGEST_PING_WAY_S else 0.0

    def _offer(self, data: bytes) -> bool:
        if self.take is None:
            return False
        try:
            return self.take(from_bytes(data, self.sample_rate_hz))
        except PeerError:  # told to whoever receives it
            return False

    async def accept(self) -> calls.Hello:
        """Take the connection and wait for the caller's hello.

        Raises: Disconnected, PeerError.
        """
        await self.socket.accept()
        first = await self.socket.receive_hello(calls.Hello)
        self.sample_rate_hz, self.output_sample_rate_hz = first.sample_rate_hz, first.output_sample_rate_hz
        return first

    async def receive(self) -> Received:
        message = await self.socket.receive()
        match message:
            case bytes():
                return from_bytes(message, self.sample_rate_hz)
            case calls.Hello():
                raise PeerError("hello was said already", code="bad_message")
            case _:
                return message

    async def send(self, payload: Pcm16 | calls.ServerMessage) -> None:
        if isinstance(payload, np.ndarray):
            await self.socket.send(to_bytes(payload))
        else:
            await self.socket.send(payload)
