from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI, WebSocket
from websockets.asyncio.client import connect

from tests.serving import serving
from wire import patient_http
from wire.config import EdgeConfig
from wire.service import Lifecycle

pytestmark = pytest.mark.slow

TIMEOUT_S = 0.2
REQUEST = b"GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    monkeypatch.setattr(patient_http, "HEAD_TIMEOUT_S", TIMEOUT_S)
    app = FastAPI()

    @app.get("/now")
    async def now() -> str:
        return "now"

    @app.get("/late")
    async def late() -> str:
        await asyncio.sleep(5 * TIMEOUT_S)
        return "late"

    @app.websocket("/echo")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(await websocket.receive_text())

    async with serving(app, Lifecycle("test"), EdgeConfig(port=0)) as url:
        yield url


async def connection(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


@pytest.mark.parametrize("sent", [b"", REQUEST[:-2], b"\r\n"])
async def test_who_sends_no_whole_head_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    async with server(monkeypatch) as url, asyncio.timeout(5):
        reader, writer = await connection(url)
        writer.write(sent)
        assert await reader.read() == b""
        writer.close()


async def test_who_sends_the_half_of_a_second_head_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch) as url, asyncio.timeout(5):
        reader, writer = await connection(url)
        writer.write(REQUEST + REQUEST[:20])
        assert (await reader.read()).endswith(b'"now"')
        writer.close()


async def test_an_answer_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch) as url, asyncio.timeout(5):
        reader, writer = await connection(url)
        writer.write(REQUEST.replace(b"/now", b"/late"))
        assert (await reader.readuntil(b'"late"')).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_websocket_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch) as url, connect(url.replace("http", "ws") + "/echo") as client:
        await asyncio.sleep(3 * TIMEOUT_S)
        await client.send("still here")
        assert await client.recv() == "still here"
