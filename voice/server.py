"""The call server's HTTP face: calls over WebSocket and WebRTC, and what an operator or load balancer asks."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI, WebSocket
from fastapi.responses import JSONResponse
from prometheus_client import generate_latest

from voice import console, metrics
from voice.admission import Load, Seats
from voice.call import Call, EndReason, Shared
from voice.clients.llm import LlmClient
from voice.config import VoiceConfig
from voice.media.turn_model import SmartTurn
from voice.media.vad import Silero
from voice.rtc import RtcCalls, ice_servers
from voice.speculation import Allowance
from voice.status import Status
from voice.transports.boundary import Transport
from voice.transports.websocket import WebSocketTransport
from wire import calls
from wire.config import read_key
from wire.errors import Overloaded, PeerError, WireError
from wire.replies import error_response
from wire.service import Lifecycle, create_app
from wire.sockets import Disconnected
from wire.weights import model_dir

logger = logging.getLogger(__name__)

_CLOSE_CODES: dict[EndReason, int] = {"failed": 1011, "drain": 1012, "unavailable": 1012}


@dataclass(frozen=True)
class Part:
    """What a process of a call server answers for, and what it knows of the whole. See `voice.front`."""

    seats: Seats
    load: Callable[[], Load]
    key_prefix: str = ""  # of the names of WebRTC calls: whose they are
    collect: Callable[[], bytes] = generate_latest  # the text of /metrics


def whole(config: VoiceConfig, lifecycle: Lifecycle) -> Part:
    """A call server of one process."""
    seats = Seats(config.max_calls)
    return Part(seats, lambda: Load(seats.num_taken, seats.num_free, lifecycle.num_active))


def load(config: VoiceConfig, lifecycle: Lifecycle) -> Shared:
    """Raises: Unavailable, ConfigError."""
    key = read_key(config.service_key_file) if config.service_key_file is not None else None
    return Shared(
        config=config,
        vad=Silero(model_dir(config.vad_model)),
        turn_model=SmartTurn(model_dir(config.turn_model)),
        llm=LlmClient(
            config.llm_url,
            config.llm_model,
            key=key,
            temperature=config.agent.temperature,
            max_tokens=config.agent.max_reply_tokens,
            prefill_tokens=config.prefill_tokens,
            repetition_penalty=config.agent.repetition_penalty,
        ),
        service_key=key,
        is_draining=lambda: lifecycle.draining,
        allowance=Allowance(config.max_revisions),
    )


def build(shared: Shared, lifecycle: Lifecycle, part: Part | None = None) -> FastAPI:
    """Raises: ConfigError."""
    config = shared.config
    part = part or whole(config, lifecycle)
    seats = part.seats

    async def serve(transport: Transport, hello: calls.Hello) -> EndReason:
        started_s = time.monotonic()
        reason = await _serve(shared, transport, hello)
        seats.note_length(time.monotonic() - started_s)
        return reason

    status = Status(config, lifecycle, shared.service_key, part.load)
    servers = ice_servers(config.webrtc)
    rtc = RtcCalls(config.webrtc, config.edge.host, servers, seats, lifecycle, serve, part.key_prefix)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        await shared.llm.open()
        watching = asyncio.create_task(metrics.watch_loop())
        try:
            async with rtc.open(), status.open():
                yield
        finally:
            watching.cancel()
            await shared.llm.close()
            shared.turn_model.close()

    def details() -> Mapping[str, object]:
        now = part.load()
        processes = {"processes": now.num_processes} if config.num_processes > 1 else {}
        return {"active": now.num_active, "calls": now.num_taken, "max_calls": config.max_calls, **processes}

    app = create_app(
        lifecycle, config.edge, details=details, lifespan=lifespan, public=console.PUBLIC, collect=part.collect
    )

    @app.get("/v1/calls")
    async def capacity() -> JSONResponse:
        """Whether a call would be taken now: 200, 429 with Retry-After, or 503. Raises: Unavailable."""
        lifecycle.require_ready()
        now = part.load()
        if now.num_free <= 0:
            return error_response(seats.overloaded())
        return JSONResponse({"calls": now.num_taken, "max_calls": config.max_calls})

    @app.websocket("/v1/calls")
    async def call(websocket: WebSocket) -> None:
        transport = WebSocketTransport(websocket, config.lead_s)
        try:
            hello = await transport.accept()
            with lifecycle.unit(), seats.take():
                reason = await serve(transport, hello)
            await transport.socket.close(_CLOSE_CODES.get(reason, 1000), reason)
        except Disconnected as gone:
            logger.debug("gone before the call began: %s", gone)
        except Overloaded as busy:
            metrics.CALLS.labels("refused").inc()
            await transport.send(calls.Error(busy.code, str(busy), round(1000 * busy.retry_after_s)))
            await transport.socket.close(busy.close_code, f"retry after {busy.retry_after_s:.0f} s")
        except WireError as error:
            await transport.socket.fail(error)

    rtc.add_to(app)
    status.add_to(app)
    console.add_to(app)
    return app


async def _serve(shared: Shared, transport: Transport, hello: calls.Hello) -> EndReason:
    """One call. A bug of ours ends this call and no other.

    Raises: PeerError when the caller broke the protocol.
    """
    call_id = secrets.token_hex(4)
    logger.info("call %s begins", call_id)
    reason: EndReason = "failed"
    broken: BaseException | None = None
    metrics.ACTIVE_CALLS.inc()
    try:
        reason = await Call(call_id, shared, transport, hello).run()
    except* PeerError as group:
        broken = group.exceptions[0]
    except* Exception:  # one call: logged once, the process lives
        logger.exception("call %s failed", call_id)
    finally:
        metrics.ACTIVE_CALLS.dec()
        metrics.CALLS.labels(reason).inc()
        logger.info("call %s ended: %s", call_id, reason)
    if broken is not None:
        raise broken
    return reason
