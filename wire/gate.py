"""Who may come in: the API key where one is set, and where none is, nobody from another web site.

Without a key a service listens on loopback only, which keeps other machines out, but not the pages of other sites in
this machine's browsers: a WebSocket and a plain POST need no leave of the browser (CORS), and a name that its owner
points at 127.0.0.1 makes his page one of ours (DNS rebinding). So a request with an `Origin` must come from the host it
is sent to, and that host must be a name of this machine.
"""

from __future__ import annotations

import hmac
import urllib.parse
from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wire.config import is_loopback
from wire.errors import PeerError, Unauthorized
from wire.replies import error_response


class KeyCheck:
    """`Authorization: Bearer KEY` on everything but reading what is public, compared in constant time."""

    def __init__(self, app: ASGIApp, key: str, public: Sequence[str]) -> None:
        self.app = app
        self._expected = key.encode()
        self._public = frozenset(path for path in public if not path.endswith("/*"))
        self._public_folders = tuple(path.removesuffix("*") for path in public if path.endswith("/*"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_public(scope) or self._allowed(scope):
            await self.app(scope, receive, send)
            return
        error = Unauthorized("missing or wrong API key: send 'Authorization: Bearer KEY'")
        await _refuse(error_response(error), scope, receive, send)

    def _is_public(self, scope: Scope) -> bool:
        path = scope["path"]
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        return is_reading and (path in self._public or path.startswith(self._public_folders))

    def _allowed(self, scope: Scope) -> bool:
        scheme, _, key = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(key.strip(), self._expected)  # RFC 9110, 11.1


class SameSite:
    """For a service without a key. `hosts`: names under which it may be called beside those of loopback."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self.app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = None if scope["type"] == "lifespan" else self._problem(dict(scope["headers"]))
        if problem is None:
            await self.app(scope, receive, send)
        else:
            error = PeerError(problem, code="forbidden", http_status=403)
            await _refuse(error_response(error), scope, receive, send)

    def _problem(self, headers: dict[bytes, bytes]) -> str | None:
        host, origin = headers.get(b"host", b"").decode("latin-1"), headers.get(b"origin", b"").decode("latin-1")
        name = _hostname(f"//{host}")
        if host and not (is_loopback(name) or name in self._hosts):
            return f"'{name}' is no name of this service: see edge.allowed_hosts"
        if origin and _netloc(origin) != host.lower():
            return "requests from pages of other sites are refused"
        return None


def _netloc(url: str) -> str:
    try:
        return urllib.parse.urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _hostname(url: str) -> str:
    try:
        return urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return ""


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "websocket":
        await response(scope, receive, send)
        return
    await receive()  # websocket.connect
    start = {"type": "websocket.http.response.start", "status": response.status_code, "headers": response.raw_headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": response.body})
