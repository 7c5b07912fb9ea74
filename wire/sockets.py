"""The server's end of a WebSocket that speaks `wire.messages`: JSON text messages and binary audio.

A peer that breaks the protocol gets one `error` message and a close code. A peer that stops reading is cut off after
`SEND_TIMEOUT_S`, so that its unread audio cannot pile up in our memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from wire.errors import PeerError, WireError
from wire.messages import PROTOCOL_VERSION, Message, decode, encode

logger = logging.getLogger(__name__)

HELLO_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 5.0
MESSAGES_IN_A_ROW = 8
MAX_REASON_BYTES = 123  # RFC 6455, 5.5: a control frame holds 125 bytes, two are the code

In = TypeVar("In", bound=Message)


class Hello(Message, Protocol):
    @property
    def version(self) -> int: ...


H = TypeVar("H", bound=Hello)


class Disconnected(Exception):
    """The peer is gone, by close, loss of the connection, or because it stopped reading."""


class ErrorMessage(Protocol):
    def __call__(self, code: str, message: str) -> Message: ...


class Socket(Generic[In]):
    def __init__(self, websocket: WebSocket, kinds: Iterable[type[In]], error: ErrorMessage) -> None:
        self._websocket = websocket
        self._kinds = tuple(kinds)
        self._error = error
        self._num_received = 0
        self._order = asyncio.Lock()  # messages leave in the order in which `send` was called

    async def accept(self) -> None:
        await self._websocket.accept()

    async def receive_hello(self, kind: type[H]) -> H:
        """The first message of every protocol of ours.

        Raises: Disconnected; PeerError with code `no_hello` or `bad_version`.
        """
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                first = await self.receive()
        except TimeoutError:
            raise PeerError(f"no hello within {HELLO_TIMEOUT_S:.0f} s", code="no_hello") from None
        if not isinstance(first, kind):
            raise PeerError("the first message must be a hello", code="no_hello")
        if first.version != PROTOCOL_VERSION:
            raise PeerError(f"version {first.version} is not spoken here, only {PROTOCOL_VERSION}", code="bad_version")
        return first

    async def receive(self) -> In | bytes:
        """The next message; binary ones as they are. After `MESSAGES_IN_A_ROW` others have their turn.

        Raises: Disconnected; PeerError for a message that is not of our protocol.
        """
        self._num_received += 1
        if self._num_received % MESSAGES_IN_A_ROW == 0:  # messages that are there are handed over without waiting
            await asyncio.sleep(0)
        try:
            event = await self._websocket.receive()
        except WebSocketDisconnect as gone:
            raise Disconnected(str(gone.code)) from None
        if event["type"] == "websocket.disconnect":
            raise Disconnected(str(event.get("code")))
        if (data := event.get("bytes")) is not None:
            return bytes(data)
        return decode(event["text"], self._kinds)

    async def send(self, message: Message | bytes) -> None:
        """Raises: Disconnected."""
        data = message if isinstance(message, bytes) else encode(message)
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S), self._order:
                if isinstance(data, bytes):
                    await self._websocket.send_bytes(data)
                else:
                    await self._websocket.send_text(data)
        except TimeoutError:
            raise Disconnected("the peer stopped reading") from None
        except (WebSocketDisconnect, RuntimeError) as error:
            # RuntimeError is Starlette's only word for sending after the close.
            raise Disconnected(str(error)) from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Idempotent, and silent towards a peer that is gone."""
        if self._websocket.application_state is not WebSocketState.CONNECTED:
            return
        reason = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._websocket.close(code, reason)
        except (TimeoutError, WebSocketDisconnect, RuntimeError) as error:
            logger.debug("x close: %s", error)

    async def fail(self, error: WireError) -> None:
        """Tell the peer what went wrong, then close with the error's code."""
        log = logger.info if isinstance(error, PeerError) else logger.warning
        log("x %s: %s", error.code, error)
        try:
            await self.send(self._error(error.code, str(error)))
        except Disconnected:
            return
        await self.close(error.close_code, error.code)
