"""A proxy in the place of recognition, the LLM tier or the voice: hands all on, and puts the faults of its `Plan` on.

A profile points to it (`voice.stt_url`, `voice.llm_url`, `voice.tts_url`, or a worker's `url` of the router), and it
to the real service. Everything but the requests that a fault is about passes as it came, `/health` included. Its plan
may change at any time: it is asked when a request begins.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import numpy as np
from aiohttp import web

from load.faults.http_hop import MAX_BODY_BYTES, client, hand_on, serving
from load.faults.llm_proxy import LlmProxy
from load.faults.socket_hop import bridge
from load.faults.stages import Plan, Stage
from load.faults.stt_proxy import SttConversation
from load.faults.tts_proxy import TtsConversation


class StageProxy:
    """`target`: the real service's base URL."""

    def __init__(self, stage: Stage, target: str, rng: np.random.Generator) -> None:
        self.plan = Plan(stage, rng)
        self._stage = stage
        self._target = target.rstrip("/")

    @contextlib.asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[str]:
        """Serve; yields the URL to use instead of the target. Raises: LoadError."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        async with client() as self._http:
            match self._stage:
                case "stt":
                    app.router.add_get("/v1/listen", self._listen)
                case "tts":
                    app.router.add_get("/v1/speak", self._speak)
                case "llm":
                    app.router.add_post("/v1/chat/completions", LlmProxy(self.plan, self._target, self._http).complete)
            app.router.add_route("*", "/{path:.*}", self._hand_on)
            async with serving(app, port) as url:
                yield url

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        return await bridge(request, self._http, self._target, lambda ends: SttConversation(self.plan, ends))

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        return await bridge(request, self._http, self._target, lambda ends: TtsConversation(self.plan, ends))

    async def _hand_on(self, request: web.Request) -> web.StreamResponse:
        return await hand_on(request, self._http, self._target)
