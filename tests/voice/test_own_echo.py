"""An agent whose voice comes back from the caller's loudspeaker, with real speech, VAD and turn model."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from load.caller import Speech
from load.dial import Dial
from load.faults.site import Site
from load.performance import Act, Venue, perform
from load.rehearsal import Part
from load.scenario import Echo, Scenario
from load.steps import BargeIn, Say, Silence, Step, WaitForAnswer
from tests.fakes import TTS_RATE_HZ, FakeTts
from tests.speech import clip, silence
from tests.voice.conftest import Stage
from voice.media.echo import EchoGuard
from wire import speak
from wire.pcm import pack_utterance
from wire.sockets import Socket

pytestmark = pytest.mark.slow
HZ = 16000
REPLY = "One two three four five and so on."


class TalkingTts(FakeTts):
    """Says six seconds of recorded speech, whatever it is asked to say."""

    async def _say(
        self, peer: Socket[speak.ClientMessage], utterance: int, chars: int, samples: int
    ) -> tuple[int, int]:
        text = self.texts[utterance]
        if samples:
            return len(text), samples
        pcm = np.concatenate([clip(name, TTS_RATE_HZ)[0] for name in ("quick_brown_fox", "counting")])
        await peer.send(speak.Words(utterance, (speak.Word(text, 0, pcm.size, 0, len(text)),)))
        for begin in range(0, pcm.size, 2205):
            await peer.send(pack_utterance(utterance, pcm[begin : begin + 2205]))
        return len(text), pcm.size


def question() -> Speech:
    pcm = np.concatenate([silence(0.1), clip("hello_world")[0], silence(0.1)])
    return Speech("question", "Hello world.", pcm, 1600, pcm.size - 1600)


async def play(stage: Stage, *steps: Step, echo: Echo | None) -> Act:
    stage.tts, stage.llm.replies = TalkingTts(), [REPLY]
    scenario = Scenario(name="test", about="a test", steps=steps, echo=echo)
    part = Part({i: [question()] for i, step in enumerate(steps) if isinstance(step, Say | BargeIn)}, {})
    start_s, numbers = time.monotonic(), itertools.count(1)
    async with stage.up() as base:
        dial = Dial(base.replace("http", "ws") + "/v1/calls", "websocket")
        venue = Venue(dial, Site(), lambda: time.monotonic() - start_s, lambda: next(numbers))
        course = await perform(scenario, part, venue, seed=0, scheduled_s=0.0)
    assert course.problems == []
    return course.acts[0]


def told(act: Act, kind: str) -> list[dict[str, object]]:
    return [dict(message) for _, message in act.record.messages if message["type"] == kind]


@pytest.mark.parametrize(("level_db", "delay_ms"), [(-20.0, 60.0), (-30.0, 300.0), (-6.0, 900.0)])
async def test_the_agent_does_not_interrupt_or_answer_itself(stage: Stage, level_db: float, delay_ms: float) -> None:
    act = await play(stage, Say("question"), WaitForAnswer(), Silence(1500), echo=Echo(level_db, delay_ms))
    assert told(act, "clear") == []
    [turn] = told(act, "turn")
    assert (turn["outcome"], turn["heard"]) == ("answered", REPLY)


async def test_without_the_guard_it_does(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EchoGuard, "is_echo", lambda _: False)
    act = await play(stage, Say("question"), WaitForAnswer("start"), Silence(3000), echo=Echo(-20.0, 60.0))
    assert told(act, "clear") != []


@pytest.mark.parametrize("level_db", [-20.0, 0.0])
async def test_a_caller_who_speaks_over_the_echo_interrupts(stage: Stage, level_db: float) -> None:
    steps = (Say("question"), BargeIn("question", after_ms=2000), WaitForAnswer("start"))
    act = await play(stage, *steps, echo=Echo(level_db, 60.0))
    assert len(told(act, "clear")) == 1
    barge_in = act.record.said[1]
    cleared_s = next(at_s for at_s, message in act.record.messages if message["type"] == "clear")
    assert barge_in.start_s < cleared_s < barge_in.start_s + 1.0
    assert told(act, "turn")[0]["outcome"] == "interrupted"
