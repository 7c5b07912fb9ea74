"""Scenarios played before an agent without a mind."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from load.caller import Speech
from load.dial import Dial
from load.errors import LoadError
from load.expectations import judge
from load.faults.site import Site
from load.faults.stages import LlmStall
from load.null_agent import NullAgent
from load.performance import Course, Venue, perform
from load.rehearsal import Part, in_order
from load.scenario import Echo, Scenario
from load.steps import (
    Backchannel,
    BargeIn,
    Converse,
    Dtmf,
    Expect,
    FaultNow,
    HangUp,
    Noise,
    Redial,
    Repeat,
    Say,
    Silence,
    Step,
    WaitForAnswer,
)
from tests.load.test_caller import OUTPUT_HZ, RATE_HZ, speech
from tests.load.test_hearing import silence, tone
from wire import calls
from wire.messages import encode

pytestmark = pytest.mark.slow


def part_of(scenario: Scenario) -> Part:
    speeches: dict[int, Sequence[Speech]] = {}
    sounds = {}
    for placed in in_order(scenario.steps):
        if isinstance(placed.step, Say | BargeIn | Backchannel):
            speeches[placed.number] = [speech(placed.step.utterance)]
        elif isinstance(placed.step, Converse):
            speeches[placed.number] = [speech(f"{placed.step.dialogue}/{i}") for i in (1, 2)]
        elif isinstance(placed.step, Noise | Dtmf):
            sounds[placed.number] = tone(0.2, RATE_HZ)
    return Part(speeches, sounds)


async def play(url: str, *steps: Step, seed: int = 0, begun_s: float = 0.0, **setting) -> Course:
    scenario = Scenario(name="test", about="a test", steps=steps, **setting)
    start_s, numbers = time.monotonic() - begun_s, itertools.count(1)
    venue = Venue(Dial(url, "websocket"), Site(), lambda: time.monotonic() - start_s, lambda: next(numbers))
    return await perform(scenario, part_of(scenario), venue, seed=seed, scheduled_s=0.0)


def told(course: Course) -> list[str]:
    return [f"{problem.where}: {problem.what}" for problem in course.problems]


async def test_steps_are_played_one_after_the_other() -> None:
    steps = (Say("a"), WaitForAnswer(), Silence(100), Say("b"), WaitForAnswer("start"), Expect(within_ms=700))
    async with NullAgent(tone(0.5, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, *steps)

    [act] = course.acts
    assert told(course) == []
    assert (act.record.outcome, [said.name for said in act.record.said]) == ("completed", ["a", "b"])
    [checkpoint] = act.checkpoints
    assert (checkpoint.step, checkpoint.num_said) == ("steps[5].expect", 2)
    assert act.record.said[1].start_s > act.record.said[0].end_s + 0.3 + 0.5


async def test_a_dialogue_is_one_step_with_many_turns() -> None:
    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, Converse("d", pause_ms=100))
    assert [said.name for said in course.acts[0].record.said] == ["d/1", "d/2"]


async def test_a_barge_in_speaks_into_the_answer_and_a_backchannel_does_not_ask() -> None:
    steps = (Say("a"), Backchannel("mm", after_ms=200), BargeIn("b", after_ms=900), WaitForAnswer("start"))
    async with NullAgent(tone(1.5, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, *steps)
    asked, humming, interrupting = course.acts[0].record.said
    assert told(course) == []
    assert (asked.is_barge_in, humming.is_backchannel, interrupting.is_barge_in) == (False, True, True)
    answered_s = asked.end_s + 0.3
    assert humming.start_s - answered_s == pytest.approx(0.3, abs=0.15)  # 0.1 s of it is the recording's own silence
    assert interrupting.start_s - answered_s == pytest.approx(1.0, abs=0.15)


async def test_an_answer_that_is_over_cannot_be_interrupted_and_the_rest_is_played() -> None:
    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, Say("a"), BargeIn("b", after_ms=1500), WaitForAnswer())
    [problem] = told(course)
    assert problem.startswith("steps[1].barge_in: nothing to speak over: the answer took")
    assert len(course.acts[0].record.said) == 2


async def test_a_barge_in_waits_for_a_pause_of_the_agent_to_end() -> None:
    answer = np.concatenate([tone(0.8, OUTPUT_HZ), silence(0.6, OUTPUT_HZ), tone(0.8, OUTPUT_HZ)])
    async with NullAgent(answer, answer_after_s=0.3).running() as url:
        course = await play(url, Say("a"), BargeIn("b", after_ms=900), WaitForAnswer("start"))
    asked, interrupting = course.acts[0].record.said
    assert told(course) == []
    begun_s = asked.end_s + 0.3
    assert interrupting.start_s - begun_s == pytest.approx(1.4 + 0.1, abs=0.1)  # 0.1 s is the recording's own silence


async def test_an_answer_that_ends_with_the_call_was_heard_to_its_end() -> None:
    async def say_goodbye(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(calls.Ready(1, "id", RATE_HZ, OUTPUT_HZ, "v", 0)))
        await asyncio.sleep(0.2)
        await connection.send(tone(0.3, OUTPUT_HZ).tobytes())
        await connection.send(encode(calls.Bye("idle")))

    async with serve(say_goodbye, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        course = await play(f"ws://127.0.0.1:{port}/v1/calls", WaitForAnswer(), Expect("end_of_call", within_ms=500))
    assert told(course) == []
    [act] = course.acts
    assert [checkpoint.step for checkpoint in act.checkpoints] == ["steps[1].expect"]


async def test_noise_and_keys_are_sent_and_are_no_utterances() -> None:
    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, Noise(200), Dtmf("12"), Say("a"), WaitForAnswer())
    record = course.acts[0].record
    assert [said.name for said in record.said] == ["a"]
    assert sum(pcm.size for _, pcm in record.sent) == pytest.approx((0.2 + 0.2 + 0.6) * RATE_HZ, rel=0.05)


@pytest.mark.parametrize("how", ["message", "vanish"])
async def test_a_redial_is_a_call_of_its_own(how) -> None:
    steps = (Repeat(2, (Say("a"), WaitForAnswer("start"), HangUp(how), Redial(50))), Say("b"), WaitForAnswer())
    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, *steps)
    assert told(course) == []
    records = [act.record for act in course.acts]
    assert [(record.number, record.outcome) for record in records] == [
        (1, "completed"),
        (2, "completed"),
        (3, "completed"),
    ]
    assert [[said.name for said in record.said] for record in records] == [["a"], ["a"], ["b"]]
    assert records[1].scheduled_s >= records[0].ended_s + 0.05


async def test_a_dead_line_sends_nothing_for_a_while() -> None:
    received: list[bytes | str] = []

    async def listen(connection: ServerConnection) -> None:
        await connection.send(encode(calls.Ready(1, "id", RATE_HZ, OUTPUT_HZ, "v", 0)))
        async for data in connection:
            received.append(data)  # noqa: PERF401 - as they come

    async with serve(listen, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        course = await play(
            f"ws://127.0.0.1:{port}/v1/calls", Silence(600, sends=False), Silence(200), HangUp("vanish")
        )
    assert told(course) == []
    num_audio = sum(isinstance(data, bytes) for data in received)
    assert 0 < num_audio <= 0.5 / 0.02  # 200 ms of it, and what left before the line was dead; not 800 ms


async def test_a_call_that_the_server_ends_is_told_once_and_expectations_go_on() -> None:
    async def leave(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(calls.Ready(1, "id", RATE_HZ, OUTPUT_HZ, "v", 0)))
        await connection.send(encode(calls.Bye("failed")))

    async with serve(leave, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        steps = (Silence(200), Expect("end_of_call", within_ms=500), Say("a"), Say("b"))
        course = await play(f"ws://127.0.0.1:{port}/v1/calls", *steps)
    [act] = course.acts
    assert act.record.outcome == "broken"
    assert [checkpoint.step for checkpoint in act.checkpoints] == ["steps[1].expect"]
    assert told(course) == ["steps[2].say: the call was over: the server ended the call: failed"]


async def test_a_refused_call_plays_nothing_and_says_when_to_come_back() -> None:
    async def refuse(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(calls.Error("busy", "all lines are taken", retry_after_ms=2000)))
        await connection.close(1013, "busy")

    async with serve(refuse, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        course = await play(f"ws://127.0.0.1:{port}/v1/calls", Say("a"), HangUp(), Redial(10), Say("b"))
    [act] = course.acts
    assert (act.record.outcome, act.record.retry_after_s) == ("refused", 2.0)
    assert told(course) == ["steps[0].say: refused: all lines are taken"]


async def test_a_scenario_that_does_not_end_is_ended() -> None:
    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3).running() as url:
        course = await play(url, Silence(60_000), limit_ms=300.0)
    assert told(course) == ["steps[0].silence: not over after 0.3 s"]
    record = course.acts[0].record
    assert (record.outcome, record.reason) == ("broken", "not over after 0.3 s")
    assert record.ended_s is not None


async def test_a_fault_that_cannot_be_had_is_an_error_and_no_result() -> None:
    async with NullAgent(tone(0.3, OUTPUT_HZ)).running() as url:
        with pytest.RaisesGroup(pytest.RaisesExc(LoadError, match="llm_stall"), flatten_subgroups=True):
            await play(url, FaultNow(LlmStall()))


async def test_an_echo_reaches_the_server() -> None:
    """An agent that answers loud sound answers its own echo."""
    agent = NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.3)
    async with agent.running() as url:
        steps = (Say("a"), WaitForAnswer("start"), Silence(1600))  # it never ends: its echo is answered too
        once = await play(url, *steps)
        twice = await play(url, *steps, echo=Echo(level_db=0.0, delay_ms=100.0))
    assert sum(m["type"] == "turn" for _, m in once.acts[0].record.messages) == 1
    assert sum(m["type"] == "turn" for _, m in twice.acts[0].record.messages) >= 2


async def test_a_greeting_is_waited_for_however_long_the_run_has_gone_on() -> None:
    async def greet(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(calls.Ready(1, "", RATE_HZ, OUTPUT_HZ, "", 0)))
        num_heard = 0
        async for data in connection:
            num_heard += isinstance(data, bytes)
            if num_heard == 25:
                await connection.send(tone(0.4, OUTPUT_HZ).tobytes())
            if isinstance(data, str) and "hangup" in data:
                await connection.send(encode(calls.Bye("hangup")))
                return

    async with serve(greet, "127.0.0.1", 0) as server:
        url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/v1/calls"
        course = await play(url, Expect("speech", within_ms=8000.0), begun_s=100.0)
    [act] = course.acts
    assert [verdict.passed for verdict in judge(act.record, act.checkpoints)] == [True]
