"""The whole stack with the real models, started as a run starts it, with proxies between its processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from load.errors import LoadError
from load.faults.kill import ours, package_of
from load.faults.stages import LlmStall
from load.recognition import Recogniser
from load.stack import started
from tests.caller import RATE_HZ, calling
from tests.speech import clip, silence
from tests.stack import LIMIT_S, PROFILE, are_gone, eventually
from voice.media.level import speech_end
from wire import calls

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found by Linux's means"),
]
SMALL = {
    "voice.agent.max_reply_tokens": 12,
    "stt.models": [{"id": "whisper-tiny.en", "languages": ["en"], "num_instances": 1}],
}
FOLDER = "offhook-load-"  # of the profiles that a run derives
STACK = {"voice", "stt", "tts_engine", "router", "llm"}


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def question() -> np.ndarray:
    pcm, _ = clip("hello_world")
    return np.concatenate([silence(0.3), pcm[: speech_end(pcm, RATE_HZ)]])


def of_a_run() -> dict[str, int]:
    """Pids by package of stacks that runs have started, and of no other that runs beside them: by their profile."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            command = path.read_text(errors="replace").split("\0")
            package = package_of(command)
            if package in STACK and any(FOLDER in part for part in command):
                found[str(package)] = int(path.parent.name)
    return found


async def test_a_call_passes_the_proxies_and_meets_the_fault_that_was_set() -> None:
    async with started(PROFILE, rng(), overrides=SMALL) as stack:
        processes = of_a_run()
        assert set(processes) == STACK <= set(ours())
        assert all(os.getpgid(pid) != os.getpgid(0) for pid in processes.values())
        await Recogniser(stack.stt_url).check()
        stack.stages["llm"].plan.set([LlmStall(for_s=0.5)])
        hello = calls.Hello(1, output_sample_rate_hz=24000, greeting=False)
        async with calling(stack.urls["websocket"].removesuffix("/v1/calls"), hello) as caller:
            await caller.until(calls.Ready)
            caller.say(question())
            turn = await caller.until(calls.Turn, timeout_s=40)
        assert turn.outcome == "answered"
        assert stack.stages["llm"].plan.num_faults == {"llm_stall": 1}
        assert stack.stages["stt"].plan.num_requests >= 1
        assert stack.stages["tts"].plan.num_requests >= 1
    assert are_gone([processes[name] for name in STACK])


async def test_a_stack_that_cannot_start_says_why_in_its_last_lines() -> None:
    with pytest.raises(LoadError, match="did not start") as caught:
        async with started(PROFILE, rng(), overrides={"stt.max_stream": 1}):
            pytest.fail("it started")
    assert "unknown key" in caught.value.hint
    assert "max_streams" in caught.value.hint


async def test_a_profile_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot read"):
        async with started(tmp_path / "none.yaml", rng()):
            pytest.fail("it started")


async def test_a_start_that_is_given_up_leaves_nothing_behind() -> None:
    async def start() -> None:
        async with started(PROFILE, rng(), overrides=SMALL):
            pytest.fail("it was given up")

    starting = asyncio.create_task(start())
    await eventually(lambda: {"stt", "llm"} <= set(of_a_run()), 60)
    pids = list(of_a_run().values())
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await eventually(lambda: are_gone(pids), LIMIT_S)
    assert not of_a_run()
