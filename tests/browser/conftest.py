from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.browser.chromium import Page, chromium, find_chromium, microphone
from tests.browser.loopback import Loopback, NoNamespace, loopback
from tests.speech import clip, silence

MICROPHONE_HZ = 48000
BEFORE_S = 1.5  # the recording begins with the capture, before there is a path for it
HOME = "http://127.0.0.1:"


def missing(what: str) -> None:
    """Where browsers are demanded, having none is a failure; a skipped test proves nothing."""
    if os.environ.get("CI") or os.environ.get("OFFHOOK_REQUIRE_BROWSER"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def inside() -> Iterator[Loopback]:
    if find_chromium() is None:
        missing("no Chromium: apt-get install chromium")
    try:
        with loopback() as namespace:
            yield namespace
    except NoNamespace as error:
        missing(f"no network namespace of its own for the browser: {error}")


@dataclass(frozen=True)
class Server:
    url: str
    process: asyncio.subprocess.Process


@asynccontextmanager
async def stage_server(inside: Loopback, **settings: object) -> AsyncIterator[Server]:
    """A call server on scripted services; its process may be killed."""
    process = await asyncio.create_subprocess_exec(
        *inside.inside(sys.executable, "-m", "tests.browser.stage_server", json.dumps(settings)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = (await process.stdout.readline()).decode().strip()
        assert url.startswith(HOME), "the stage did not come up"
        yield Server(url, process)
    finally:
        process.stdin.close()
        async with asyncio.timeout(30):
            await process.wait()


@pytest.fixture(scope="session")
def stack(inside: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the whole stack with the real models, as `offhook up` starts it."""
    log = tmp_path_factory.mktemp("up") / "up.log"
    command = inside.inside(sys.executable, "-m", "deploy", "up", "--profile", "deploy/profiles/cpu.yaml")
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            assert "127.0.0.1:8080" in process.stdout.readline(), log.read_text()
            yield f"{HOME}8080"
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            finally:
                process.kill()


@dataclass(frozen=True)
class Phone:
    """A browser with the console open.

    `recording`: what its microphone hears, as pairs of a clip, or "" for none, and the seconds of silence before it.
    """

    inside: Loopback
    folder: Path

    @asynccontextmanager
    async def at(
        self, url: str, *recording: tuple[str, float], flags: tuple[str, ...] = (), query: str = "?greeting=false"
    ) -> AsyncIterator[Page]:
        """Whatever the test was about: the page threw nothing, broke no rule of its policy, and asked nobody else."""
        heard = (*microphone(self.record(*recording)), *flags) if recording else flags
        async with chromium(self.inside, heard) as browser:
            page = await browser.open(f"{url}/{query}")
            yield page
            assert page.problems == []
            assert [request for request in page.requests if not request.startswith(HOME)] == []

    def record(self, *recording: tuple[str, float]) -> Path:
        path = self.folder / f"microphone-{len(list(self.folder.iterdir()))}.wav"
        parts = [part for name, before_s in recording for part in (silence(before_s, MICROPHONE_HZ), speech(name))]
        soundfile.write(path, np.concatenate(parts), MICROPHONE_HZ, subtype="PCM_16")
        return path


def speech(name: str) -> np.ndarray:
    return clip(name, MICROPHONE_HZ)[0] if name else silence(0)


@pytest.fixture
def phone(inside: Loopback, tmp_path: Path) -> Phone:
    return Phone(inside, tmp_path)
