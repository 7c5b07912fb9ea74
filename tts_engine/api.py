"""`POST /v1/audio/speech` in the shape of OpenAI's API, and what is there to choose from.

`wav` and `pcm` stream: the first bytes leave with the first audio. A streamed wav does not know its length and says so
with the largest number, as usual. `pcm` is int16 little-endian mono at the voice's rate, named in the content type.
"""

from __future__ import annotations

import asyncio
import io
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, aclosing, closing
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import soundfile
from fastapi import Request, Response

from tts_engine import metrics
from tts_engine.engine import Audio, Engine, Failed, Finished, Line, Manner
from tts_engine.segmenter import Segmenter
from tts_engine.session import manner_of
from wire.errors import PeerError
from wire.pcm import Pcm16, to_bytes
from wire.service import read_json
from wire.streaming import Outgoing, Streamed
from wire.strict import Invalid, parse

MAX_INPUT_CHARACTERS = 4096  # OpenAI's limit for `input`
Place: TypeAlias = Callable[[], AbstractContextManager[None]]
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


def respond(
    engine: Engine, asked: SpeechRequest, models: tuple[str, ...], place: Place, first_audio_by_s: float
) -> Response:
    """Speaks while it is sent. What goes wrong before the first audio is a status code, later the response breaks off.

    `place` is held until the end, or until the client is gone. `first_audio_by_s` is an instant of `time.monotonic`.
    Raises: PeerError.
    """
    if asked.model is not None and asked.model not in models:
        raise PeerError(
            f"no model '{asked.model:.64}'; there is {', '.join(models)}", code="model_not_found", http_status=404
        )
    manner = manner_of(engine, asked.voice, asked.speed, asked.seed)
    send = _send_flac if asked.response_format == "flac" else _send_stream

    async def produce(outgoing: Outgoing) -> None:
        with place(), closing(engine.line()) as line:
            async with aclosing(_spoken(line, manner, asked.input, first_audio_by_s)) as audio:
                await send(outgoing, asked, audio, engine.sample_rate_hz)

    return Streamed(produce)


async def _spoken(line: Line, manner: Manner, text: str, first_audio_by_s: float) -> AsyncGenerator[Pcm16, None]:
    """Raises: WireError when the voice is overloaded, late or broken."""
    began_s, is_first = time.monotonic(), True
    key, segmenter = line.open(manner, first_audio_by_s), Segmenter()
    for unit in (*segmenter.push(text), segmenter.flush()):
        if unit is not None:
            line.add(key, unit)
    line.end(key)
    while True:
        match await line.events.get():
            case Audio() as audio:
                line.sent()
                if is_first:
                    metrics.TTFA.observe(time.monotonic() - began_s)
                    is_first = False
                yield audio.chunk.pcm
            case Finished():
                return
            case Failed() as failed:
                raise failed.error


async def _send_stream(outgoing: Outgoing, asked: SpeechRequest, audio: AsyncIterator[Pcm16], rate_hz: int) -> None:
    is_wav = asked.response_format == "wav"
    first = await anext(audio, None)
    await outgoing.start(200, [("content-type", "audio/wav" if is_wav else f"audio/pcm; rate={rate_hz}; channels=1")])
    if is_wav:
        await outgoing.write(_wav_header(rate_hz))
    if first is not None:
        await outgoing.write(to_bytes(first))
    async for pcm in audio:
        await outgoing.write(to_bytes(pcm))


async def _send_flac(outgoing: Outgoing, asked: SpeechRequest, audio: AsyncIterator[Pcm16], rate_hz: int) -> None:
    pcm = [chunk async for chunk in audio]
    data = await asyncio.to_thread(_flac, pcm, rate_hz)
    await outgoing.start(200, [("content-type", "audio/flac"), ("content-length", str(len(data)))])
    await outgoing.write(data)


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
