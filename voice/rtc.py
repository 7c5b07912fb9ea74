"""Calls over WebRTC, as far as HTTP goes: an offer in, an answer out, then a resource per call (WHIP, RFC 9725).

    POST   /v1/calls/rtc        SDP offer -> 201, SDP answer, Location of the call
    PATCH  /v1/calls/rtc/ID     candidates found since (RFC 8840) -> 204
    DELETE /v1/calls/rtc/ID     hang up -> 200

What the WebSocket protocol says in its hello stands in the query of the POST. A line is taken with the offer and is
free again when the call ends, however it ends; a caller whose media does not arrive gives it back after
`CONNECT_TIMEOUT_S`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from aiortc import RTCIceServer
from fastapi import FastAPI, Request, Response

from voice import metrics
from voice.admission import Seats
from voice.config import WebRtcConfig
from voice.transports.boundary import Transport
from voice.transports.webrtc import WebRtcTransport
from wire import calls
from wire.config import ConfigError, read_secret
from wire.errors import Overloaded, PeerError, WireError
from wire.ice import addresses_for, use_addresses
from wire.messages import PROTOCOL_VERSION
from wire.rtc import FRAGMENT, PATH, SDP
from wire.service import Lifecycle, read_body
from wire.sockets import Disconnected
from wire.strict import Invalid, parse

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
SDP_TIMEOUT_S = 10.0
MAX_SDP_BYTES = 65_536

Serve = Callable[[Transport, calls.Hello], Awaitable[object]]


def ice_servers(config: WebRtcConfig) -> list[RTCIceServer]:
    """Raises: ConfigError for a password file that cannot be read, or holds what no header can carry."""
    servers = []
    for server in config.ice_servers:
        password = None
        if server.credential_file is not None:
            password = read_secret(server.credential_file, "TURN password")
            if not password.isascii():
                raise ConfigError(
                    f"{server.credential_file}: a TURN password must be ASCII: callers get it in a header"
                )
        servers.append(RTCIceServer(server.url, server.username, password))
    return servers


class RtcCalls:
    """`serve` runs a call on a transport that is connected. Raises: PeerError when the caller broke the protocol."""

    def __init__(
        self,
        config: WebRtcConfig,
        host: str,
        servers: Sequence[RTCIceServer],
        seats: Seats,
        lifecycle: Lifecycle,
        serve: Serve,
        key_prefix: str = "",
    ) -> None:
        self._addresses = addresses_for(host, config.ice_addresses)
        self._servers = servers
        self._links = ", ".join(_link(server) for server in servers)
        self._seats = seats
        self._lifecycle = lifecycle
        self._serve = serve
        self._key_prefix = key_prefix
        self._running: dict[str, WebRtcTransport] = {}

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Brackets the time in which calls are taken; calls that still run then are ended."""
        use_addresses(self._addresses)
        async with asyncio.TaskGroup() as self._tasks:
            yield
            for transport in self._running.values():
                transport.finish(Disconnected("the call server ends"))

    def add_to(self, app: FastAPI) -> None:
        app.post(PATH)(self.offer)
        app.patch(PATH + "/{key}")(self.trickle)
        app.delete(PATH + "/{key}")(self.hang_up)
        app.options(PATH)(self.options)

    async def options(self) -> Response:
        return Response(status_code=204, headers=self._headers({"accept-post": SDP}))

    async def offer(self, request: Request) -> Response:
        try:
            return await self._offer(request)
        except Overloaded:
            metrics.CALLS.labels("refused").inc()
            raise

    async def _offer(self, request: Request) -> Response:
        hello = _hello(request.query_params)
        text = await _read_text(request, SDP)
        async with contextlib.AsyncExitStack() as taken:  # handed to the call once the answer is there
            taken.enter_context(self._lifecycle.unit())
            taken.enter_context(self._seats.take())
            transport = WebRtcTransport(self._servers, self._addresses)
            taken.push_async_callback(transport.close)
            answer = await transport.answer(text)
            key = self._key_prefix + secrets.token_urlsafe(18)
            self._running[key] = transport
            self._tasks.create_task(self._run(key, transport, hello, taken.pop_all()))
        headers = self._headers({"location": f"{PATH}/{key}", "accept-patch": FRAGMENT})
        return Response(answer, 201, headers, media_type=SDP)

    async def trickle(self, key: str, request: Request) -> Response:
        transport = self._find(key)
        await transport.add_candidates(await _read_text(request, FRAGMENT))
        return Response(status_code=204)

    async def hang_up(self, key: str) -> Response:
        self._find(key).finish(calls.Hangup())
        return Response(status_code=200)

    async def _run(
        self, key: str, transport: WebRtcTransport, hello: calls.Hello, taken: contextlib.AsyncExitStack
    ) -> None:
        async with taken:
            try:
                await transport.wait_connected(CONNECT_TIMEOUT_S)
                async with asyncio.TaskGroup() as tasks:
                    moving = tasks.create_task(transport.run())
                    await self._serve(transport, hello)
                    moving.cancel()
            except* Disconnected as gone:
                logger.info("gone before the call began: %s", gone.exceptions[0])
            except* WireError as group:
                await _tell(transport, group)
            except* Exception:  # one call: logged once, the process lives
                logger.exception("a WebRTC call failed")
            finally:
                del self._running[key]

    def _find(self, key: str) -> WebRtcTransport:
        if key not in self._running:
            raise PeerError("no such call: it has ended, or never began", code="not_found", http_status=404)
        return self._running[key]

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**more, **({"link": self._links} if self._links else {})}


async def _tell(transport: WebRtcTransport, group: BaseExceptionGroup[WireError]) -> None:
    error = group.exceptions[0]
    assert isinstance(error, WireError)
    log = logger.info if isinstance(error, PeerError) else logger.warning
    log("x %s: %s", error.code, error)
    with contextlib.suppress(Disconnected):
        await transport.send(calls.Error(error.code, str(error)))


def _hello(query: Mapping[str, str]) -> calls.Hello:
    """Raises: PeerError for what a hello does not have, or has as something else."""
    known: dict[str, object] = {
        "version": PROTOCOL_VERSION,
        "sample_rate_hz": calls.RTC_HZ,
        "output_sample_rate_hz": calls.RTC_HZ,
    }
    given: dict[str, object] = dict(query)
    if "greeting" in given:
        given["greeting"] = {"true": True, "false": False}.get(str(given["greeting"]), given["greeting"])
    if "version" in given:
        given["version"] = int(query["version"]) if query["version"] in ("0", "1", "2") else query["version"]
    if rates := known.keys() & given.keys() - {"version"}:
        raise PeerError(f"{min(rates)}: WebRTC agrees on rates by itself", code="bad_message")
    try:
        hello = parse(calls.Hello, known | given)
    except Invalid as error:
        raise PeerError(str(error), code="bad_message") from None
    if hello.version != PROTOCOL_VERSION:
        raise PeerError(f"version {hello.version} is not spoken here, only {PROTOCOL_VERSION}", code="bad_version")
    return hello


async def _read_text(request: Request, media_type: str) -> str:
    """Raises: PeerError."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise PeerError(f"content-type must be {media_type}", code="bad_media_type", http_status=415)
    try:
        return (await read_body(request, MAX_SDP_BYTES, SDP_TIMEOUT_S)).decode()
    except UnicodeDecodeError:
        raise PeerError("the body is not UTF-8", code="bad_sdp") from None


def _link(server: RTCIceServer) -> str:
    """RFC 9725, 4.6."""
    link = f'<{server.urls}>; rel="ice-server"'
    if server.username is not None and server.credential is not None:
        user, password = _quoted(server.username), _quoted(server.credential)
        link += f'; username={user}; credential={password}; credential-type="password"'
    return link


def _quoted(text: str) -> str:
    """RFC 9110, 5.6.4: a quoted string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
