"""A whole stack of our own, started for a run and ended with it, with a proxy before each service behind its calls.

It is started as a user starts it, by `offhook up`: one for the services, and when they are ready one for the call
server, which knows them by the proxies' addresses. Both are in process groups of their own, so that Ctrl-C reaches this
process alone, which ends them in order; should it be killed, the kernel kills them (`deploy/leash.py`; Linux only).
What they write lies in a temporary folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from load.derived_profile import CALL_SERVER, LOOPBACK, derived, num_ports, overridden
from load.errors import LoadError
from load.faults.stage_proxy import StageProxy
from load.faults.stages import Stage
from wire.config import ConfigError, read

READY_TIMEOUT_S = 600.0  # a first start fetches and converts weights
END_TIMEOUT_S = 10.0  # for calls to end after SIGTERM, and again for everything after a second one
TAIL_LINES = 16
NOTHING: Mapping[str, object] = {}


@dataclass(frozen=True)
class Stack:
    """`stages` stand between the call server and its services; `stt_url` and `voice_url` lead past them."""

    urls: Mapping[str, str]  # transport -> where calls are taken
    stages: Mapping[Stage, StageProxy]
    stt_url: str
    voice_url: str
    key_files: Mapping[str, Path]  # of the API key that a section's process demands: voice is for calls


@contextlib.asynccontextmanager
async def started(
    profile: Path, rng: np.random.Generator, *, overrides: Mapping[str, object] = NOTHING
) -> AsyncIterator[Stack]:
    """What `profile` describes, on free ports of 127.0.0.1; paths in it are those of this process.

    `overrides`: dotted path in the profile to value, such as `voice.max_calls` to 4. `rng`: of the stages' faults.

    Raises: LoadError, with the last lines of its log, when it does not start.
    """
    try:
        plain = overridden(read(profile).value, overrides)
    except ConfigError as error:
        raise LoadError(str(error)) from None
    made = derived(plain, _free_ports(num_ports(plain)))
    async with contextlib.AsyncExitStack() as kept:
        folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="offhook-load-")))
        if made.services:
            await kept.enter_async_context(_up("services", made.services, folder))
        stages = {stage: StageProxy(stage, target, rng.spawn(1)[0]) for stage, target in made.targets.items()}
        addresses = {stage: await kept.enter_async_context(proxy.open()) for stage, proxy in stages.items()}
        await kept.enter_async_context(_up(CALL_SERVER, made.call_server_at(addresses), folder))
        host = f"{LOOPBACK}:{made.port}"
        yield Stack(
            urls={"websocket": f"ws://{host}/v1/calls", "webrtc": f"http://{host}/v1/calls/rtc"},
            stages=stages,
            stt_url=made.targets["stt"],
            voice_url=made.targets["tts"],
            key_files=made.key_files,
        )


@contextlib.asynccontextmanager
async def _up(name: str, profile: Mapping[str, Any], folder: Path) -> AsyncIterator[None]:
    """Running, and ready. Raises: LoadError."""
    path, log = folder / f"{name}.yaml", folder / "up.log"
    path.write_text(yaml.safe_dump(dict(profile), sort_keys=False))
    with log.open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *_command(path, folder / "logs"), stdin=DEVNULL, stdout=PIPE, stderr=stderr, process_group=0
        )
    try:
        await _until_ready(process, log)
        yield
    finally:
        await _end(process)


def _command(profile: Path, logs: Path) -> tuple[str, ...]:
    leash = ("-m", "deploy.leash", str(os.getpid()), sys.executable) if sys.platform == "linux" else ()
    return (sys.executable, *leash, "-m", "deploy", "up", "--profile", str(profile), "--logs", str(logs))


async def _until_ready(process: Process, log: Path) -> None:
    """Raises: LoadError."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            line = await process.stdout.readline()
    except TimeoutError:
        raise LoadError(f"the stack was not ready after {READY_TIMEOUT_S:.0f} s", _tail(log)) from None
    if not line:
        raise LoadError("the stack did not start", _tail(log))


async def _end(process: Process) -> None:
    """The first signal lets running calls end, the second ends them, and the third ends what does not listen."""
    try:
        for _ in range(2):
            if process.returncode is None:
                process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_TIMEOUT_S):
                    await process.wait()
                    return
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").replace(f"{log.parent}/", "").splitlines()
    return "\n".join(["its last lines:", *(f"  {line}" for line in lines[-TAIL_LINES:])])


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
