"""The way in for a call through `UdpRelay`: an HTTP hop that changes the SDP on its way, whoever's protocol it is.

A caller is given the hop's address instead of the server's. Offers and answers are found as bodies of type
`application/sdp` (WHIP, RFC 9725, and ours), as fragments of one (RFC 8840), and as the key `sdp` of a JSON object
(Pipecat's SmallWebRTC and others). Candidates that come in JSON one by one are not handed on: the server learns the
caller's address from the caller's own checks. Every call has a relay and draws of its own, in the order of the offers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
from aiohttp import web
from multidict import CIMultiDict

from load.faults.http_hop import client, passed_headers, serving, unreachable
from load.faults.impairment import Impairment
from load.faults.udp import UdpRelay
from wire.rtc import FRAGMENT, SDP

MAX_CALLS = 256  # relays at a time
IDLE_S = 30.0  # without a packet: the call is over (RFC 7675, 5.1: consent to send expires after 30 s)
MAX_SDP_BYTES = 1 << 20


class RtcFront:
    """`target`: the server's base URL. `relays` are those of running and past calls, by order of their offers."""

    def __init__(
        self, target: str, up: Impairment, down: Impairment, rng: np.random.Generator, host: str = "127.0.0.1"
    ) -> None:
        self._target = target.rstrip("/")
        self._up, self._down = up, down
        self._rng = rng
        self._host = host
        self._open: dict[UdpRelay, str] = {}  # with the path of its call, once known
        self.relays: list[UdpRelay] = []

    @contextlib.asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[str]:
        """Serve; yields the URL to call instead of the target. Raises: LoadError."""
        app = web.Application(client_max_size=MAX_SDP_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        async with client() as self._http, serving(app, port, self._host) as url:
            try:
                yield url
            finally:
                for relay in [*self._open]:
                    self._close(relay)

    def impair(self, up: Impairment, down: Impairment) -> None:
        """Running calls from the next packet on, and those to come."""
        self._up, self._down = up, down
        for relay in self._open:
            relay.impair(up, down)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body, relay = await request.read(), None
        kind = request.content_type
        if request.method == "DELETE":
            for ended in [relay for relay, path in self._open.items() if path == request.path]:
                self._close(ended)
        if kind == FRAGMENT:
            relay = next((relay for relay, path in self._open.items() if path == request.path), None)
            body = relay.offer(body.decode(errors="replace")).encode() if relay is not None else body
        elif (sdp := _sdp(kind, body)) is not None:
            relay = self._new()
            if relay is None:
                return web.Response(status=503, text=f"{MAX_CALLS} calls go through this relay already")
            body = _with_sdp(kind, body, relay.offer(sdp))
        elif kind == "application/json" and request.method == "PATCH":
            body = _without_candidates(body)
        return await self._ask(request, body, relay)

    async def _ask(self, request: web.Request, body: bytes, relay: UdpRelay | None) -> web.StreamResponse:
        url = f"{self._target}{request.path_qs}"
        headers = passed_headers(CIMultiDict(request.headers))
        headers["accept-encoding"] = "identity"  # the answer is to be read here
        try:
            async with self._http.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            ) as answer:
                content, kind = await answer.read(), answer.content_type
                back = passed_headers(CIMultiDict(answer.headers))
                location = back.get("location", "").removeprefix(self._target)
                if location:
                    back["location"] = location
                if relay is not None and (sdp := _sdp(kind, content)) is not None:
                    self._open[relay] = location.partition("?")[0] or request.path
                    content = _with_sdp(kind, content, relay.answer(sdp))
                elif relay is not None and not self._open.get(relay):  # no answer: no call
                    self._close(relay)
                return web.Response(status=answer.status, body=content, headers=back)
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            if relay is not None and not self._open.get(relay):
                self._close(relay)
            return unreachable(self._target, error)

    def _new(self) -> UdpRelay | None:
        idle_since_s = asyncio.get_running_loop().time() - IDLE_S
        for relay in [relay for relay in self._open if relay.last_s < idle_since_s]:
            self._close(relay)
        if len(self._open) >= MAX_CALLS:
            return None
        relay = UdpRelay(self._up, self._down, self._rng.spawn(1)[0], self._host)
        self._open[relay] = ""
        self.relays.append(relay)
        return relay

    def _close(self, relay: UdpRelay) -> None:
        relay.close()
        del self._open[relay]


def _sdp(kind: str, body: bytes) -> str | None:
    """The SDP in a body of this type, if there is one."""
    if kind == SDP:
        return body.decode(errors="replace")
    value = _object(body) if kind == "application/json" else {}
    return sdp if isinstance(sdp := value.get("sdp"), str) else None


def _with_sdp(kind: str, body: bytes, sdp: str) -> bytes:
    return sdp.encode() if kind == SDP else json.dumps({**_object(body), "sdp": sdp}).encode()


def _without_candidates(body: bytes) -> bytes:
    value = _object(body)
    return json.dumps({**value, "candidates": []}).encode() if "candidates" in value else body


def _object(body: bytes) -> dict[str, object]:
    """Empty for what is no JSON object: that is between the caller and the server."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
