from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from fastapi import Request, WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app, read_body

pytestmark = pytest.mark.slow


def app(edge: EdgeConfig):
    service = create_app(Lifecycle("test"), edge)

    @service.post("/work")
    async def work(request: Request) -> dict[str, int]:
        return {"bytes": len(await read_body(request, 100, timeout_s=0.3))}

    @service.websocket("/talk")
    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.close()

    return service


async def post(url: str, headers: dict[str, str]) -> int:
    async with aiohttp.ClientSession() as http, http.post(f"{url}/work", data=b"x", headers=headers) as response:
        return response.status


async def talk(url: str, headers: dict[str, str]) -> str | int:
    try:
        async with connect(url.replace("http", "ws") + "/talk", additional_headers=headers, proxy=None) as socket:
            return str(await socket.recv())
    except InvalidStatus as refused:
        return refused.response.status_code


async def test_pages_of_other_sites_are_refused_where_no_key_is_set():
    edge = EdgeConfig(port=0)
    async with serving(app(edge), Lifecycle("test"), edge) as url:
        assert await post(url, {}) == 200
        assert await post(url, {"origin": url}) == 200
        assert await post(url, {"origin": "http://evil.example"}) == 403
        assert await post(url, {"origin": "null"}) == 403
        assert await post(url, {"origin": "http://[::1"}) == 403
        assert await talk(url, {"origin": url}) == "hello"
        assert await talk(url, {"origin": "http://evil.example"}) == 403


async def test_a_foreign_name_for_this_machine_is_refused_unless_it_is_allowed():
    edge = EdgeConfig(port=0, allowed_hosts=("calls.example.com",))
    async with serving(app(edge), Lifecycle("test"), edge) as url:
        assert await post(url, {"host": "evil.example"}) == 403
        assert await post(url, {"host": "[::1"}) == 403
        assert await post(url, {"host": "localhost:1"}) == 200
        assert await post(url, {"host": "Calls.example.com", "origin": "https://calls.example.com"}) == 200


async def test_a_key_opens_to_every_site_and_its_scheme_has_no_case(tmp_path: Path):
    path = tmp_path / "key"
    path.write_text("0123456789abcdef")
    path.chmod(0o600)
    edge = EdgeConfig(port=0, api_key_file=path)
    async with serving(app(edge), Lifecycle("test"), edge) as url:
        assert await post(url, {"host": "calls.example.com", "authorization": "bearer 0123456789abcdef"}) == 200
        assert await post(url, {"authorization": "Basic 0123456789abcdef"}) == 401
        assert await post(url, {"authorization": "Bearer 0123456789abcdeg"}) == 401
        assert await post(url, {"authorization": "0123456789abcdef"}) == 401


async def test_a_body_that_does_not_come_is_not_waited_for():
    edge = EdgeConfig(port=0)
    async with serving(app(edge), Lifecycle("test"), edge) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST /work HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-length: 50\r\n\r\nhalf".encode())
        async with asyncio.timeout(5):
            assert (await reader.readline()).split()[1] == b"408"
        writer.close()


async def test_a_client_that_leaves_in_the_middle_is_no_error_of_ours(caplog: pytest.LogCaptureFixture):
    edge = EdgeConfig(port=0)
    async with serving(app(edge), Lifecycle("test"), edge) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST /work HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-length: 50\r\n\r\nhalf".encode())
        await writer.drain()
        writer.close()
        assert await post(url, {}) == 200
        await asyncio.sleep(0.4)  # past the time a body has
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
