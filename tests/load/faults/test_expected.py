"""What the docstrings of stage faults promise, heard by a caller of our own call server on scripted services."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from load.faults.stage_proxy import StageProxy
from load.faults.stages import (
    STAGES,
    LlmDeath,
    LlmRefusal,
    LlmStall,
    Requests,
    Stage,
    StageFault,
    SttEmpty,
    SttLate,
    SttNever,
    TtsDeath,
    TtsStall,
)
from tests.caller import RATE_HZ, Caller, calling
from tests.fakes import FakeLlm, FakeStt, FakeTts
from tests.serving import serving
from tests.speech import clip, silence
from voice.config import AgentConfig, VoiceConfig
from voice.media.level import speech_end
from voice.server import build, load
from wire import calls
from wire.config import EdgeConfig
from wire.service import Lifecycle

pytestmark = pytest.mark.slow
EDGE = EdgeConfig(port=0)
LIMIT_S = 1.5  # the promise
REPLY = "One two three four. Five six seven eight. Nine ten eleven twelve."


@dataclass
class FaultyStage:
    """A call server whose services stand behind proxies."""

    fakes: dict[Stage, FakeStt | FakeLlm | FakeTts] = field(
        default_factory=lambda: {"stt": FakeStt(), "tts": FakeTts(), "llm": FakeLlm(replies=[REPLY, "Yes."])}
    )
    proxies: dict[Stage, StageProxy] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        async with contextlib.AsyncExitStack() as stack:
            urls = []
            for stage in ("stt", "tts", "llm"):
                target = await stack.enter_async_context(serving(self.fakes[stage].app(), Lifecycle("fake"), EDGE))
                self.proxies[stage] = StageProxy(stage, target, np.random.default_rng(1))
                urls.append(await stack.enter_async_context(self.proxies[stage].open()))
            # Without answers made ahead, whose failures nobody hears of
            agent = AgentConfig(greeting="")
            config = VoiceConfig(EDGE, *urls, llm_model="fake", agent=agent, max_revisions=0)
            lifecycle = Lifecycle("voice")
            yield await stack.enter_async_context(serving(build(load(config, lifecycle), lifecycle), lifecycle, EDGE))

    def set(self, fault: StageFault) -> None:
        [stage] = [stage for stage, kinds in STAGES.items() if isinstance(fault, kinds)]
        self.proxies[stage].plan.set([fault])


def hello() -> np.ndarray:
    pcm, _ = clip("hello_world")
    return np.concatenate([silence(0.2), pcm[: speech_end(pcm, RATE_HZ)]])


async def silent_turn_s(caller: Caller) -> float:
    """Says hello; the longest silence from the last word to the end of the turn."""
    caller.say(hello())
    await caller.until_next(calls.State, lambda s: s.state == "listening")
    assert caller.said_s < math.inf
    return caller.silence_s(caller.said_s, time.monotonic())


@pytest.mark.parametrize(
    ("fault", "outcome", "says"),
    [
        (SttLate(by_s=0.2), "answered", set()),
        (SttLate(by_s=2.0), "answered", {"delayed"}),
        (SttLate(by_s=4.0), "failed", {"delayed", "deadline_exceeded"}),
        (SttEmpty(), "empty", set()),
        (SttNever(), "failed", {"delayed", "deadline_exceeded"}),
        (LlmStall(for_s=2.0), "answered", {"delayed"}),
        (LlmStall(), "failed", {"delayed", "deadline_exceeded"}),
        (LlmStall(6), "failed", {"speech_failed"}),
        (LlmDeath(0), "failed", {"unavailable"}),
        (LlmDeath(6), "failed", {"unavailable", "speech_failed"}),
        (LlmRefusal(429, retry_after_s=2), "failed", {"overloaded"}),
        (TtsStall(after_s=0.5, for_s=0.5), "answered", set()),
        (TtsStall(), "failed", {"delayed", "speech_failed"}),
        (TtsStall(after_s=0.5), "failed", {"speech_failed"}),
        (TtsDeath(after_s=0.5), "failed", {"speech_failed", "unavailable"}),
    ],
    ids=lambda value: (
        type(value).__name__ if isinstance(value, Requests) else None if isinstance(value, str) else str(len(value))
    ),
)
async def test_a_fault_sounds_as_it_is_described_and_the_next_turn_as_ever(
    fault: StageFault, outcome: str, says: set[str]
) -> None:
    stage = FaultyStage()
    async with stage.up() as base, calling(base) as caller:
        stage.set(fault)
        silent_s = await silent_turn_s(caller)
        first = await caller.until(calls.Turn)
        errors = {error.code for error in caller.of(calls.Error)}
        caller.say(hello())
        second = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert first.outcome == outcome
    assert errors <= says
    assert bool(errors) == bool(says)
    if outcome != "empty":
        assert silent_s < LIMIT_S
    assert second.outcome == "answered"
