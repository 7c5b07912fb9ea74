from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from fastapi import FastAPI, Response

from tests.serving import serving
from wire.config import EdgeConfig
from wire.errors import Overloaded
from wire.service import Lifecycle, create_app
from wire.streaming import Outgoing, Streamed


@asynccontextmanager
async def produced_by(produce: Callable[[Outgoing], Awaitable[None]]) -> AsyncIterator[str]:
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0)
    app: FastAPI = create_app(lifecycle, edge)

    @app.post("/")
    async def route() -> Response:
        return Streamed(produce)

    async with serving(app, lifecycle, edge) as base:
        yield base


async def test_chunks_arrive_before_the_end():
    told = asyncio.Event()

    async def produce(outgoing: Outgoing) -> None:
        await outgoing.start(201, [("Content-Type", "text/plain"), ("x-name", "é")])
        await outgoing.write(b"one")
        await told.wait()
        await outgoing.write(b"two")

    async with produced_by(produce) as base, aiohttp.ClientSession() as http, http.post(base) as response:
        assert (response.status, response.content_type) == (201, "text/plain")
        assert await response.content.readany() == b"one"
        told.set()
        assert await response.read() == b"two"


async def test_an_error_before_the_start_is_the_response():
    async def produce(outgoing: Outgoing) -> None:
        raise Overloaded("full", retry_after_s=3)

    async with produced_by(produce) as base, aiohttp.ClientSession() as http, http.post(base) as response:
        assert (response.status, response.headers["retry-after"]) == (429, "3")
        assert (await response.json())["error"]["code"] == "overloaded"


@pytest.mark.parametrize("starts", [True, False])
async def test_a_client_that_goes_cancels_the_producer(starts: bool):
    running, cancelled = asyncio.Event(), asyncio.Event()

    async def produce(outgoing: Outgoing) -> None:
        if starts:
            await outgoing.start(200, [])
            await outgoing.write(b"x")
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with produced_by(produce) as base, aiohttp.ClientSession() as http:
        asking = asyncio.create_task(http.post(base))
        await running.wait()
        if starts:
            (await asking).close()
        else:
            asking.cancel()
        async with asyncio.timeout(5):
            await cancelled.wait()
