"""The worker's routes: OpenAI's chat completions, completions and models, and vLLM's /tokenize.

A stream starts with its first token, so that what fails before (no room, no time) is a status and not a broken stream.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

from fastapi import FastAPI, Request, Response

from llm.answers import Answer, logprobs_body
from llm.api import Body, ChatBody, CompletionBody, parse_body
from llm.config import WorkerConfig
from llm.engine import Engine, Stream
from llm.loading import Loaded
from llm.sequence import Finished, Generation, Likely
from llm.tokenizer import Tokenizer
from wire import request as wire_request
from wire import sse
from wire.errors import PeerError, WireError
from wire.replies import error_body
from wire.service import Lifecycle, create_app, read_json
from wire.streaming import Outgoing, Streamed

_SSE_HEADERS = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
B = TypeVar("B", bound=Body)

WARM_UP_TOKENS = 40  # more than one attention shape; the first step after start takes ten times a later one


def build(config: WorkerConfig, loaded: Loaded, lifecycle: Lifecycle) -> FastAPI:
    worker = _Worker(config, loaded, lifecycle)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        worker.engine.start()
        try:
            await worker.warm_up()
            yield
        finally:
            worker.engine.close()

    app = create_app(lifecycle, config.edge, details=worker.details, lifespan=running)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await worker.chat(request)

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await worker.complete(request)

    @app.post("/tokenize")
    async def tokenize(request: Request) -> dict[str, object]:
        return await worker.tokenize(request)

    @app.get("/v1/models")
    async def models() -> dict[str, object]:
        return worker.models()

    return app


class _Worker:
    def __init__(self, config: WorkerConfig, loaded: Loaded, lifecycle: Lifecycle) -> None:
        self.engine = Engine(config, loaded)
        self._config = config
        self._tokenizer = loaded.tokenizer
        self._vocab = loaded.model.shape.vocab
        self._lifecycle = lifecycle
        self._created = int(time.time())

    async def warm_up(self) -> None:
        stream = self.engine.submit(Generation(tuple(range(WARM_UP_TOKENS)), max_tokens=2, ignore_eos=True))
        async for _ in stream:
            pass

    def details(self) -> dict[str, object]:
        config = self._config
        return {
            "model": config.id,
            "weight_format": config.weight_format,
            "slots": config.max_running,
            "inside": self.engine.num_inside,
            "context_tokens": self.engine.context_tokens,
        }

    def models(self) -> dict[str, object]:
        model = {
            "id": self._config.id,
            "object": "model",
            "created": self._created,
            "owned_by": "offhook",
            "max_model_len": self.engine.context_tokens,
        }
        return {"object": "list", "data": [model]}

    async def chat(self, request: Request) -> Response:
        body = self._parsed(ChatBody, await read_json(request))
        prompt = self._tokenizer.encode_chat(body.conversation(), self.engine.context_tokens)
        return self._answer("chat", body, prompt, request)

    async def complete(self, request: Request) -> Response:
        body = self._parsed(CompletionBody, await read_json(request))
        given = body.text_or_tokens(self._vocab)
        prompt = self._encode(given) if isinstance(given, str) else given
        return self._answer("completion", body, prompt, request)

    async def tokenize(self, request: Request) -> dict[str, object]:
        given = await read_json(request)
        given.setdefault("model", self._config.id)
        if "messages" in given:
            conversation = self._parsed(ChatBody, given).conversation()
            tokens = self._tokenizer.encode_chat(conversation, self.engine.context_tokens)
        else:
            prompt = self._parsed(CompletionBody, given).text_or_tokens(self._vocab)
            tokens = self._encode(prompt) if isinstance(prompt, str) else prompt
        return {"count": len(tokens), "max_model_len": self.engine.context_tokens, "tokens": tokens}

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, self.engine.context_tokens)

    def _parsed(self, cls: type[B], given: dict[str, object]) -> B:
        body = parse_body(cls, given)
        if body.model != self._config.id:
            raise PeerError(
                f"model '{body.model}' is not here, '{self._config.id}' is", code="model_not_found", http_status=404
            )
        return body

    def _answer(self, kind: Literal["chat", "completion"], body: Body, prompt: list[int], request: Request) -> Response:
        """Raises: PeerError."""
        context = wire_request.from_headers(request.headers, time.monotonic())
        room = max(1, self.engine.context_tokens - len(prompt))
        generation = Generation(
            prompt=tuple(prompt),
            max_tokens=body.answer_tokens(min(self._config.default_max_tokens, room)),
            sampling=body.sampling(),
            stops=body.stops(),
            ignore_eos=body.ignore_eos,
            num_logprobs=body.logprobs if isinstance(body, CompletionBody) else None,
            deadline_s=context.deadline_s,
        )
        name = f"{'chatcmpl' if kind == 'chat' else 'cmpl'}-{uuid.uuid4().hex}"
        answer = Answer(kind, name, self._config.id, int(time.time()))

        async def produce(outgoing: Outgoing) -> None:
            with self._lifecycle.unit():
                stream = self.engine.submit(generation)
                try:
                    if body.stream:
                        await _stream(outgoing, answer, stream, with_usage=body.stream_options.include_usage)
                    else:
                        await _send_whole(outgoing, answer, stream, self._tokenizer)
                finally:
                    stream.abort()

        return Streamed(produce)


async def _send_whole(outgoing: Outgoing, answer: Answer, stream: Stream, tokenizer: Tokenizer) -> None:
    """Raises: WireError."""
    text, told = "", list[Likely]()
    async for event in stream:
        text += event.text
        if event.likely is not None:
            told.append(event.likely)
        if isinstance(event, Finished):
            logprobs = logprobs_body(told, tokenizer.name_of) if told else None
            whole = answer.whole(text, event.reason, event.usage, logprobs)
            data = json.dumps(whole, ensure_ascii=False).encode()
            await outgoing.start(200, [("content-type", "application/json"), ("content-length", str(len(data)))])
            await outgoing.write(data)


async def _stream(outgoing: Outgoing, answer: Answer, stream: Stream, *, with_usage: bool) -> None:
    """Raises: WireError when nothing was sent yet; later errors become the stream's last event."""
    try:
        async for event in stream:
            first = not outgoing.started
            if first:
                await outgoing.start(200, _SSE_HEADERS)
            if event.text or first:
                await outgoing.write(answer.chunk(event.text, first=first))
            if isinstance(event, Finished):
                end = answer.chunk("", event.reason)
                if with_usage:
                    end += answer.usage_chunk(event.usage)
                await outgoing.write(end + sse.encode(sse.DONE))
    except WireError as error:
        if not outgoing.started:
            raise
        await outgoing.write(sse.encode(json.dumps(error_body(str(error), error.code))))
