"""`POST /v1/audio/transcriptions`, shaped like OpenAI's: a form with a file in, its transcript out.

A file is recognised piece by piece below the priority of calls, one piece at a time, so that it takes one place in the
queue. Fields of OpenAI's API that this service would have to ignore are refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from fastapi import Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from stt.files import decode
from stt.recognition import Model, Models, join
from stt.schedule import Priority
from stt.segments import cuts
from stt.whisper import Transcript
from wire.errors import DeadlineExceeded, Overloaded, PeerError
from wire.listen import SAMPLE_RATE_HZ
from wire.request import from_headers
from wire.service import MAX_BODY_BYTES

MAX_FILES = 4  # at a time; each may hold 58 MB of samples
RETRY_AFTER_S = 5.0
FILE_DEADLINE_S = 600.0  # of a request that brings none: half an hour of audio takes about 30 s of compute
FIELDS = frozenset({"file", "model", "language", "response_format", "timestamp_granularities[]", "temperature"})

ResponseFormat = Literal["json", "text", "verbose_json"]


@dataclass(frozen=True)
class Order:
    data: bytes
    model: Model
    language: str | None
    response_format: ResponseFormat
    with_words: bool


class Transcriptions:
    def __init__(self, models: Models) -> None:
        self._models = models
        self._num_files = 0

    async def serve(self, request: Request) -> Response:
        """Raises: WireError."""
        now = time.monotonic()
        deadline_s = from_headers(request.headers, now).deadline_s or now + FILE_DEADLINE_S
        if self._num_files >= MAX_FILES:
            raise Overloaded(f"{MAX_FILES} files are being transcribed", retry_after_s=RETRY_AFTER_S)
        self._num_files += 1
        try:
            async with asyncio.timeout(max(0.0, deadline_s - now)):
                async with read_form(request) as form:
                    order = await parse(form, self._models)
                pcm = await asyncio.to_thread(decode, order.data)
                pieces = []
                start = 0
                for end in cuts(pcm):
                    piece = order.model.submit(
                        pcm[start:end], order.language, Priority.FILE, deadline_s, with_words=order.with_words
                    )
                    pieces.append((start, await piece.result(deadline_s)))
                    if await request.is_disconnected():
                        return Response(status_code=499)  # nginx's "client closed request"; nobody reads it
                    start = end
        except TimeoutError:
            raise DeadlineExceeded("no transcript within the deadline") from None
        finally:
            self._num_files -= 1
        return render(order, pieces, pcm.size)


@asynccontextmanager
async def read_form(request: Request) -> AsyncIterator[FormData]:
    """The request's form, whose files are closed afterwards.

    Raises: PeerError when the body is no form, or above `MAX_BODY_BYTES`.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise PeerError("send a multipart/form-data body with the field 'file'")
    parser = MultiPartParser(request.headers, _limited(request), max_files=1, max_fields=len(FIELDS))
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise PeerError(f"not a form: {error.message}", code="bad_form") from None
    try:
        yield form
    finally:
        await form.close()


async def _limited(request: Request) -> AsyncGenerator[bytes, None]:
    num_bytes = 0
    async for chunk in request.stream():
        num_bytes += len(chunk)
        if num_bytes > MAX_BODY_BYTES:
            raise PeerError(f"request body above {MAX_BODY_BYTES} bytes", code="too_large", http_status=413)
        yield chunk


async def parse(form: FormData, models: Models) -> Order:
    """Raises: PeerError."""
    if unknown := set(form) - FIELDS:
        raise PeerError(f"unsupported field: {', '.join(sorted(unknown))}", code="unsupported_field")
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise PeerError("the field 'file' must hold a file")
    model = models.named(_text(form, "model") or models.all[0].id)
    language = _text(form, "language")
    if language and not model.knows(language):
        raise PeerError(f"{model.id} does not know language {language!r:.20}", code="unknown_language")
    if (temperature := _text(form, "temperature")) not in ("", "0", "0.0"):
        raise PeerError(f"temperature must be 0, got {temperature!r:.20}: decoding is greedy", code="unsupported_field")
    response_format = _text(form, "response_format") or "json"
    if response_format not in get_args(ResponseFormat):
        raise PeerError(f"response_format must be one of {', '.join(get_args(ResponseFormat))}")
    granularities = form.getlist("timestamp_granularities[]")
    if granularities and response_format != "verbose_json":
        raise PeerError("timestamp_granularities[] needs response_format verbose_json")
    if not set(granularities) <= {"word", "segment"}:
        raise PeerError("timestamp_granularities[] must be word or segment")
    with_words = "word" in granularities
    if with_words and not model.can_align:
        raise PeerError(f"{model.id} cannot give word times", code="unsupported_field")
    return Order(await file.read(), model, language or None, response_format, with_words)  # type: ignore[arg-type]


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    if not isinstance(value, str):
        raise PeerError(f"the field '{name}' must be text")
    return value


def render(order: Order, pieces: list[tuple[int, Transcript]], num_samples: int) -> Response:
    whole = join(pieces, order.language or "en")
    if order.response_format == "text":
        return PlainTextResponse(whole.text + "\n")
    if order.response_format == "json":
        return JSONResponse({"text": whole.text})
    ends = [*(start for start, _ in pieces[1:]), num_samples]
    body: dict[str, object] = {
        "task": "transcribe",
        "language": whole.language,
        "duration": num_samples / SAMPLE_RATE_HZ,
        "text": whole.text,
        "segments": [
            {
                "id": number,
                "start": start / SAMPLE_RATE_HZ,
                "end": end / SAMPLE_RATE_HZ,
                "text": piece.text,
                "avg_logprob": piece.mean_logprob,
                "no_speech_prob": piece.no_speech_prob,
            }
            for number, ((start, piece), end) in enumerate(zip(pieces, ends, strict=True))
        ],
    }
    if order.with_words:
        body["words"] = [
            {"word": word.text, "start": word.start_sample / SAMPLE_RATE_HZ, "end": word.end_sample / SAMPLE_RATE_HZ}
            for word in whole.words or ()
        ]
    return JSONResponse(body)
