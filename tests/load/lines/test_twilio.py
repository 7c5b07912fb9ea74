from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from load.lines.boundary import LineClosed, NoCall
from load.lines.twilio import MAX_MARKS, twilio_line
from load.speech.g711 import decode, encode
from tests.load.test_hearing import tone
from wire import calls
from wire.errors import PeerError

pytestmark = pytest.mark.slow
Agent = Callable[[ServerConnection, list[dict[str, Any]]], Awaitable[None]]


@contextlib.asynccontextmanager
async def agent(behave: Agent) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server of media streams; what it received, as it came."""
    received: list[dict[str, Any]] = []

    async def take(connection: ServerConnection) -> None:
        await behave(connection, received)

    async with serve(take, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/twilio", received


async def listen(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
    async for data in connection:
        received.append(json.loads(data))  # noqa: PERF401 - as they come


async def started(connection: ServerConnection, received: list[dict[str, Any]]) -> str:
    while True:
        received.append(json.loads(await connection.recv()))
        if received[-1]["event"] == "start":
            return str(received[-1]["streamSid"])


def media(stream: str, pcm: np.ndarray) -> str:
    payload = base64.b64encode(encode(pcm, "mulaw").tobytes()).decode()
    return json.dumps({"event": "media", "streamSid": stream, "media": {"payload": payload}})


async def test_the_caller_speaks_twilios_dialect() -> None:
    pcm = tone(0.04, 8000)
    async with agent(listen) as (url, received), twilio_line(url, {"name": "Ann"}) as line:
        await line.send_audio(pcm[:160])
        await line.send_audio(pcm[160:])
        _, ready = await line.receive()
        await line.send(calls.Hangup())
        _, bye = await line.receive()
        with pytest.raises(LineClosed):
            await line.receive()

    assert isinstance(ready, calls.Ready)
    assert bye == calls.Bye("hangup")
    connected, start, first, second, stop = received
    assert connected == {"event": "connected", "protocol": "Call", "version": "1.0.0"}
    assert start["start"]["mediaFormat"] == {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
    assert start["start"]["customParameters"] == {"name": "Ann"}
    assert start["streamSid"].startswith("MZ")
    assert len(start["streamSid"]) == 34
    assert [m["sequenceNumber"] for m in (start, first, second, stop)] == ["1", "2", "3", "4"]
    assert [(m["media"]["chunk"], m["media"]["timestamp"]) for m in (first, second)] == [("1", "0"), ("2", "20")]
    heard = decode(np.frombuffer(base64.b64decode(first["media"]["payload"]), np.uint8), "mulaw")
    assert np.abs(heard.astype(int) - pcm[:160]).max() < 400
    assert stop["event"] == "stop"
    assert stop["stop"] == {"accountSid": start["start"]["accountSid"], "callSid": start["start"]["callSid"]}


async def test_audio_is_heard_and_a_mark_comes_back_when_it_has_been_played() -> None:
    pcm = tone(0.2, 8000)
    times: list[float] = []

    async def speak(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
        stream = await started(connection, received)
        times.append(asyncio.get_running_loop().time())
        await connection.send(media(stream, pcm))
        await connection.send(json.dumps({"event": "mark", "streamSid": stream, "mark": {"name": "end"}}))
        async for data in connection:
            received.append(json.loads(data))
            if received[-1]["event"] == "mark":
                times.append(asyncio.get_running_loop().time())

    async with agent(speak) as (url, received), twilio_line(url, {}) as line:
        await line.receive()
        _, heard = await line.receive()
        listening = asyncio.create_task(line.receive())
        for _ in range(20):
            await line.send_audio(np.zeros(160, np.int16))
            await asyncio.sleep(0.02)
        listening.cancel()

    assert isinstance(heard, np.ndarray)
    assert heard.size == pcm.size
    assert [m["mark"]["name"] for m in received if m["event"] == "mark"] == ["end"]
    assert 0.15 < times[1] - times[0] < 2


async def test_a_clear_sends_pending_marks_back_at_once_and_is_told() -> None:
    async def clear(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
        stream = await started(connection, received)
        await connection.send(media(stream, tone(5.0, 8000)))
        await connection.send(json.dumps({"event": "mark", "streamSid": stream, "mark": {"name": "end"}}))
        await connection.send(json.dumps({"event": "clear", "streamSid": stream}))
        await listen(connection, received)

    async with agent(clear) as (url, received), twilio_line(url, {}) as line:
        await line.receive()
        await line.receive()
        _, cleared = await line.receive()
        await line.send(calls.Hangup())
    assert cleared == calls.Clear(0, 40000)
    assert [m["mark"]["name"] for m in received if m["event"] == "mark"] == ["end"]


@pytest.mark.parametrize(
    "message",
    [
        {"event": "media", "streamSid": "MZother", "media": {"payload": ""}},
        {"event": "media", "media": {"payload": "!"}},
        {"event": "media"},
        {"event": "dance"},
    ],
    ids=["another stream", "no base64", "no media", "unknown event"],
)
async def test_what_twilio_would_not_take_is_an_error(message: dict[str, Any]) -> None:
    async def send(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
        stream = await started(connection, received)
        await connection.send(json.dumps({"streamSid": stream, **message}))
        await listen(connection, received)

    async with agent(send) as (url, _), twilio_line(url, {}) as line:
        await line.receive()
        with pytest.raises(PeerError, match="31951"):
            await line.receive()


async def test_nobody_at_the_address_is_one_clear_line() -> None:
    with pytest.raises(NoCall, match="no call server"):
        async with twilio_line("ws://127.0.0.1:9/v1/twilio", {}):
            pass


async def test_a_caller_who_vanishes_says_nothing() -> None:
    lost: list[ConnectionClosed] = []

    async def take(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
        await started(connection, received)
        try:
            await connection.recv()
        except ConnectionClosed as closed:
            lost.append(closed)

    async with agent(take) as (url, _), twilio_line(url, {}) as line:
        await line.receive()
        await line.vanish()
        with pytest.raises(LineClosed):
            await line.receive()
    assert [closed.rcvd for closed in lost] == [None]


@pytest.mark.slow
async def test_marks_without_end_break_the_call_and_do_not_fill_the_memory() -> None:
    async def mark(connection: ServerConnection, received: list[dict[str, Any]]) -> None:
        stream = await started(connection, received)
        message = json.dumps({"event": "mark", "streamSid": stream, "mark": {"name": "m"}})
        for _ in range(MAX_MARKS + 1):
            await connection.send(message)
        await listen(connection, received)

    async with agent(mark) as (url, _), twilio_line(url, {}) as line:
        await line.receive()
        with pytest.raises(PeerError, match="marks wait"):
            await line.receive()
