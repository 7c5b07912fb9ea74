import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest
from fastapi import FastAPI, Request

from tests.serving import serving
from wire.config import ConfigError, EdgeConfig
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable
from wire.service import Lifecycle, create_app, listen_socket, read_json

KEY = "0123456789abcdef"


def app_with_routes(lifecycle: Lifecycle, edge: EdgeConfig) -> FastAPI:
    app = create_app(lifecycle, edge, details=lambda: {"extra": 1})
    errors = {
        "peer": PeerError("bad", code="special"),
        "busy": Overloaded("full", retry_after_s=1.2),
        "late": DeadlineExceeded("late"),
        "gone": Unavailable("gone"),
    }

    @app.get("/raise/{name}")
    async def fail(name: str) -> None:
        raise errors[name]

    @app.get("/bug")
    async def bug() -> None:
        raise ZeroDivisionError("secret")

    @app.get("/number")
    async def number(n: int) -> int:
        return n

    @app.post("/json")
    async def echo(request: Request) -> dict[str, object]:
        return await read_json(request, limit_bytes=100)

    return app


@pytest.fixture
async def base():
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0)
    async with serving(app_with_routes(lifecycle, edge), lifecycle, edge) as url:
        yield url


async def test_health_and_metrics_answer(base: str):
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{base}/health") as response:
            body = await response.json()
            assert (response.status, body["status"], body["extra"]) == (200, "ready", 1)
        async with http.get(f"{base}/metrics") as response:
            assert "python_info" in await response.text()


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/raise/peer", 400, "special"),
        ("/raise/busy", 429, "overloaded"),
        ("/raise/late", 504, "deadline_exceeded"),
        ("/raise/gone", 503, "unavailable"),
        ("/none", 404, "not_found"),
        ("/number?n=x", 400, "bad_request"),
        ("/json", 405, "method_not_allowed"),
    ],
)
async def test_errors_have_one_shape(base: str, path: str, status: int, code: str):
    async with aiohttp.ClientSession() as http, http.get(f"{base}{path}") as response:
        assert response.status == status
        assert (await response.json())["error"]["code"] == code
        assert response.headers.get("retry-after") == ("2" if code == "overloaded" else None)


async def test_a_bug_of_ours_has_the_same_shape_and_is_logged_once(base: str, caplog: pytest.LogCaptureFixture):
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{base}/bug") as response:
            assert response.status == 500
            error = (await response.json())["error"]
        async with http.get(f"{base}/health") as response:
            assert response.status == 200

    assert (error["code"], error["type"]) == ("internal", "internal")
    assert "secret" not in error["message"]
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "secret" in str(record.exc_info)


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"a":1}', 200), (b"{", 400), (b"[1]", 400), (b"[" * 90, 400), (b"x" * 101, 413)]
)
async def test_bodies_are_bounded_json_objects(base: str, body: bytes, status: int):
    async with aiohttp.ClientSession() as http, http.post(f"{base}/json", data=body) as response:
        assert response.status == status


async def test_everything_but_health_demands_the_key(tmp_path: Path):
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0, api_key_file=tmp_path / "key")
    async with serving(app_with_routes(lifecycle, edge), lifecycle, edge) as base, aiohttp.ClientSession() as http:
        statuses = {}
        for name, headers in {
            "none": {},
            "wrong": {"authorization": "Bearer 0123456789abcdeX"},
            "right": {"authorization": f"Bearer {KEY}"},
        }.items():
            async with http.get(f"{base}/metrics", headers=headers) as response:
                statuses[name] = response.status
                assert KEY not in await response.text()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"{base}/nowhere", headers=headers)
            assert refused.value.status == (403 if name == "right" else 401)
        async with http.get(f"{base}/health") as response:
            assert response.status == 200

    assert statuses == {"none": 401, "wrong": 401, "right": 200}


async def test_what_is_public_is_read_without_the_key_and_nothing_else(tmp_path: Path):
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0, api_key_file=tmp_path / "key")
    app = create_app(lifecycle, edge, public=("/", "/page/*"))
    paths = {"/": 404, "/page/a.js": 404, "/page": 401, "/pages": 401, "/metrics": 401, "/health": 200}
    async with serving(app, lifecycle, edge) as base, aiohttp.ClientSession() as http:
        for path, expected in paths.items():
            async with http.get(f"{base}{path}") as response:
                assert (path, response.status) == (path, expected)
        async with http.post(f"{base}/page/a.js") as response:
            assert response.status == 401
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(f"{base}/page/a")
        assert refused.value.status == 401


async def test_a_draining_service_says_so_and_takes_no_more():
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0)
    async with serving(create_app(lifecycle, edge), lifecycle, edge) as base, aiohttp.ClientSession() as http:
        lifecycle.draining = True
        async with http.get(f"{base}/health") as response:
            assert (response.status, (await response.json())["status"]) == (503, "draining")
        with pytest.raises(Unavailable), lifecycle.unit():
            pass


def test_a_taken_port_is_one_clear_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            listen_socket(EdgeConfig(port=port))


SERVER = """
import asyncio, sys
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app, run
lifecycle = Lifecycle("test")
edge = EdgeConfig(port=int(sys.argv[1]), drain_timeout_s=20)
app = create_app(lifecycle, edge)
@app.get("/work")
async def work():
    with lifecycle.unit():
        await asyncio.sleep(float(sys.argv[2]))
        return "done"
run(app, lifecycle, edge)
"""


async def start(seconds: float) -> tuple[asyncio.subprocess.Process, str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(port), str(seconds), env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    async with aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.get(f"http://127.0.0.1:{port}/health"):
                    return process, f"http://127.0.0.1:{port}"
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)


async def active(http: aiohttp.ClientSession, base: str, count: int) -> None:
    while True:
        async with http.get(f"{base}/health") as response:
            if (await response.json())["active"] == count:
                return


@pytest.mark.slow
async def test_sigterm_lets_running_work_finish():
    process, base = await start(1.0)
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as tasks:
        work = tasks.create_task(_get(http, f"{base}/work"))
        await active(http, base, 1)
        process.send_signal(signal.SIGTERM)
        assert await work == '"done"'
    assert await process.wait() == 0


@pytest.mark.slow
async def test_a_second_signal_ends_at_once():
    process, base = await start(3600.0)
    async with aiohttp.ClientSession() as http:
        work = asyncio.create_task(_get(http, f"{base}/work"))
        await active(http, base, 1)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            while True:
                async with http.get(f"{base}/health") as response:
                    if response.status == 503:
                        break
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            await process.wait()
        await asyncio.wait([work])
        assert work.exception() is not None or work.result() != '"done"'


async def _get(http: aiohttp.ClientSession, url: str) -> str:
    async with http.get(url) as response:
        return await response.text()
