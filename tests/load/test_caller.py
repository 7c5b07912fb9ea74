from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from load.caller import MAX_AHEAD_S, MAX_MESSAGES, Caller, Speech
from load.lines.boundary import Received
from load.lines.websocket import websocket_line
from load.measure import turns
from load.null_agent import NullAgent
from load.record import CallRecord
from tests.load.test_hearing import silence, tone
from wire import calls
from wire.messages import PROTOCOL_VERSION, encode
from wire.pcm import Pcm16

pytestmark = pytest.mark.slow
RATE_HZ, OUTPUT_HZ = 16000, 24000


def speech(name: str, length_s: float = 0.4) -> Speech:
    pcm = np.concatenate([silence(0.1, RATE_HZ), tone(length_s, RATE_HZ), silence(0.1, RATE_HZ)])
    return Speech(name, f"text of {name}", pcm, RATE_HZ // 10, RATE_HZ // 10 + round(length_s * RATE_HZ))


async def call(url: str, script, number: int = 0) -> CallRecord:
    start_s = time.monotonic()
    record = CallRecord(number, "test", "websocket", 0, RATE_HZ, OUTPUT_HZ, scheduled_s=0.0, placed_s=0.0)
    async with websocket_line(url, calls.Hello(1, RATE_HZ, OUTPUT_HZ, greeting=False), None) as line:
        caller = Caller(line, record, lambda: time.monotonic() - start_s)
        await caller.run(script(caller))
    return record


async def two_turns(caller: Caller) -> None:
    for name in ("one", "two"):
        caller.say(speech(name))
        await caller.until_said()
        assert await caller.until_audible(caller.record.said[-1].end_s, 5.0)
        assert await caller.until_quiet(0.3, 5.0)
    await caller.hang_up()


async def test_a_call_is_recorded_as_it_was_spoken_and_heard() -> None:
    agent = NullAgent(tone(0.5, OUTPUT_HZ), answer_after_s=0.4)
    async with agent.running() as url:
        record = await call(url, two_turns)

    assert (record.outcome, record.reason) == ("completed", "")
    assert [said.name for said in record.said] == ["one", "two"]
    assert all(said.end_s - said.start_s == pytest.approx(0.4, abs=0.06) for said in record.said)
    found = turns(record)
    assert [turn.outcome for turn in found] == ["answered", "answered"]
    assert all(turn.latency_s == pytest.approx(0.4, abs=0.1) for turn in found)
    assert all(turn.server_latency_s is not None and not turn.is_misreported for turn in found)


async def test_forty_callers_at_once_are_all_heard() -> None:
    agent = NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=0.4)
    async with agent.running() as url:
        records = await asyncio.gather(*(call(url, two_turns, number) for number in range(40)))

    assert {record.outcome for record in records} == {"completed"}
    assert [len(turns(record)) for record in records] == [2] * 40
    assert {turn.outcome for record in records for turn in turns(record)} == {"answered"}


async def test_a_server_that_goes_away_breaks_the_call_and_keeps_the_record() -> None:
    async def talk_on(caller: Caller) -> None:
        caller.say(speech("one", 5.0))
        await caller.until_said()

    agent = NullAgent(tone(0.3, OUTPUT_HZ))
    async with agent.running() as url:
        calling = asyncio.create_task(call(url, talk_on))
        await asyncio.sleep(0.5)
    record = await calling
    assert record.outcome == "broken"
    assert "closed" in record.reason
    assert record.sent


async def test_nobody_who_answers_is_told_by_the_script() -> None:
    async def ask(caller: Caller) -> None:
        caller.say(speech("one"))
        await caller.until_said()
        assert not await caller.until_audible(caller.record.said[-1].end_s, 0.5)
        await caller.hang_up()

    async with NullAgent(tone(0.3, OUTPUT_HZ), answer_after_s=3.0).running() as url:
        record = await call(url, ask)
    [turn] = turns(record)
    assert (record.outcome, turn.outcome) == ("completed", "missed")


async def call_of(answer, script) -> CallRecord:
    """One call to a server that is ready and then does `answer`."""

    async def take(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(encode(calls.Ready(PROTOCOL_VERSION, "", RATE_HZ, OUTPUT_HZ, "", 0)))
        await answer(connection)
        await connection.wait_closed()

    async with serve(take, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        return await call(f"ws://127.0.0.1:{port}/v1/calls", script)


async def wait(caller: Caller) -> None:
    await asyncio.sleep(30)


class Babble:
    """A line over which messages come without end: a socket's own buffers would lose it before."""

    counts_samples = False

    async def send_audio(self, pcm: Pcm16) -> None:
        return

    async def send(self, message: calls.ClientMessage) -> None:
        return

    async def vanish(self) -> None:
        return

    async def receive(self) -> Received:
        await asyncio.sleep(0)
        return time.monotonic(), calls.State("thinking", 1)


async def test_a_server_that_sends_audio_without_end_breaks_the_call_and_does_not_fill_the_memory() -> None:
    async def pour(connection: ServerConnection) -> None:
        piece = bytes(2 * 60 * OUTPUT_HZ)
        while True:
            await connection.send(piece)

    record = await call_of(pour, wait)
    assert (record.outcome, "ahead of real time" in record.reason) == ("broken", True)
    assert sum(pcm.size for _, pcm in record.heard) <= (MAX_AHEAD_S + 61) * OUTPUT_HZ


async def test_a_server_that_tells_without_end_breaks_the_call_and_does_not_fill_the_memory() -> None:
    record = CallRecord(0, "test", "websocket", 0, RATE_HZ, OUTPUT_HZ, scheduled_s=0.0, placed_s=0.0)
    record.ready_s = 0.0
    caller = Caller(Babble(), record, time.monotonic)
    await caller.run(wait(caller))
    assert (record.outcome, "messages" in record.reason) == ("broken", True)
    assert len(record.messages) == MAX_MESSAGES


async def test_a_connection_that_the_caller_gave_up_says_why() -> None:
    async def send_garbage(connection: ServerConnection) -> None:
        connection.transport.write(b"\xff\xff\xff\xff")

    record = await call_of(send_garbage, wait)
    assert record.outcome == "broken"
    assert "given up: " in record.reason
    assert record.reason != "the line was closed: the connection was given up: "
