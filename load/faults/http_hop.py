"""What our proxies for HTTP and WebSocket share: a server on loopback, and a request handed on as it came.

A target that does not answer is told as 502, which everything of ours reads as "not here".
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import NoReturn

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDict

from load.errors import LoadError

CONNECT_TIMEOUT_S = 2.0
MAX_BODY_BYTES = 32 << 20  # an audio file for recognition, at most
CHUNK_BYTES = 1 << 16
# RFC 9110, 7.6.1: of one connection only. aiohttp sets the others of these itself.
_OF_THE_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
    | {"proxy-authenticate", "proxy-authorization", "proxy-connection"}
)
_OF_THE_HANDSHAKE = "sec-websocket-"


def passed_headers(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Those of the request or response itself."""
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if name.lower() not in _OF_THE_HOP and not name.lower().startswith(_OF_THE_HANDSHAKE)
    )


def unreachable(target: str, error: Exception) -> web.Response:
    message = f"{target}: {error or type(error).__name__}"
    return web.json_response({"error": {"message": message, "type": "unavailable", "code": "unavailable"}}, status=502)


def lose(request: web.Request) -> NoReturn:
    """End the client's connection as if we had died. Raises: ConnectionResetError, which ends the handler quietly."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError


async def hand_on(request: web.Request, http: aiohttp.ClientSession, url: str) -> web.StreamResponse:
    """Ask `url` the same and stream its answer back. An answer that breaks off breaks off."""
    body = await request.read()
    response: web.StreamResponse | None = None
    try:
        async with http.request(
            request.method,
            f"{url}{request.path_qs}",
            data=body or None,
            headers=passed_headers(CIMultiDict(request.headers)),
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=passed_headers(CIMultiDict(answer.headers)))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response
    except (aiohttp.ClientError, TimeoutError) as error:
        if response is None:
            return unreachable(url, error)
        lose(request)


@web.middleware
async def _without_noise(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A lost connection is what was asked for, or its client's affair; aiohttp would log it as a handler's error."""
    try:
        return await handler(request)
    except ConnectionResetError:
        return web.Response()  # nobody gets it


def client() -> aiohttp.ClientSession:
    """No proxy of the environment can reach this machine's loopback for us; no limit on the length of an answer."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
    return aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=False)


@contextlib.asynccontextmanager
async def serving(app: web.Application, port: int, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Serve `app`; yields its URL. A handler is cancelled when its client goes.

    Raises: LoadError when the address cannot be bound.
    """
    app.middlewares.append(_without_noise)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise LoadError(f"cannot listen on {host}:{port}: {error.strerror or error}", "give another port") from None
        bound_host, bound_port = runner.addresses[0][:2]
        yield f"http://{bound_host}:{bound_port}"
    finally:
        await runner.cleanup()
