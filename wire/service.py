"""The life of a process: one FastAPI application with /health, /metrics, key check and drain, run by uvicorn.

    starting -> ready -> draining -> gone

SIGTERM or SIGINT drains: new work is refused, running units (a call, a request, a connection) may finish within
`drain_timeout_s`; a second signal ends at once. The listening socket is bound here, so that a taken port is one
clear line.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from wire.config import ConfigError, EdgeConfig, read_key
from wire.errors import PeerError, Unavailable, WireError
from wire.gate import KeyCheck, SameSite
from wire.messages import read_json_object
from wire.patient_http import PatientHttp
from wire.quick_websocket import QuickWebSocket
from wire.replies import error_body, error_response

logger = logging.getLogger(__name__)

MAX_WS_MESSAGE_BYTES = 1 << 20
STUCK_PEER_S = 20.0  # TCP_USER_TIMEOUT: a peer that acknowledges nothing for this long is cut off by the kernel
WS_PING_S = 10.0  # a vanished peer is noticed within two of these
BODY_TIMEOUT_S = 60.0
MAX_BODY_BYTES = 32 << 20  # 25 MiB is OpenAI's limit for an audio file, plus its form


class Lifecycle:
    """Counts the units of work a drain has to wait for. `started_s`: by the monotonic clock; default: now."""

    def __init__(self, service: str, started_s: float | None = None) -> None:
        self.service = service
        self.num_active = 0
        self.draining = False
        self._started_s = time.monotonic() if started_s is None else started_s

    @contextmanager
    def unit(self) -> Iterator[None]:
        """One call, request or connection.

        Raises: Unavailable when the process is draining.
        """
        self.require_ready()
        self.num_active += 1
        try:
            yield
        finally:
            self.num_active -= 1

    def require_ready(self) -> None:
        """Raises: Unavailable when the process is draining."""
        if self.draining:
            raise Unavailable(f"{self.service} is draining")

    @property
    def status(self) -> str:
        return "draining" if self.draining else "ready"

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._started_s


Details = Callable[[], Mapping[str, object]]
Lifespan = Callable[[], AbstractAsyncContextManager[None]]


def create_app(
    lifecycle: Lifecycle,
    edge: EdgeConfig,
    *,
    details: Details | None = None,
    lifespan: Lifespan | None = None,
    public: Sequence[str] = (),
    collect: Callable[[], bytes] = generate_latest,
) -> FastAPI:
    """An application with `/health` and `/metrics`; the caller adds its own routes.

    `details` adds keys to `/health`, or replaces them. `lifespan` brackets the time in which requests are served.
    `public`: paths that can be read without the API key, such as a page that asks for it; `/page/*` stands for all
    below `/page/`. `collect`: the text of `/metrics`.
    """

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        if lifespan is None:
            yield
        else:
            async with lifespan():
                yield

    app = FastAPI(title=f"Offhook {lifecycle.service}", lifespan=live, docs_url=None, redoc_url=None)
    if edge.api_key_file is not None:
        app.add_middleware(KeyCheck, key=read_key(edge.api_key_file), public=("/health", *public))
    else:
        app.add_middleware(SameSite, hosts=edge.allowed_hosts)
    app.add_exception_handler(WireError, _wire_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(Exception, _our_error)

    @app.get("/health")
    async def health() -> JSONResponse:
        body = {
            "service": lifecycle.service,
            "status": lifecycle.status,
            "active": lifecycle.num_active,
            "uptime_s": round(lifecycle.uptime_s, 1),
            **(details() if details else {}),
        }
        return JSONResponse(body, status_code=503 if lifecycle.draining else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(collect(), media_type=CONTENT_TYPE_LATEST)

    return app


async def read_body(request: Request, limit_bytes: int = MAX_BODY_BYTES, timeout_s: float = BODY_TIMEOUT_S) -> bytes:
    """Raises: PeerError above the limit, without reading the rest; for a body that is not there in time, or never."""
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit_bytes:
                    raise PeerError(f"request body above {limit_bytes} bytes", code="too_large", http_status=413)
    except TimeoutError:
        raise PeerError(f"no whole body within {timeout_s:.0f} s", code="too_slow", http_status=408) from None
    except ClientDisconnect:
        raise PeerError("the client left before its request was complete") from None
    return bytes(body)


async def read_json(request: Request, limit_bytes: int = 1 << 20) -> dict[str, object]:
    """The request's JSON object.

    Raises: PeerError.
    """
    return read_json_object(await read_body(request, limit_bytes))


async def _wire_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, WireError)
    return error_response(error)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    return JSONResponse(error_body(str(error.detail), code), status_code=error.status_code, headers=error.headers)


async def _validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse(error_body(f"{where}: {first['msg']}", "bad_request"), status_code=400)


async def _our_error(_: Request, error: Exception) -> Response:
    """Starlette raises `error` again once this is sent, and uvicorn logs its traceback: once is enough."""
    return JSONResponse(
        error_body("internal error; the service's log says more", WireError.code), WireError.http_status
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, lifecycle: Lifecycle, drain_timeout_s: float) -> None:
        super().__init__(config)
        self._lifecycle = lifecycle
        self._drain_timeout_s = drain_timeout_s
        self._drain_until_s = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._lifecycle.draining:
            self.should_exit = self.force_exit = True
            return
        self._lifecycle.draining = True
        self._drain_until_s = time.monotonic() + self._drain_timeout_s

    async def on_tick(self, counter: int) -> bool:
        if self._lifecycle.draining and not self.should_exit:
            left = self._lifecycle.num_active
            if left == 0 or time.monotonic() >= self._drain_until_s:
                if left:
                    logger.warning("drain timed out with %d running", left)
                self.should_exit = True
        return await super().on_tick(counter)


def listen_socket(edge: EdgeConfig) -> socket.socket:
    """Raises: ConfigError when the address cannot be bound."""
    family = socket.AF_INET6 if ":" in edge.host else socket.AF_INET
    try:
        sock = socket.create_server((edge.host, edge.port), family=family, backlog=1024)
    except OSError as error:
        raise ConfigError(f"cannot listen on {edge.host}:{edge.port}: {error.strerror or error}") from None
    if sys.platform == "linux":
        # Accepted sockets inherit it. Without it, closing a connection waits for a peer that never reads its rest.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * STUCK_PEER_S))
    return sock


def run(app: FastAPI, lifecycle: Lifecycle, edge: EdgeConfig, sock: socket.socket | None = None) -> None:
    """Serve until drained. `sock` is already bound and listening; default: bound from `edge`."""
    server = server_for(app, lifecycle, edge)
    if sock is None:
        sock = listen_socket(edge)
    log_listening(sock, edge)
    server.run(sockets=[sock])
    logger.info("drained")


def log_listening(sock: socket.socket, edge: EdgeConfig) -> None:
    host, port = sock.getsockname()[:2]
    key = f"; clients need the API key in {edge.api_key_file}" if edge.api_key_file is not None else ""
    logger.info("listening on %s:%d%s", host, port, key)


def server_for(app: ASGIApp, lifecycle: Lifecycle, edge: EdgeConfig) -> uvicorn.Server:
    """The server `run` runs, for those who bring their own event loop, such as tests."""
    config = uvicorn.Config(
        app,
        http=PatientHttp,
        ws=QuickWebSocket,
        ws_max_size=MAX_WS_MESSAGE_BYTES,
        ws_ping_interval=WS_PING_S,
        ws_ping_timeout=WS_PING_S,
        ws_per_message_deflate=False,  # PCM does not compress, and compressing costs time in every message
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
        server_header=False,
    )
    return _Server(config, lifecycle, edge.drain_timeout_s)
