"""The voice's face to the network: `WS /v1/speak`, and OpenAI's speech endpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from fastapi import FastAPI, Request, Response, WebSocket

from tts_engine import metrics, session
from tts_engine.api import read_speech_request, respond
from tts_engine.config import TtsConfig
from tts_engine.engine import Engine
from tts_engine.speaking import Speaker
from tts_engine.text.lexicon import read_lexicon
from tts_engine.vits.voice import VitsVoice
from wire import speak
from wire.errors import Overloaded, WireError
from wire.request import from_headers
from wire.service import Lifecycle, create_app
from wire.sockets import Disconnected, Socket
from wire.weights import cache_dir, model_dir

logger = logging.getLogger(__name__)

FULL_RETRY_S = 1.0  # when all connections are taken: they are calls, and end in their own time


def load(config: TtsConfig) -> Engine:
    """Raises: Unavailable."""
    lexicon = read_lexicon(model_dir(config.lexicon))
    voices = {}
    for model in {voice.model for voice in config.voices}:
        folder = model_dir(model)
        voices[model] = VitsVoice(folder / "model.onnx", folder / "config.json", cache_dir() / "derived")
    speakers = {voice.id: Speaker(voices[voice.model], lexicon) for voice in config.voices}
    return Engine(speakers, config.max_waiting)


def build(config: TtsConfig, engine: Engine, lifecycle: Lifecycle) -> FastAPI:
    models = tuple(dict.fromkeys(voice.model for voice in config.voices))
    num_connections = 0

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        engine.start()
        try:
            yield
        finally:
            engine.close()

    @contextmanager
    def place() -> Iterator[None]:
        """One connection or request. Raises: Overloaded, Unavailable."""
        nonlocal num_connections
        if num_connections >= config.max_connections:
            raise Overloaded(f"all {config.max_connections} connections are taken", retry_after_s=FULL_RETRY_S)
        with lifecycle.unit(), metrics.CONNECTIONS.track_inprogress():
            num_connections += 1
            try:
                yield
            finally:
                num_connections -= 1

    def details() -> Mapping[str, object]:
        return {"voices": list(engine.voices), "connections": num_connections, "waiting": engine.num_waiting}

    app = create_app(lifecycle, config.edge, details=details, lifespan=lifespan)

    @app.websocket("/v1/speak")
    async def speak_socket(websocket: WebSocket) -> None:
        socket: Socket[speak.ClientMessage] = Socket(websocket, speak.CLIENT_MESSAGES, speak.Error)
        await socket.accept()
        try:
            with place():
                await session.serve(socket, engine)
        except Disconnected as gone:
            logger.debug("x speak: %s", gone)
        except WireError as error:
            await socket.fail(error)

    @app.post("/v1/audio/speech")
    async def speech(request: Request) -> Response:
        asked = await read_speech_request(request)
        now = time.monotonic()
        left_s = min(config.http_first_audio_s, from_headers(request.headers, now).left_s(now))
        return respond(engine, asked, models, place, now + left_s)

    @app.get("/v1/models")
    async def list_models() -> Mapping[str, object]:
        data = [{"id": model, "object": "model", "created": 0, "owned_by": "offhook"} for model in models]
        return {"object": "list", "data": data}

    @app.get("/v1/voices")
    async def list_voices() -> Mapping[str, object]:
        data = [
            {"id": v.id, "model": v.model, "language": v.language, "sample_rate_hz": engine.sample_rate_hz}
            for v in config.voices
        ]
        return {"object": "list", "data": data}

    return app
