"""`POST /v1/audio/speech` in the shape of OpenAI's API, and what is there to choose from.

`wav` and `pcm` stream: the first bytes leave with the first audio. A streamed wav does not know its length and says so
with the largest number, as usual. `pcm` is int16 little-endian mono at the voice's rate, named in the content type.
"""

from __future__ import annotations

import io
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import soundfile
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tts_engine import metrics
from tts_engine.engine import Audio, Engine, Failed, Finished, Line
from tts_engine.segmenter import Segmenter
from tts_engine.session import manner_of
from wire.errors import PeerError
from wire.pcm import Pcm16
from wire.request import from_headers
from wire.service import read_json
from wire.strict import Invalid, parse

MAX_INPUT_CHARACTERS = 4096  # OpenAI's limit for `input`
Place: TypeAlias = Callable[[], AbstractContextManager[None]]
_CONTENT_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm", "flac": "audio/flac"}
_UNKNOWN_LENGTH = 0xFFFFFFFF


@dataclass(frozen=True)
class SpeechRequest:
    """OpenAI's default format is mp3, which is not made here: ours is wav. `model` is any of `GET /v1/models`."""

    input: str
    model: str | None = None
    voice: str | None = None
    response_format: Literal["wav", "pcm", "flac"] = "wav"
    speed: float = 1.0
    seed: int = 0


async def read_speech_request(request: Request) -> SpeechRequest:
    """Raises: PeerError."""
    try:
        asked = parse(SpeechRequest, await read_json(request))
    except Invalid as error:
        raise PeerError(str(error)) from None
    if not asked.input.strip():
        raise PeerError("input: must not be empty")
    if len(asked.input) > MAX_INPUT_CHARACTERS:
        raise PeerError(f"input: {len(asked.input)} characters; at most {MAX_INPUT_CHARACTERS}", code="too_large")
    return asked


class Synthesis:
    """One request's audio. `begin` waits for the first of it, so that what goes wrong until then is a status code."""

    def __init__(self, engine: Engine, asked: SpeechRequest, models: tuple[str, ...], place: Place) -> None:
        """`place` is held until `close`. Raises: PeerError."""
        if asked.model is not None and asked.model not in models:
            raise PeerError(
                f"no model '{asked.model:.64}'; there is {', '.join(models)}", code="model_not_found", http_status=404
            )
        self._manner = manner_of(engine, asked.voice, asked.speed, asked.seed)
        self._engine = engine
        self._asked = asked
        self._place = place
        self._held = ExitStack()
        self._line: Line | None = None
        self._first: Pcm16 | None = None

    async def begin(self, request: Request, first_audio_s: float) -> None:
        """Raises: Overloaded, DeadlineExceeded, Unavailable, PeerError for a bad header; then it is closed."""
        with ExitStack() as undo:
            undo.callback(self.close)
            await self._begin(request, first_audio_s)
            undo.pop_all()

    async def _begin(self, request: Request, first_audio_s: float) -> None:
        now = time.monotonic()
        context = from_headers(request.headers, now)
        deadline_s = now + min(first_audio_s, context.left_s(now))
        self._held.enter_context(self._place())
        self._line = self._engine.line()
        self._held.callback(self._line.close)
        segmenter = Segmenter()
        key = self._line.open(self._manner, deadline_s)
        units = segmenter.push(self._asked.input)
        for unit in (*units, segmenter.flush()):
            if unit is not None:
                self._line.add(key, unit)
        self._line.end(key)
        self._first = await self._next()
        if self._first is not None:
            metrics.TTFA.observe(time.monotonic() - now)

    async def chunks(self) -> AsyncIterator[Pcm16]:
        """Raises: WireError when the voice fails midway."""
        while self._first is not None:
            yield self._first
            self._first = await self._next()

    def close(self) -> None:
        """Idempotent."""
        self._held.close()

    async def _next(self) -> Pcm16 | None:
        assert self._line is not None
        match await self._line.events.get():
            case Audio() as audio:
                self._line.sent()
                return audio.chunk.pcm
            case Finished():
                return None
            case Failed() as failed:
                raise failed.error


async def respond(synthesis: Synthesis, asked: SpeechRequest, sample_rate_hz: int) -> Response:
    """The response takes over `synthesis` and closes it."""
    content_type = _CONTENT_TYPES[asked.response_format]
    if asked.response_format == "flac":
        try:
            pcm = [chunk async for chunk in synthesis.chunks()]
        finally:
            synthesis.close()
        return Response(_flac(pcm, sample_rate_hz), media_type=content_type)
    if asked.response_format == "pcm":
        content_type += f"; rate={sample_rate_hz}; channels=1"
    return _Streamed(synthesis, _wav_header(sample_rate_hz) if asked.response_format == "wav" else b"", content_type)


class _Streamed(StreamingResponse):
    """Frees the voice when the client goes away, at whatever point."""

    def __init__(self, synthesis: Synthesis, header: bytes, content_type: str) -> None:
        super().__init__(self._body(synthesis, header), media_type=content_type)
        self._synthesis = synthesis

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._synthesis.close()

    @staticmethod
    async def _body(synthesis: Synthesis, header: bytes) -> AsyncIterator[bytes]:
        if header:
            yield header
        async for pcm in synthesis.chunks():
            yield pcm.astype("<i2", copy=False).tobytes()


def _flac(chunks: list[Pcm16], sample_rate_hz: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.concatenate([np.zeros(0, np.int16), *chunks]), sample_rate_hz, format="FLAC")
    return file.getvalue()


def _wav_header(sample_rate_hz: int) -> bytes:
    """RIFF, PCM16 mono."""
    form = struct.pack("<HHIIHH", 1, 1, sample_rate_hz, 2 * sample_rate_hz, 2, 16)
    return b"".join(
        (
            b"RIFF",
            struct.pack("<I", _UNKNOWN_LENGTH),
            b"WAVEfmt ",
            struct.pack("<I", len(form)),
            form,
            b"data",
            struct.pack("<I", _UNKNOWN_LENGTH),
        )
    )
