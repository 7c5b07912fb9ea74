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

from load.lines.boundary import Line, LineClosed, NoCall
from load.lines.realtime import RATE_HZ, realtime_line
from tests.load.test_hearing import tone
from wire import calls
from wire.errors import PeerError

HELLO = calls.Hello(1, RATE_HZ, RATE_HZ)
DEADLINE_S = 5.0


class Session:
    """The server's end of one session: what it received, and what it sends by the protocol's names."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.received: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.connection.send(json.dumps({"event_id": "event_1", "type": kind, **fields}))

    async def open(self) -> None:
        await self.send("session.created", session={"type": "realtime"})
        update = await self.next("session.update")
        await self.send("session.updated", session=update["session"])

    async def next(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                event = json.loads(await self.connection.recv())
                self.received.append(event)
                if event["type"] == kind:
                    return dict(event)

    async def audio(self, pcm: np.ndarray, item: str = "item_a", kind: str = "response.output_audio.delta") -> None:
        await self.send(
            kind,
            response_id="resp_1",
            item_id=item,
            output_index=0,
            content_index=0,
            delta=base64.b64encode(pcm.astype("<i2").tobytes()).decode(),
        )

    async def hear(self, item: str) -> None:
        await self.send("input_audio_buffer.speech_started", audio_start_ms=0, item_id=item)

    async def commit(self, item: str) -> None:
        await self.send("input_audio_buffer.speech_stopped", audio_end_ms=900, item_id=item)
        await self.send("input_audio_buffer.committed", item_id=item, previous_item_id=None)

    async def transcribe(self, item: str, transcript: str) -> None:
        kind = "conversation.item.input_audio_transcription.completed"
        usage = {"type": "duration", "seconds": 0.9}
        await self.send(kind, item_id=item, content_index=0, transcript=transcript, usage=usage)

    async def respond(self, response: str, text: str, kind: str = "response.output_audio_transcript.delta") -> None:
        await self.send("response.created", response={"id": response, "status": "in_progress"})
        await self.send(kind, response_id=response, item_id="item_a", output_index=0, content_index=0, delta=text)

    async def done(self, response: str, status: str = "completed") -> None:
        await self.send("response.done", response={"id": response, "status": status, "output": []})


@contextlib.asynccontextmanager
async def server(behave: Callable[[Session], Awaitable[None]]) -> AsyncIterator[str]:
    async def take(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            await behave(Session(connection))

    async with serve(take, "127.0.0.1", 0) as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/realtime?model=test"


@contextlib.asynccontextmanager
async def session(hello: calls.Hello = HELLO, key: str | None = None) -> AsyncIterator[tuple[Session, Line]]:
    """One that stands, and whose caller knows."""
    opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def behave(session: Session) -> None:
        await session.open()
        opened.set_result(session)
        await over.wait()

    async with server(behave) as url, realtime_line(url, hello, key) as line:
        assert isinstance(await received(line), calls.Ready)
        try:
            yield await opened, line
        finally:
            over.set()


async def received(line: Line) -> calls.ServerMessage | np.ndarray:
    async with asyncio.timeout(DEADLINE_S):
        return (await line.receive())[1]


async def all_of(line: Line, number: int) -> list[Any]:
    return [await received(line) for _ in range(number)]


async def test_the_session_is_asked_for_our_format_before_the_call_is_ready() -> None:
    async with session(calls.Hello(1, RATE_HZ, RATE_HZ, language="de", voice="marin"), "secret") as (server, _):
        (update,) = server.received
        assert server.connection.request is not None
        assert server.connection.request.headers["authorization"] == "Bearer secret"
    pcm = {"type": "audio/pcm", "rate": 24000}
    assert update["session"] == {
        "type": "realtime",
        "output_modalities": ["audio"],
        "audio": {
            "input": {"format": pcm, "transcription": {"language": "de"}},
            "output": {"format": pcm, "voice": "marin"},
        },
    }


async def test_a_model_that_transcribes_the_caller_is_asked_for_by_name() -> None:
    asked: list[dict[str, Any]] = []

    async def behave(session: Session) -> None:
        await session.open()
        asked.extend(session.received)
        await session.connection.wait_closed()

    async with server(behave) as url, realtime_line(url, HELLO, None, transcription_model="whisper-1"):
        pass
    assert asked[0]["session"]["audio"]["input"]["transcription"] == {"language": "en", "model": "whisper-1"}


async def test_audio_goes_both_ways() -> None:
    pcm = tone(0.2, RATE_HZ)
    async with session() as (server, line):
        await line.send_audio(pcm)
        append = await server.next("input_audio_buffer.append")
        await server.audio(pcm)
        heard = await received(line)
    assert np.array_equal(np.frombuffer(base64.b64decode(append["audio"]), "<i2"), pcm)
    assert isinstance(heard, np.ndarray)
    assert np.array_equal(heard, pcm)


async def test_what_comes_before_the_session_stands_is_not_lost() -> None:
    pcm = tone(0.1, RATE_HZ)

    async def greet(session: Session) -> None:
        await session.send("session.created", session={})
        await session.send("conversation.created", conversation={"id": "conv_1"})
        await session.audio(pcm)
        await session.next("session.update")
        await session.send("session.updated", session={})
        await session.connection.wait_closed()

    async with server(greet) as url, realtime_line(url, HELLO, None) as line:
        ready, heard = await all_of(line, 2)
    assert isinstance(ready, calls.Ready)
    assert np.array_equal(heard, pcm)


async def test_a_turn_is_told_from_its_first_word_to_the_end_of_its_answer() -> None:
    async with session() as (server, line):
        await server.hear("item_u")
        await server.commit("item_u")
        await server.respond("resp_1", " Half past nine.")
        await server.transcribe("item_u", "What time do you open?\n")
        await server.done("resp_1")
        told = await all_of(line, 5)
    assert told == [
        calls.State("hearing", 1),
        calls.State("thinking", 1),
        calls.Reply(1, " Half past nine."),
        calls.Final(1, "What time do you open?"),
        calls.Turn(1, "answered", "What time do you open?", "Half past nine."),
    ]


async def test_a_transcript_that_comes_late_still_belongs_to_its_turn() -> None:
    async with session() as (server, line):
        await server.commit("item_u")
        await server.commit("item_v")
        await server.transcribe("item_u", "One.")
        await server.transcribe("item_v", "Two.")
        told = await all_of(line, 4)
    assert told[2:] == [calls.Final(1, "One."), calls.Final(2, "Two.")]


async def test_a_response_that_ends_after_the_next_turn_began_still_answers_its_own() -> None:
    async with session() as (server, line):
        await server.commit("item_u")
        await server.respond("resp_1", "Yes, ")
        await server.commit("item_v")
        await server.respond("resp_2", "Two.")
        await server.done("resp_1", "cancelled")
        await server.done("resp_2", "incomplete")
        told = await all_of(line, 6)
    assert told[1] == calls.Reply(1, "Yes, ")
    assert told[3:] == [calls.Reply(2, "Two."), calls.Turn(1, "interrupted", "", ""), calls.Turn(2, "failed", "", "")]


async def test_a_greeting_is_no_turn() -> None:
    async with session() as (server, line):
        await server.respond("resp_0", "Hello.")
        await server.done("resp_0")
        await server.hear("item_u")
        assert await all_of(line, 2) == [calls.Reply(0, "Hello."), calls.State("hearing", 1)]


async def test_a_barge_in_drops_what_was_not_played_and_tells_how_much_was() -> None:
    async with session() as (server, line):
        await server.commit("item_u")
        await server.audio(tone(30.0, RATE_HZ), "item_a")
        await server.audio(tone(5.0, RATE_HZ), "item_b")
        await all_of(line, 3)
        await server.hear("item_v")
        assert await all_of(line, 2) == [calls.Clear(1, 0), calls.State("hearing", 2)]
        first = await server.next("conversation.item.truncate")
        second = await server.next("conversation.item.truncate")
        await server.audio(tone(0.1, RATE_HZ), "item_b")  # it was on its way
        await server.audio(tone(0.2, RATE_HZ), "item_c")
        heard = await received(line)
    assert (first["item_id"], first["content_index"]) == ("item_a", 0)
    assert 0 <= first["audio_end_ms"] < 1000 * DEADLINE_S
    assert (second["item_id"], second["audio_end_ms"]) == ("item_b", 0)
    assert isinstance(heard, np.ndarray)
    assert heard.size == round(0.2 * RATE_HZ)


async def test_a_caller_who_speaks_into_silence_truncates_nothing() -> None:
    async with session() as (server, line):
        await server.hear("item_u")
        assert await received(line) == calls.State("hearing", 1)
        await line.send_audio(tone(0.02, RATE_HZ))
        await server.next("input_audio_buffer.append")
        assert [event["type"] for event in server.received] == ["session.update", "input_audio_buffer.append"]


async def test_the_names_of_the_beta_are_understood() -> None:
    async with session() as (server, line):
        await server.commit("item_u")
        await server.respond("resp_1", "Yes.", "response.audio_transcript.delta")
        await server.audio(tone(0.1, RATE_HZ), kind="response.audio.delta")
        told = await all_of(line, 3)
    assert told[1] == calls.Reply(1, "Yes.")
    assert isinstance(told[2], np.ndarray)


async def test_an_error_within_the_session_is_told_and_does_not_end_it() -> None:
    async with session() as (server, line):
        await server.send("error", error={"type": "invalid_request_error", "code": None, "message": "no such item"})
        error = {"type": "server_error", "code": "overloaded", "message": "no transcript"}
        await server.send("conversation.item.input_audio_transcription.failed", item_id="item_u", error=error)
        await server.hear("item_u")
        told = await all_of(line, 3)
    assert told == [
        calls.Error("error", "no such item"),
        calls.Error("overloaded", "no transcript"),
        calls.State("hearing", 1),
    ]


async def test_events_that_say_nothing_to_a_caller_are_passed_over() -> None:
    async with session() as (server, line):
        await server.send("rate_limits.updated", rate_limits=[])
        await server.send("response.output_item.added", item={})
        await server.send("of.a.later.version")
        await server.hear("item_u")
        assert await received(line) == calls.State("hearing", 1)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("response.output_audio.delta", {"item_id": "a", "content_index": 0, "delta": "no base64!"}),
        ("response.output_audio.delta", {"delta": ""}),
        ("response.output_audio.delta", {"item_id": ["a"], "content_index": 0, "delta": ""}),
        ("response.output_audio_transcript.delta", {"response_id": "r", "delta": 5}),
        ("input_audio_buffer.committed", {}),
        ("conversation.item.input_audio_transcription.completed", {"item_id": "a", "transcript": None}),
        ("response.created", {"response": "r"}),
        ("response.done", {"response": {"id": "r"}}),
        ("error", {"error": "oh"}),
    ],
)
async def test_a_malformed_event_is_an_error_that_names_it(kind: str, fields: dict[str, Any]) -> None:
    async with session() as (server, line):
        await server.send(kind, **fields)
        with pytest.raises(PeerError, match=f"malformed {kind}"):
            await received(line)


@pytest.mark.parametrize("data", ["[]", "{", '{"type": 5}', "{}"])
async def test_what_is_no_event_is_an_error(data: str) -> None:
    async with session() as (server, line):
        await server.connection.send(data)
        with pytest.raises(PeerError):
            await received(line)


async def test_a_server_that_closes_ends_the_line() -> None:
    async with session() as (server, line):
        await server.connection.close(1001, "going away")
        with pytest.raises(LineClosed, match="1001 going away"):
            await received(line)


async def test_hanging_up_closes_the_connection_and_is_a_goodbye() -> None:
    async with session() as (server, line):
        await line.send(calls.Hangup())
        assert await received(line) == calls.Bye("hangup")
        with pytest.raises(LineClosed):
            await received(line)
        assert server.connection.close_code == 1000


async def test_a_caller_who_vanishes_says_nothing() -> None:
    async with session() as (server, line):
        await line.vanish()
        with pytest.raises(LineClosed):
            await received(line)
        await server.connection.wait_closed()
        assert server.connection.close_code == 1006


async def refuse(session: Session) -> None:
    await session.send("error", error={"type": "invalid_request_error", "message": "no model of that name"})


async def refuse_the_format(session: Session) -> None:
    await session.send("session.created", session={})
    await session.next("session.update")
    await session.send("error", error={"message": "no voice of that name"})


async def close_at_once(session: Session) -> None:
    await session.connection.close(1008, "not today")


async def speak_another_protocol(session: Session) -> None:
    await session.connection.send("hello")


async def babble(session: Session) -> None:
    for _ in range(100):
        await session.send("ping")


@pytest.mark.parametrize(
    ("behave", "says"),
    [
        (refuse, "refused the session: no model of that name"),
        (refuse_the_format, "refused the session: no voice of that name"),
        (close_at_once, "closed the session: code 1008 not today"),
        (speak_another_protocol, "speaks another protocol"),
        pytest.param(babble, "speaks another protocol", marks=pytest.mark.slow),
    ],
)
async def test_a_session_that_does_not_begin_is_one_clear_line(
    behave: Callable[[Session], Awaitable[None]], says: str
) -> None:
    async with server(behave) as url:
        with pytest.raises(NoCall, match=says):
            async with realtime_line(url, HELLO, None):
                pass


async def test_nobody_at_the_address_is_one_clear_line() -> None:
    with pytest.raises(NoCall, match="no call server"):
        async with realtime_line("ws://127.0.0.1:9/v1/realtime?model=test", HELLO, None):
            pass
