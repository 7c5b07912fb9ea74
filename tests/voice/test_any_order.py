"""Calls in which anything happens at any time: whatever the order, no turn stalls, none has two ends, nothing is stale.

Callers speak, interrupt, hum, press keys and pause at random, while scripted services answer, delay, fail and die at
random. A seed gives the same script, but not the same instants: what holds must hold for every one.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from tests.caller import OUTPUT_HZ, Caller, calling
from tests.fakes import FakeLlm, FakeTts
from tests.speech import clip, silence
from tests.voice.conftest import Stage
from voice.turn import TRANSITIONS, State
from wire import calls

pytestmark = pytest.mark.slow

NUM_ACTIONS = 14
FIRST_HZ, STEP_HZ, NUM_PITCHES = 400, 200, 30
ENDS_WITHIN_S = 12.0  # two fillers, the deadline of an answer, an apology


@dataclass
class PitchedTts(FakeTts):
    """Each utterance has a pitch of its own, so that its audio is known wherever it comes."""

    def pitch_hz(self, utterance: int) -> float:
        return FIRST_HZ + STEP_HZ * (utterance % NUM_PITCHES)


@dataclass
class NumberedLlm(FakeLlm):
    """Answer k is "answerk one two ..."."""

    replies: list[str] = field(
        default_factory=lambda: [f"answer{i} and more of it, and so on. The end." for i in range(200)]
    )


def pitches(caller: Caller) -> list[tuple[float, float]]:
    """(arrival, Hz) of messages that hold one tone."""
    found = []
    for at, pcm in caller.audio:
        spectrum = np.abs(np.fft.rfft(pcm * np.hanning(pcm.size), 4096))
        if pcm.size >= OUTPUT_HZ * 0.015 and np.abs(pcm).mean() > 200:
            found.append((at, float(spectrum.argmax()) * OUTPUT_HZ / 4096))
    return found


async def act(choice: random.Random, stage: Stage, caller: Caller) -> None:
    speech = clip("hello_world")[0]
    match choice.choice(["say", "say", "say", "hum", "key", "wait", "break", "mend", "delay"]):
        case "say":
            caller.say(np.concatenate([silence(0.1), speech]))
        case "hum":
            begin = int(np.argmax(np.abs(speech) > 2000))
            caller.say(speech[begin : begin + choice.choice([1600, 4800, 8000])])
        case "key":
            await caller.send(calls.Dtmf(choice.choice(["1", "23#"])))
        case "break":
            stage.llm.failure = choice.choice(["none", "error"])
            stage.tts.failure = choice.choice(["none", "error", "drop"])
            stage.stt.failure = choice.choice(["none", "error"])
        case "mend":
            stage.llm.failure = stage.tts.failure = stage.stt.failure = "none"
        case "delay":
            stage.llm.first_token_s = choice.choice([0.0, 0.3, 1.5])
            stage.stt.final_delay_s = stage.stt.speculation_s = choice.choice([0.0, 0.1, 0.4])
    await asyncio.sleep(choice.choice([0.05, 0.2, 0.5, 1.0]))


@pytest.mark.parametrize("seed", range(4))
async def test_a_call_keeps_its_promises_whatever_happens(stage: Stage, seed: int) -> None:
    choice = random.Random(seed)
    stage.tts, stage.llm = PitchedTts(), NumberedLlm()
    stage.stt.texts = [choice.choice(["Hello there.", "Tell me a story.", "Mm-hm.", "Stop.", ""]) for _ in range(200)]
    async with stage.up() as base, calling(base, acknowledges=choice.random() < 0.5) as caller:
        await caller.until(calls.Ready)
        for _ in range(NUM_ACTIONS):
            await act(choice, stage, caller)
        stage.llm.failure = stage.tts.failure = stage.stt.failure = "none"
        stage.llm.first_token_s = stage.stt.final_delay_s = stage.stt.speculation_s = 0.0
        await caller.until_quiet()
        await asyncio.sleep(2.0)
        async with asyncio.timeout(ENDS_WITHIN_S):
            while caller.of(calls.State) and caller.of(calls.State)[-1].state != "listening":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        caller.say(np.concatenate([silence(0.1), clip("hello_world")[0]]))
        stage.stt.texts = ["Hello there."]
        await caller.until_next(calls.Turn, lambda turn: turn.outcome == "answered")
        await caller.send(calls.Hangup())
        assert await caller.until(calls.Bye) == calls.Bye("hangup")

    follows_the_table(caller.of(calls.State))
    has_one_end_each(caller)
    has_nothing_stale(caller, stage.tts)


def follows_the_table(states: list[calls.State]) -> None:
    allowed = {(before.value, after.value) for (before, _), (after, _) in TRANSITIONS.items()}
    assert states[0].state in {after for before, after in allowed if before == State.LISTENING.value}
    for one, two in pairwise(states):
        assert (one.state, two.state) in allowed
        assert one.turn <= two.turn


def has_one_end_each(caller: Caller) -> None:
    """Every turn whose words were told ends, and once."""
    ends = [turn.turn for turn in caller.of(calls.Turn)]
    assert len(set(ends)) == len(ends)
    assert {final.turn for final in caller.of(calls.Final)} <= set(ends)


def has_nothing_stale(caller: Caller, tts: PitchedTts) -> None:
    """Nothing of an answer is told, and no sample of it sent, once it was cleared; a turn that goes on has another."""
    assert len(tts.texts) <= NUM_PITCHES
    turn_of = {m.delta.split()[0]: m.turn for m in caller.of(calls.Reply) if m.delta.startswith("answer")}
    utterances = {tts.pitch_hz(number): text.split()[0] for number, text in tts.texts.items() if text.strip()}
    told = list(zip(caller.message_times, caller.messages, strict=True))
    cleared = -1
    for at, came in sorted([*told, *pitches(caller)], key=lambda arrival: arrival[0]):
        match came:
            case calls.Clear():
                cleared = came.turn
            case calls.Final() if came.turn == cleared:
                cleared -= 1
            case calls.Reply():
                assert came.turn > cleared
            case float():
                text = utterances[min(utterances, key=lambda pitch_hz: abs(pitch_hz - came))]
                assert turn_of.get(text, cleared + 1) > cleared, f"{text} at {at:.3f} s"
