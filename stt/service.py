"""The recognition service's routes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from fastapi import FastAPI, Request, Response
from starlette.websockets import WebSocket

from stt import metrics
from stt.config import SttConfig
from stt.connection import Connection, ListenSocket
from stt.recognition import Model, Models
from stt.transcriptions import Transcriptions
from stt.whisper import load
from wire import listen
from wire.errors import Overloaded, Unavailable, WireError
from wire.service import Lifecycle, create_app
from wire.sockets import Disconnected
from wire.weights import model_dir

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 5.0  # a refused stream: calls end every few minutes, so sooner is pointless and later is idle


def load_models(config: SttConfig) -> Models:
    """Raises: Unavailable when weights are missing or unreadable, or a language is not in them."""
    models = []
    for each in config.models:
        folder = model_dir(each.id)
        model = Model(each, [load(folder) for _ in range(each.num_instances)], config.max_queued)
        if missing := [language for language in each.languages if language != "*" and not model.knows(language)]:
            raise Unavailable(f"model '{each.id}' does not know language {', '.join(missing)}")
        logger.info("%s: %d instances, languages %s", each.id, each.num_instances, ", ".join(each.languages))
        models.append(model)
    return Models(models)


def build(config: SttConfig, models: Models, lifecycle: Lifecycle) -> FastAPI:
    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for model in models.all:
                await stack.enter_async_context(model.pool.running())
            yield

    streams = _Streams(config.max_streams)
    transcriptions = Transcriptions(models)

    def details() -> dict[str, object]:
        waiting = {model.id: model.pool.num_waiting for model in models.all}
        return {"streams": streams.num_open, "waiting": waiting}

    app = create_app(lifecycle, config.edge, details=details, lifespan=running)

    @app.websocket("/v1/listen")
    async def listen_route(websocket: WebSocket) -> None:
        socket: ListenSocket = ListenSocket(websocket, listen.CLIENT_MESSAGES, listen.Error)
        await socket.accept()
        try:
            with lifecycle.unit(), streams.slot():
                hello = await socket.receive_hello(listen.Hello)
                connection = Connection(
                    socket,
                    models.for_language(hello.language),
                    hello,
                    partial_interval_s=config.partial_interval_s,
                    deadline_s=config.deadline_s,
                )
                await connection.run()
        except WireError as error:
            await socket.fail(error)
        except Disconnected as gone:
            logger.debug("x listen: %s", gone)

    @app.post("/v1/audio/transcriptions")
    async def transcriptions_route(request: Request) -> Response:
        with lifecycle.unit():
            return await transcriptions.serve(request)

    @app.get("/v1/models")
    async def models_route() -> dict[str, object]:
        return {
            "object": "list",
            "data": [
                {
                    "id": model.id,
                    "object": "model",
                    "created": 0,
                    "owned_by": "offhook",
                    "languages": list(model.languages),
                }
                for model in models.all
            ],
        }

    return app


class _Streams:
    def __init__(self, max_open: int) -> None:
        self.num_open = 0
        self._max_open = max_open

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises: Overloaded."""
        if self.num_open >= self._max_open:
            raise Overloaded(f"{self._max_open} streams are open", retry_after_s=RETRY_AFTER_S)
        self.num_open += 1
        metrics.STREAMS.set(self.num_open)
        try:
            yield
        finally:
            self.num_open -= 1
            metrics.STREAMS.set(self.num_open)
