"""A WebSocket to one of our services that outlives a crash of that service.

`Link` connects, says hello, hands every message on, and connects again with back-off when the connection is lost. What
was under way when it was lost fails with Unavailable; nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from wire.errors import Overloaded, PeerError, Unavailable
from wire.messages import Message, decode, encode

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3.0
SEND_TIMEOUT_S = 1.0  # a service that does not read for this long has stalled: the turn is lost anyway
FIRST_BACKOFF_S = 0.1
MAX_BACKOFF_S = 0.5  # a service that is back is noticed within this; asking a closed port costs nothing
_GONE = (ConnectionClosed, InvalidHandshake, OSError, TimeoutError)
_PASSING = (Unavailable.code, Overloaded.code)  # it drains, or is full

In = TypeVar("In", bound=Message)


class Link(Generic[In]):
    """`on_message` gets messages and binary payloads in order; `on_lost` is called when a connection ends."""

    def __init__(
        self,
        url: str,
        hello: Message,
        kinds: tuple[type[In], ...],
        *,
        key: str | None,
        on_message: Callable[[In | bytes], Awaitable[None]],
        on_lost: Callable[[], None],
    ) -> None:
        self._url = "ws" + url.removeprefix("http")
        self._hello = hello
        self._kinds = kinds
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._on_message = on_message
        self._on_lost = on_lost
        self._connection: ClientConnection | None = None
        self._refusal: PeerError | None = None
        self._problem = "no answer"  # why it is not ready, in the service's words if it had any
        self._answered = asyncio.Event()  # ready or refused
        self._backoff_s = FIRST_BACKOFF_S

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with connect(
                    self._url,
                    additional_headers=self._headers,
                    compression=None,
                    open_timeout=CONNECT_TIMEOUT_S,
                    close_timeout=SEND_TIMEOUT_S,
                    max_size=1 << 20,
                    proxy=None,
                ) as connection:
                    self._connection, self._problem = connection, "no answer to hello"
                    with contextlib.suppress(ConnectionClosed):  # closed at once: why is told by what comes from it
                        await connection.send(encode(self._hello))
                    async for data in connection:
                        await self._on_message(decode(data, self._kinds) if isinstance(data, str) else data)
            except _GONE as error:
                if self._connection is None:
                    self._problem = str(error) or type(error).__name__
                logger.debug("x %s: %s", self._url, error)
            except InvalidURI as error:
                raise Unavailable(f"{self._url}: {error}") from None
            except PeerError as error:
                logger.warning("x %s sent what we do not understand: %s", self._url, error)
            self._connection = None
            self._answered.clear()
            self._on_lost()
            await asyncio.sleep(self._backoff_s)
            self._backoff_s = min(MAX_BACKOFF_S, 2 * self._backoff_s)

    def ready(self) -> None:
        """Called by the owner on the service's `ready`: from now on `send` sends."""
        self._refusal = None
        self._backoff_s = FIRST_BACKOFF_S
        self._answered.set()

    def refuse(self, code: str, message: str) -> None:
        """Called by the owner when the service ends the connection with an error. Some pass: then it is tried again."""
        self._problem = message
        if code not in _PASSING:
            self._refusal = PeerError(message, code=code)
            self._answered.set()

    def drop(self) -> None:
        """The service owes an answer and does not give it: whether it is well a new connection will tell."""
        if self._connection is not None:
            logger.warning("x %s does not answer: connecting anew", self._url)
            self._answered.clear()  # from now on, and not only once the loss is noticed
            self._connection.transport.abort()

    async def wait_ready(self, until_s: float) -> None:
        """`until_s`: an instant of `time.monotonic`.

        Raises: PeerError when our hello is refused, Unavailable when nobody takes it in time.
        """
        try:
            async with asyncio.timeout(until_s - time.monotonic()):
                if self._refusal is None:
                    await self._answered.wait()
        except TimeoutError:
            raise Unavailable(f"{self._url}: {self._problem}") from None
        if self._refusal is not None:
            raise self._refusal

    async def wait_back(self, timeout_s: float) -> None:
        """A connection that was just lost may be back at once. Whether it is, `send` tells."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._answered.wait()

    async def send(self, message: Message | bytes) -> None:
        """Raises: Unavailable while there is no connection, or when it stalls."""
        if self._connection is None or not self._answered.is_set():
            raise Unavailable(f"{self._url} is not connected")
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._connection.send(message if isinstance(message, bytes) else encode(message))
        except TimeoutError:
            self.drop()  # what it has of the message is unknown
            raise Unavailable(f"{self._url} does not read") from None
        except _GONE as error:
            raise Unavailable(f"{self._url}: {error}") from None
