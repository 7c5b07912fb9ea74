"""The gateway before an embedded worker, both over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from llm.service import build as build_worker
from router.config import ModelConfig, RouterConfig, WorkerConfig
from router.service import build as build_router
from tests.llm import tiny
from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle

CHAT = "/v1/chat/completions"
BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello world " * 4}],
    "temperature": 0,
    "max_tokens": 12,
    "ignore_eos": True,
}


@dataclass
class Chain:
    http: aiohttp.ClientSession
    router: str
    worker: str

    async def ask(self, base: str, **fields: Any) -> tuple[int, Any]:
        async with self.http.post(f"{base}{CHAT}", json={**BODY, **fields}) as response:
            return response.status, await response.json()

    async def inside(self) -> int:
        """Requests in the worker's engine."""
        async with self.http.get(f"{self.worker}/health") as response:
            return int((await response.json())["inside"])


@pytest.fixture
async def chain() -> AsyncIterator[Chain]:
    async with AsyncExitStack() as stack:
        lifecycle = Lifecycle("llm")
        app = build_worker(tiny.CONFIG, tiny.loaded(), lifecycle)
        worker = await stack.enter_async_context(serving(app, lifecycle, tiny.CONFIG.edge))
        models = (ModelConfig("m", (WorkerConfig(worker, model=tiny.CONFIG.id),)),)
        config, lifecycle = RouterConfig(EdgeConfig(port=0), models), Lifecycle("router")
        router = await stack.enter_async_context(serving(build_router(config, lifecycle), lifecycle, config.edge))
        yield Chain(await stack.enter_async_context(aiohttp.ClientSession()), router, worker)


async def test_an_answer_is_the_same_through_the_router(chain: Chain):
    _, direct = await chain.ask(chain.worker, model=tiny.CONFIG.id)
    status, routed = await chain.ask(chain.router)

    assert status == 200
    assert routed["choices"] == direct["choices"]
    assert routed["usage"]["prompt_tokens_details"]["cached_tokens"] == routed["usage"]["prompt_tokens"] - 1


async def test_a_prefill_warms_the_worker_behind_the_router(chain: Chain):
    await chain.ask(chain.router, max_tokens=0)
    _, asked = await chain.ask(chain.router)

    assert asked["usage"]["prompt_tokens_details"]["cached_tokens"] == asked["usage"]["prompt_tokens"] - 1


async def test_a_refusal_of_the_worker_reaches_the_client_unchanged(chain: Chain):
    status, answer = await chain.ask(chain.router, max_tokens=9999)

    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")


async def test_a_client_that_goes_frees_the_engine(chain: Chain):
    response = await chain.http.post(f"{chain.router}{CHAT}", json={**BODY, "max_tokens": 180, "stream": True})
    assert await response.content.readany()
    response.close()
    async with asyncio.timeout(10):
        while await chain.inside():
            pass

    _, after = await chain.ask(chain.router)
    assert after["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
