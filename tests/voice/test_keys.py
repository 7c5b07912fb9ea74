"""Calls in which keys are pressed, on scripted services: whoever speaks, the caller has the turn."""

from __future__ import annotations

import itertools
import logging
import time

import numpy as np
import pytest

from load.dial import Dial
from load.faults.site import Site
from load.performance import Venue, perform
from load.rehearsal import Part
from load.scenario import Scenario, Transport
from load.steps import Key, Silence, WaitForAnswer
from tests.caller import Caller, calling
from tests.speech import clip, silence
from tests.voice.conftest import Stage
from voice.keypad import PAUSE_S
from wire import calls

pytestmark = pytest.mark.slow

LONG = " ".join(f"word{i}" for i in range(60)) + "."


def hello() -> np.ndarray:
    return np.concatenate([silence(0.2), clip("hello_world")[0]])


async def press(caller: Caller, digits: str) -> None:
    await caller.send(calls.Dtmf(digits))


async def until_state(caller: Caller, state: str) -> None:
    await caller.until(calls.State, lambda s: s.state == state)


async def test_keys_are_answered_as_words_are(stage: Stage) -> None:
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.Ready)
        for key in "471":
            await press(caller, key)
        await press(caller, "1#")
        turn = await caller.until(calls.Turn)

    assert [f.text for f in caller.of(calls.Final)] == ["[The caller keyed in: 4 7 1 1]"]
    assert (turn.turn, turn.outcome, turn.text) == (1, "answered", "[The caller keyed in: 4 7 1 1]")
    assert stage.llm.prompts[0][-1] == {"role": "user", "content": "[The caller keyed in: 4 7 1 1]"}
    assert [s.state for s in caller.of(calls.State)] == ["hearing", "thinking", "speaking", "listening"]
    assert turn.latency_ms == pytest.approx(sum(turn.stages_ms.values()), abs=0.2)
    assert turn.latency_ms < 1000


async def test_a_number_without_a_square_is_answered_after_a_pause(stage: Stage) -> None:
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.Ready)
        await press(caller, "1")
        turn = await caller.until(calls.Turn)
        times = dict(zip(map(id, caller.messages), caller.message_times, strict=True))

    hearing, thinking = (times[id(state)] for state in caller.of(calls.State)[:2])
    assert PAUSE_S - 0.1 < thinking - hearing < PAUSE_S + 1
    assert turn.text == "[The caller keyed in: 1]"
    assert turn.latency_ms is not None
    assert turn.latency_ms < 1000  # the pause was his


async def test_the_first_key_silences_the_agent(stage: Stage) -> None:
    stage.llm.replies = [LONG, "Done."]
    stage.llm.token_s = 0.05
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        caller.say(hello())
        await caller.until_audio(0.5)
        await press(caller, "1")
        clear = await caller.until(calls.Clear)
        await press(caller, "2#")
        second = await caller.until(calls.Turn, lambda t: t.turn == 2)

    interrupted = caller.of(calls.Turn)[0]
    assert (clear.turn, interrupted.outcome) == (1, "interrupted")
    assert 0 < len(interrupted.heard.split()) < 30
    assert (second.text, second.heard) == ("[The caller keyed in: 1 2]", "Done.")
    assert stage.tts.cancelled == [1]


async def test_a_greeting_can_be_keyed_into(stage: Stage) -> None:
    stage.greeting = LONG
    async with stage.up() as base, calling(base) as caller:
        await caller.until_audio(0.3)
        await press(caller, "#")
        turn = await caller.until(calls.Turn)

    assert (turn.turn, turn.text) == (1, "[The caller keyed in: #]")
    assert caller.of(calls.Clear)


async def test_a_key_before_anything_is_heard_goes_on_with_the_turn(stage: Stage) -> None:
    stage.llm.failure, stage.llm.replies = "silent", ["Yes."]
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.Final)
        stage.llm.failure = "none"
        await press(caller, "5#")
        turn = await caller.until(calls.Turn)

    assert (turn.turn, turn.text, turn.heard) == (1, "Hello there. [The caller keyed in: 5]", "Yes.")


async def test_words_spoken_while_keys_are_pressed_are_one_turn_with_them(stage: Stage) -> None:
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await until_state(caller, "hearing")
        await press(caller, "12")
        await caller.until_quiet()
        await press(caller, "3#")
        turn = await caller.until(calls.Turn)

    assert turn.turn == 1
    keys = "[The caller keyed in: 1 2 3]"
    assert turn.text in (f"Hello there. {keys}", f"{keys} Hello there.")  # whichever ended first
    assert len(stage.llm.prompts) == 1


async def test_a_square_in_the_middle_of_a_sentence_waits_for_its_end(stage: Stage) -> None:
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await until_state(caller, "hearing")
        await press(caller, "9#")
        turn = await caller.until(calls.Turn)

    assert (turn.turn, turn.text) == (1, "[The caller keyed in: 9] Hello there.")
    assert len(stage.llm.prompts) == 1


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
async def test_a_scenario_presses_keys(stage: Stage, transport: Transport) -> None:
    stage.llm.replies = [LONG, "Done."]
    steps = (Key("47#"), WaitForAnswer("start"), Silence(300), Key("1", every_ms=100), Key("2#"), WaitForAnswer())
    scenario = Scenario(name="test", about="a test", steps=steps, transports=(transport,))
    start_s, numbers = time.monotonic(), itertools.count(1)
    async with stage.up() as base:
        url = base.replace("http", "ws") + "/v1/calls" if transport == "websocket" else f"{base}/v1/calls/rtc"
        venue = Venue(Dial(url, transport), Site(), lambda: time.monotonic() - start_s, lambda: next(numbers))
        course = await perform(scenario, Part({}, {}), venue, seed=0, scheduled_s=0.0)

    assert course.problems == []
    [act] = course.acts
    finals = [message["text"] for _, message in act.record.messages if message["type"] == "final"]
    assert finals == ["[The caller keyed in: 4 7]", "[The caller keyed in: 1 2]"]
    outcomes = [message["outcome"] for _, message in act.record.messages if message["type"] == "turn"]
    assert outcomes == ["interrupted", "answered"]


async def test_keys_are_in_no_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for library in ("websockets", "aiohttp", "uvicorn", "asyncio"):  # `wire.log` keeps these quiet
        logging.getLogger(library).setLevel(logging.WARNING)
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.Ready)
        await press(caller, "8642#")
        await caller.until(calls.Turn)
        await caller.connection.send('{"type":"dtmf","digits":8642}')
        error = await caller.until(calls.Error)
        await caller.until_closed()

    assert "8642" not in error.message
    assert any("turn 1 answered" in record.getMessage() for record in caplog.records)
    for secret in ("8642", "8 6 4 2"):
        assert not [record.getMessage() for record in caplog.records if secret in record.getMessage()]


async def test_keys_as_fast_as_a_program_are_one_attempt_each_quarter_of_a_second(stage: Stage) -> None:
    stage.llm.failure = "silent"
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.Ready)
        for _ in range(200):
            await press(caller, "#")
        await caller.until(calls.Final, lambda final: final.text.count("#") > 1)
        await caller.send(calls.Hangup())
        await caller.until(calls.Bye)

    assert len(stage.llm.prompts) <= 4
