"""How every line over a WebSocket connects, and what it says when it cannot, or is closed."""

from __future__ import annotations

import contextlib
import urllib.parse
from collections.abc import AsyncIterator

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from load.lines.boundary import CONNECT_TIMEOUT_S, LineClosed, NoCall, is_here, refused, unreachable

CLOSE_TIMEOUT_S = 1.0
PING_S = 2.0  # a server that stands still is noticed within two of these
MAX_MESSAGE_BYTES = 16 << 20  # OpenAI's Realtime protocol lets an audio event have 15 MiB


@contextlib.asynccontextmanager
async def open_socket(url: str, key: str | None, example: str) -> AsyncIterator[ClientConnection]:
    """`example`: an address of the kind that is wanted. Raises: NoCall."""
    try:
        connection = await connect(
            url,
            additional_headers={"Authorization": f"Bearer {key}"} if key is not None else {},
            proxy=None if is_here(url) else True,
            compression=None,
            open_timeout=CONNECT_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=PING_S,
            ping_timeout=PING_S,
            max_size=MAX_MESSAGE_BYTES,
        )
    except InvalidStatus as answer:
        raise refused(url, answer.response.status_code, urllib.parse.urlsplit(example).path) from None
    except InvalidURI:
        raise NoCall(f"{url} is no WebSocket address", f"it looks like {example}") from None
    except (OSError, TimeoutError, InvalidHandshake) as error:
        raise unreachable(url, error) from None
    async with connection:
        yield connection


async def send(connection: ClientConnection, data: str | bytes) -> None:
    """Raises: LineClosed."""
    try:
        await connection.send(data)
    except ConnectionClosed as closed:
        raise line_closed(closed) from None


def line_closed(closed: ConnectionClosed) -> LineClosed:
    if closed.rcvd is None:
        given_up = f"was given up: {closed.sent.reason}" if closed.sent is not None else "was lost"
        return LineClosed(None, f"the connection {given_up}")
    return LineClosed(closed.rcvd.code, f"code {closed.rcvd.code} {closed.rcvd.reason}".strip())
