"""The gateway over real sockets, in front of servers that behave as third-party workers do: well, badly, not at all."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from router.config import ModelConfig, RouterConfig, WorkerConfig
from router.service import build
from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle
from wire.sse import Decoder

PATH = "/v1/chat/completions"


@dataclass
class Upstream:
    """An OpenAI-compatible server; `behaviour` says how it answers."""

    behaviour: str = "stream"
    requests: list[tuple[dict[str, str], dict[str, object]]] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((dict(request.headers), await request.json()))
        self.started.set()
        try:
            match self.behaviour:
                case "busy":
                    return web.json_response({"error": "full"}, status=429, headers={"retry-after": "7"})
                case "unavailable":
                    return web.json_response({"error": "down"}, status=503)
                case "bad request":
                    return web.json_response({"error": {"message": "too long"}}, status=400)
                case "die first":
                    assert request.transport is not None
                    request.transport.abort()
                case "stall":
                    await asyncio.sleep(3600)
            response = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b'data: {"n":1}\n\n')
            if self.behaviour == "die inside an event":
                await response.write(b'data: {"n":')
            if self.behaviour in ("die midway", "die inside an event"):
                assert request.transport is not None
                request.transport.abort()
            if self.behaviour == "hang midway":
                await asyncio.sleep(3600)
            await response.write(b'data: {"n":2}\n\ndata: [DONE]\n\n')
            return response
        except asyncio.CancelledError:
            self.aborted.set()
            raise

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": []})

    @contextlib.asynccontextmanager
    async def up(self, port: int = 0) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post(PATH, self.answer)
        app.router.add_get("/v1/models", self.models)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@contextlib.asynccontextmanager
async def routed(
    *behaviours: str, **settings: float
) -> AsyncIterator[tuple[str, list[Upstream], aiohttp.ClientSession]]:
    """The router before one upstream per behaviour; "absent" is a port where nobody listens."""
    upstreams = [Upstream(b) for b in behaviours]
    async with contextlib.AsyncExitStack() as stack:
        urls = [
            f"http://127.0.0.1:{free_port()}" if u.behaviour == "absent" else await stack.enter_async_context(u.up())
            for u in upstreams
        ]
        models = (ModelConfig("m", tuple(WorkerConfig(url, model="upstream-name") for url in urls)),)
        config = RouterConfig(EdgeConfig(port=0), models, **{"health_interval_s": 60.0, **settings})
        lifecycle = Lifecycle("router")
        base = await stack.enter_async_context(serving(build(config, lifecycle), lifecycle, config.edge))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        yield base, upstreams, http


async def ask(http: aiohttp.ClientSession, base: str, headers: dict[str, str] | None = None):
    async with http.post(f"{base}{PATH}", json={"model": "m", "stream": True}, headers=headers or {}) as response:
        return response.status, response.headers.copy(), await response.read()


async def workers(http: aiohttp.ClientSession, base: str) -> list[dict[str, object]]:
    async with http.get(f"{base}/health") as response:
        return list((await response.json())["workers"])


async def test_a_stream_is_relayed_byte_for_byte_with_names_and_ids():
    async with routed("stream") as (base, [upstream], http):
        status, headers, body = await ask(
            http, base, {"x-offhook-call": "c", "x-offhook-turn": "3", "x-request-id": "r1"}
        )

    assert (status, body) == (200, b'data: {"n":1}\n\ndata: {"n":2}\n\ndata: [DONE]\n\n')
    assert headers["x-request-id"] == "r1"
    assert headers["x-offhook-worker"].startswith("http://127.0.0.1:")
    sent_headers, sent_body = upstream.requests[0]
    assert sent_body == {"model": "upstream-name", "stream": True}
    assert (sent_headers["x-offhook-call"], sent_headers["x-offhook-turn"]) == ("c", "3")


async def test_workers_are_asked_not_to_compress():
    async with routed("stream") as (base, [upstream], http):
        await ask(http, base, {"accept-encoding": "gzip"})

    assert upstream.requests[0][0]["Accept-Encoding"] == "identity"


async def test_the_deadline_shrinks_on_its_way():
    async with routed("stream") as (base, [upstream], http):
        await ask(http, base, {"x-offhook-deadline-ms": "5000"})

    assert 0 < int(upstream.requests[0][0]["x-offhook-deadline-ms"]) <= 5000


@pytest.mark.parametrize("first", ["absent", "unavailable", "busy", "die first"])
async def test_before_the_first_byte_another_worker_takes_over(first: str):
    async with routed(first, "stream") as (base, upstreams, http):
        status, _, body = await ask(http, base)

    assert (status, body.count(b"data: ")) == (200, 3)
    assert len(upstreams[1].requests) == 1


async def test_when_everyone_is_busy_429_and_retry_after_are_passed_on():
    async with routed("busy", "busy") as (base, _, http):
        status, headers, body = await ask(http, base)

    assert (status, headers["retry-after"], json.loads(body)) == (429, "7", {"error": "full"})


async def test_a_bad_request_is_passed_back_and_not_tried_elsewhere():
    async with routed("bad request", "stream") as (base, upstreams, http):
        status, _, body = await ask(http, base)

    assert status == 400
    assert "too long" in body.decode()
    assert upstreams[1].requests == []


@pytest.mark.parametrize("behaviour", ["die midway", "die inside an event"])
async def test_a_worker_that_dies_midway_ends_the_stream_with_an_error_event(behaviour: str):
    async with routed(behaviour, "stream") as (base, upstreams, http):
        status, _, body = await ask(http, base)

    events = Decoder().feed(body)
    assert status == 200
    assert events[0] == '{"n":1}'
    assert json.loads(events[-1])["error"]["code"] == "unavailable"
    assert upstreams[1].requests == []


async def test_no_worker_is_one_clear_error():
    async with routed("absent") as (base, _, http):
        status, _, body = await ask(http, base)

    assert status == 503
    assert json.loads(body)["error"]["code"] == "unavailable"


@pytest.mark.parametrize("behaviour", ["stall", "hang midway"])
async def test_a_client_that_goes_aborts_the_worker(behaviour: str):
    async with routed(behaviour) as (base, [upstream], http):
        asking = asyncio.create_task(ask(http, base))
        await upstream.started.wait()
        asking.cancel()
        async with asyncio.timeout(5):
            await upstream.aborted.wait()


async def test_a_worker_slower_than_the_deadline_is_504_and_aborted():
    async with routed("stall") as (base, [upstream], http):
        status, _, body = await ask(http, base, {"x-offhook-deadline-ms": "200"})
        async with asyncio.timeout(5):
            await upstream.aborted.wait()

    assert status == 504
    assert json.loads(body)["error"]["code"] == "deadline_exceeded"


async def test_a_stream_that_hangs_midway_ends_with_an_error_event():
    async with routed("hang midway", idle_timeout_s=0.2) as (base, _, http):
        status, _, body = await ask(http, base)

    assert status == 200
    assert json.loads(Decoder().feed(body)[-1])["error"]["code"] == "deadline_exceeded"


async def test_a_worker_that_says_nothing_leaves_half_of_the_time_to_another():
    async with routed("stall", "stream") as (base, upstreams, http):
        status, _, body = await ask(http, base, {"x-offhook-deadline-ms": "1000"})
        async with asyncio.timeout(5):
            await upstreams[0].aborted.wait()

    assert (status, body.count(b"data: ")) == (200, 3)
    assert 0 < int(upstreams[1].requests[0][0]["x-offhook-deadline-ms"]) <= 500


async def test_a_worker_that_is_gone_is_marked_at_once_and_one_that_is_back_by_the_next_check():
    async with routed("absent", health_interval_s=0.05) as (base, _, http):
        assert (await ask(http, base))[0] == 503
        [worker] = await workers(http, base)
        assert not worker["healthy"]
        async with Upstream().up(int(str(worker["url"]).rpartition(":")[2])):
            async with asyncio.timeout(5):
                while not worker["healthy"]:
                    [worker] = await workers(http, base)


async def test_a_worker_that_answers_is_healthy_whatever_the_last_check_said():
    async with routed("absent") as (base, _, http):
        assert (await ask(http, base))[0] == 503
        [worker] = await workers(http, base)
        async with Upstream().up(int(str(worker["url"]).rpartition(":")[2])):
            assert (await ask(http, base))[0] == 200
            [worker] = await workers(http, base)

    assert worker["healthy"]


async def test_a_conversation_keeps_its_worker():
    async with routed("stream", "stream", "stream") as (base, upstreams, http):
        for _ in range(6):
            await ask(http, base, {"x-offhook-call": "c1"})

    assert sorted(len(u.requests) for u in upstreams) == [0, 0, 6]


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b"[]", 400, "bad_json"),
        (b"{}", 400, "bad_request"),
        (b'{"model": 1}', 400, "bad_request"),
        (b'{"model": "mm"}', 404, "model_not_found"),
    ],
)
async def test_broken_requests_never_reach_a_worker(data: bytes, status: int, code: str):
    async with routed("stream") as (base, [upstream], http):
        async with http.post(f"{base}{PATH}", data=data) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (status, code)
        async with http.post(f"{base}{PATH}", json={"model": "m"}, headers={"x-offhook-deadline-ms": "x"}) as response:
            assert response.status == 400
    assert upstream.requests == []


async def test_models_and_workers_are_listed():
    async with routed("stream", "absent") as (base, _, http):
        async with http.get(f"{base}/v1/models") as response:
            assert [m["id"] for m in (await response.json())["data"]] == ["m"]
        async with asyncio.timeout(5):
            healthy: list[bool] = []
            while healthy != [True, False]:
                healthy = [bool(w["healthy"]) for w in await workers(http, base)]
