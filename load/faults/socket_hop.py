"""A WebSocket handed on message by message, through a conversation that may change, hold or forget them.

A close travels with its code and reason; a lost connection as a lost connection. Messages are handed on one by one
and each is waited for, so that an end which does not read holds up the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import aiohttp
from aiohttp import WSMessage, WSMsgType, web
from multidict import CIMultiDict

from load.faults.http_hop import passed_headers, unreachable
from wire.errors import PeerError
from wire.messages import read_json_object

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 1 << 20  # as our services take
CLOSE_TIMEOUT_S = 1.0
_ABNORMAL = 1006  # RFC 6455, 7.1.5: the connection was lost without a close
_NO_CODE = 1005

Send: TypeAlias = Callable[[str | bytes], Awaitable[None]]


@dataclass(frozen=True)
class Ends:
    """`to_client` and `to_service` send a message; `abort` loses the client's connection; `spawn` starts what ends
    with the conversation.
    """

    to_client: Send
    to_service: Send
    abort: Callable[[], None]
    spawn: Callable[[Coroutine[Any, Any, None]], object]


class _Over(Exception):
    pass


class Conversation(Protocol):
    async def up(self, data: str | bytes) -> None:
        """A message of the client."""

    async def down(self, data: str | bytes) -> None:
        """A message of the service."""


async def bridge(
    request: web.Request, http: aiohttp.ClientSession, target: str, converse: Callable[[Ends], Conversation]
) -> web.StreamResponse:
    """Until one end is gone."""
    headers = passed_headers(CIMultiDict(request.headers))
    try:
        service = await http.ws_connect(
            f"{target}{request.path_qs}",
            headers=headers,
            max_msg_size=MAX_MESSAGE_BYTES,
            autoclose=False,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S),
        )
    except aiohttp.WSServerHandshakeError as refusal:
        return web.Response(status=refusal.status, text=refusal.message)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return unreachable(target, error)
    client = web.WebSocketResponse(max_msg_size=MAX_MESSAGE_BYTES, autoclose=False, compress=False)
    client_transport = request.transport

    def abort() -> None:
        if client_transport is not None:
            client_transport.abort()

    try:
        await client.prepare(request)
        async with asyncio.TaskGroup() as group:
            conversation = converse(Ends(_sender(client), _sender(service), abort, group.create_task))
            group.create_task(_pump(client, conversation.up, service))
            group.create_task(_pump(service, conversation.down, client))
    except* _Over:
        pass
    except* (ConnectionError, TimeoutError, aiohttp.ClientError) as lost:
        logger.debug("x %s: %s", request.path, lost.exceptions[0])
        abort()
    finally:
        await service.close()
    return client


def message_of(data: str | bytes) -> dict[str, Any]:
    """Empty for what is no JSON object: that is between the client and the service."""
    if isinstance(data, bytes):
        return {}
    try:
        return read_json_object(data)
    except PeerError:
        return {}


def _sender(socket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse) -> Send:
    async def send(data: str | bytes) -> None:
        if isinstance(data, bytes):
            await socket.send_bytes(data)
        else:
            await socket.send_str(data)

    return send


async def _pump(
    source: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
    take: Callable[[str | bytes], Awaitable[None]],
    sink: web.WebSocketResponse | aiohttp.ClientWebSocketResponse,
) -> None:
    """Raises: _Over after a close, ConnectionError when an end is lost."""
    while True:
        message: WSMessage = await source.receive()
        if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
            await take(message.data)
        elif message.type is WSMsgType.CLOSE:
            code = message.data if message.data not in (None, _NO_CODE, _ABNORMAL) else 1000
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await sink.close(code=code, message=(message.extra or "").encode())
            raise _Over
        else:
            raise ConnectionResetError(f"lost ({message.type.name})")
