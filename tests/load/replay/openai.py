"""A scripted server of OpenAI's chat completions that counts tokens, refuses, stalls and breaks off, on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from wire import sse
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app

TOKENS_PER_WORD = 2
MESSAGE_TOKENS = 7  # of each message
REQUEST_TOKENS = 20
NUM_PROBES = 3  # the client's first requests measure how long its words are

Failure = Literal["none", "refuse", "error", "break", "error_event", "stall", "empty"]


@dataclass
class ScriptedOpenAi:
    """Answers `max_tokens` words, then fails as told, beginning after the probes."""

    failure: Failure = "none"
    has_usage: bool = True
    token_s: float = 0.0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    num_aborted: int = 0
    aborted: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: set[str] = field(default_factory=set)

    def app(self) -> FastAPI:
        app = create_app(Lifecycle("llm"), EdgeConfig(port=0))
        app.post("/v1/chat/completions")(self._complete)
        return app

    @property
    def failing(self) -> Failure:
        return self.failure if len(self.bodies) > NUM_PROBES else "none"

    async def _complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        match self.failing:
            case "refuse":
                error = {"error": {"message": "too many"}}
                return JSONResponse(error, status_code=429, headers={"retry-after": "1.5"})
            case "error":
                return JSONResponse({"error": {"message": "out of memory"}}, status_code=500)
        return StreamingResponse(self._events(body), media_type="text/event-stream")

    async def _events(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        failing = self.failing
        try:
            for i in range(0 if failing == "empty" else body["max_tokens"]):
                if i >= 2 and failing != "none":
                    if failing == "error_event":
                        yield sse.encode(json.dumps({"error": {"message": "the engine died"}}))
                    if failing == "stall":
                        await asyncio.sleep(3600)
                    return
                await asyncio.sleep(self.token_s)
                yield sse.encode(json.dumps({"choices": [{"index": 0, "delta": {"content": f"w{i} "}}]}))
            if self.has_usage:
                yield sse.encode(json.dumps({"choices": [], "usage": self._usage(body)}))
            yield sse.encode(sse.DONE)
        except asyncio.CancelledError:
            self.num_aborted += 1
            self.aborted.set()
            raise

    def _usage(self, body: dict[str, Any]) -> dict[str, object]:
        texts = [message["content"] for message in body["messages"]]
        prompt = sum(TOKENS_PER_WORD * len(text.split()) + MESSAGE_TOKENS for text in texts) + REQUEST_TOKENS
        cached = prompt // 2 if texts[0] in self._seen else 0
        self._seen.add(texts[0])
        return {
            "prompt_tokens": prompt,
            "completion_tokens": body["max_tokens"],
            "prompt_tokens_details": {"cached_tokens": cached},
        }
