"""The process as it is started."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from load.alignment import word_error_rate
from tests.speech import clip
from tests.stt.listener import connected, listening
from wire import listen

ROOT = Path(__file__).parents[2]
HELLO, HELLO_TEXT = clip("hello_world")


def profile(folder: Path, *, model: str = "whisper-tiny.en", languages: str = "en") -> tuple[Path, int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = folder / "profile.yaml"
    path.write_text(f"stt: {{edge: {{port: {port}}}, models: [{{id: {model}, languages: [{languages}]}}]}}\n")
    return path, port


async def start(path: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "stt", "--profile", str(path), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )


@asynccontextmanager
async def listening_process(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await start(path)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            async for line in process.stderr:
                if b"listening on" in line:
                    break
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
async def test_a_running_connection_finishes_while_new_ones_are_refused(tmp_path: Path) -> None:
    path, port = profile(tmp_path)
    url = f"http://127.0.0.1:{port}"
    async with listening_process(path) as process:
        async with listening(url) as running:
            await running.feed(HELLO)
            process.send_signal(signal.SIGTERM)
            async with connected(url) as late:
                assert await late.failure() == ("unavailable", 1012)
            await running.send(listen.Finalize(1))
            assert word_error_rate(HELLO_TEXT, (await running.next(listen.Final)).text) == 0
        async with asyncio.timeout(10):
            assert await process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "languages", "problem"),
    [
        ("whisper-none", "en", b"offhook models pull whisper-none"),
        ("whisper-tiny.en", "ko", b"does not know language ko"),
        ("whisper-tiny.en", "", b"languages must name at least one"),
    ],
)
async def test_what_prevents_a_start_is_one_line(tmp_path: Path, model: str, languages: str, problem: bytes) -> None:
    path, _ = profile(tmp_path, model=model, languages=languages)
    process = await start(path)
    async with asyncio.timeout(30):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert problem in errors
    assert len(errors.splitlines()) == 1
