"""`offhook up` with the real models, as a test that kills its processes wants it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from tests.serving import free_ports
from wire.weights import cache_dir

logger = logging.getLogger(__name__)

PROFILE = Path("deploy/profiles/cpu.yaml")
LIMIT_S = 3.0
BACK_WITHIN_S = 60.0
POLL_S = 0.05
DRAIN_S = 5.0
VOICE_DRAIN_S = 14.0  # goodbye between turns after one second
MAX_REPLY_TOKENS = 24  # some six seconds of speech
STORYTELLER = "You are a story teller. Whatever the caller says, tell a long story about it."  # never ends by itself


@dataclass
class Stack:
    """`offhook up`, running."""

    process: subprocess.Popen[str]
    log: Path
    base: str

    def pid(self, name: str) -> int:
        """Of the life that became ready last."""
        return int(re.findall(rf"{name}: ready after .* \(pid (\d+)\)", self.log.read_text())[-1])

    def pids(self) -> list[int]:
        return [self.pid(name) for name in ("voice", "stt", "tts_engine", "router", "llm")]

    def signal(self, name: str, number: signal.Signals) -> int:
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    async def until_back(self, name: str, pid: int) -> None:
        """Another process than `pid` is ready."""
        await eventually(lambda: self.pid(name) != pid, BACK_WITHIN_S)

    async def until_free(self) -> None:
        """No call holds a line."""
        async with aiohttp.ClientSession() as http, asyncio.timeout(LIMIT_S):
            while True:
                async with http.get(f"{self.base}/v1/calls") as response:
                    if (await response.json())["calls"] == 0:
                        return
                await asyncio.sleep(POLL_S)


async def eventually(holds: Callable[[], bool], within_s: float) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s
        await asyncio.sleep(POLL_S)


def are_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def profile(folder: Path) -> Path:
    """The default profile on free ports, with one small recogniser, short answers and short drains."""
    text = PROFILE.read_text()
    ports = sorted(set(re.findall(r"\b8\d{3}\b", text)))
    for port, free in zip(ports, free_ports(len(ports)), strict=True):
        text = re.sub(rf"\b{port}\b", str(free), text)
    settings = yaml.safe_load(text)
    for edge in (settings["stt"]["edge"], settings["tts_engine"]["edge"], settings["router"]["edge"]):
        edge["drain_timeout_s"] = DRAIN_S
    settings["voice"]["edge"]["drain_timeout_s"] = VOICE_DRAIN_S
    settings["voice"]["agent"] = {"max_reply_tokens": MAX_REPLY_TOKENS, "instructions": STORYTELLER}
    settings["stt"]["models"] = [{"id": "whisper-tiny.en", "languages": ["en"], "num_instances": 1}]
    path = folder / "profile.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """With the weights of the real cache, and logs of its own."""
    log = folder / "up.log"
    for name in ("models", "derived"):
        (folder / name).symlink_to(cache_dir() / name)
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy", "up", "--profile", str(profile(folder))],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
            env={**os.environ, "OFFHOOK_CACHE": str(folder)},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), log.read_text()
        yield Stack(process, log, line.split()[0].removesuffix("/"))
    finally:
        logger.info("%s", log.read_text())
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # two of one kind may arrive as one
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()
