"""The whole service with the real voice over real sockets."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import numpy as np
import pytest

from tests.tts_engine.client import connected, speaking
from tts_engine.engine import MAX_OPEN_UTTERANCES, Engine
from tts_engine.scheduler import MAX_UNSENT_CHUNKS
from tts_engine.session import MAX_UTTERANCE_CHARACTERS
from wire import speak

pytestmark = pytest.mark.slow


TEXT = "Thank you for calling. How can I help you today?"


LONG = "This is a long sentence about nothing in particular, said to fill the line with speech. " * 1140  # 100 kB


async def test_words_come_before_their_audio_and_cover_the_text(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, TEXT)
        done = await client.until(speak.Done, 1)

    heard = client.heard[1]
    assert isinstance(done, speak.Done)
    assert heard.order[0] == "words"
    assert heard.order[-1] == "done"
    assert done.samples == heard.audio.size
    assert done.ttfa_ms is not None
    assert [TEXT[w.start_char : w.end_char] for w in heard.words] == TEXT.replace(".", "").replace("?", "").split()
    starts = [w.start_sample for w in heard.words]
    assert starts == sorted(starts)
    assert all(w.start_sample < w.end_sample <= done.samples for w in heard.words)


async def test_deltas_are_spoken_as_the_whole_text_is(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, TEXT)
        await client.until(speak.Done, 1)
        for i in range(0, len(TEXT), 3):
            await client.send(speak.Text(2, TEXT[i : i + 3]))
        await client.send(speak.End(2))
        await client.until(speak.Done, 2)

    assert np.array_equal(client.heard[1].audio, client.heard[2].audio)
    assert client.heard[1].words == client.heard[2].words


async def test_flush_speaks_before_the_sentence_ends(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(speak.Text(1, "Let me see"), speak.Flush(1))
        await client.until_audio(1)
        await client.send(speak.Text(1, ", one moment."), speak.End(1))
        await client.until(speak.Done, 1)

    assert [w.text for w in client.heard[1].words] == ["Let", "me", "see", "one", "moment"]
    assert client.heard[1].words[-1].end_char == len("Let me see, one moment")


async def test_no_audio_after_cancelled(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(speak.Text(1, LONG[:20_000]), speak.Flush(1))
        await client.until_audio(1)
        await client.send(speak.Cancel(1))
        await client.until(speak.Cancelled, 1)
        await client.say(2, "Goodbye.")
        await client.until(speak.Done, 2)

    assert client.heard[1].order[-1] == "cancelled"
    assert client.heard[2].audio.size > 0


async def test_cancelling_what_is_done_is_no_error(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, "Yes.")
        await client.until(speak.Done, 1)
        await client.send(speak.Cancel(1))

        assert await client.receive() == speak.Cancelled(1)


async def test_utterances_of_a_connection_are_spoken_in_order(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(speak.Text(1, "First. "), speak.Text(2, "Second."), speak.End(2))
        await client.send(speak.Text(1, "Still first."), speak.End(1))
        order = []
        while len(order) < 2:
            message = await client.receive()
            if isinstance(message, speak.Done):
                order.append(message.utterance)

    assert order == [1, 2]


@pytest.mark.parametrize("text", ["", "   \n", "😀🎉", "***", "...", "한국어"])
async def test_nothing_to_say_is_done_without_audio(engine: Engine, text: str):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, text)
        done = await client.until(speak.Done, 1)

    assert isinstance(done, speak.Done)
    assert (done.samples, done.ttfa_ms) == (0, None)
    assert client.heard[1].order == ["done"]


async def test_same_seed_same_audio_other_seed_other_audio(engine: Engine):
    audio = []
    async with speaking(engine) as base:
        for seed in (1, 1, 2):
            async with connected(base, speak.Hello(version=1, seed=seed)) as client:
                await client.say(1, TEXT)
                await client.until(speak.Done, 1)
                audio.append(client.heard[1].audio)

    assert np.array_equal(audio[0], audio[1])
    assert not np.array_equal(audio[0], audio[2])


async def test_twice_the_speed_is_about_half_as_long(engine: Engine):
    sizes = []
    async with speaking(engine) as base:
        for speed in (1.0, 2.0):
            async with connected(base, speak.Hello(version=1, speed=speed)) as client:
                await client.say(1, TEXT)
                await client.until(speak.Done, 1)
                sizes.append(client.heard[1].audio.size)

    assert 0.35 < sizes[1] / sizes[0] < 0.75


async def test_a_long_text_does_not_hold_up_another_caller(engine: Engine):
    async with speaking(engine) as base, connected(base) as long, connected(base) as short:
        await long.say(1, LONG[:50_000])
        await long.until_audio(1)
        await short.say(1, TEXT)
        await short.until(speak.Done, 1)
        await long.until_audio(1)

        assert "done" not in long.heard[1].order


async def test_a_reader_that_stops_does_not_stall_the_other(engine: Engine):
    async with speaking(engine) as base, connected(base) as stopped, connected(base) as other:
        await stopped.say(1, LONG)
        for number in range(1, 6):
            await other.say(number, TEXT)
            await other.until(speak.Done, number)

        assert other.heard[5].audio.size > 0


async def test_100_kb_of_text_are_taken_and_can_be_cancelled(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, LONG)
        for _ in range(2 * MAX_UNSENT_CHUNKS):
            await client.until_audio(1)
        await client.send(speak.Cancel(1))
        await client.until(speak.Cancelled, 1)

    assert len(LONG) > 100_000
    assert client.heard[1].words[0].start_char == 0


async def test_too_much_text_is_refused_and_the_connection_lives(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(speak.Text(1, " " * MAX_UTTERANCE_CHARACTERS), speak.Text(1, "x"))
        error = await client.until(speak.Error, 1)
        await client.say(2, "Yes.")
        await client.until(speak.Done, 2)

    assert isinstance(error, speak.Error)
    assert error.code == "too_large"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([speak.Flush(1)], "unknown_utterance"),
        ([speak.End(7)], "unknown_utterance"),
        ([speak.Cancel(3)], "unknown_utterance"),
        ([speak.Text(1, "a"), speak.End(1), speak.Text(1, "b")], "utterance_closed"),
        ([speak.Text(5, "a"), speak.Cancel(5), speak.Text(5, "b")], "utterance_closed"),
        ([speak.Text(5, "a"), speak.Text(4, "b")], "utterance_closed"),
        ([speak.Text(-1, "a")], "bad_message"),
        ([speak.Text(1 << 32, "a")], "bad_message"),
        ([speak.Text(1, "a", -5)], "bad_message"),
        ([speak.Text(i, "a") for i in range(MAX_OPEN_UTTERANCES + 1)], "too_many_utterances"),
    ],
)
async def test_a_wrong_utterance_is_an_error_of_its_own(engine: Engine, messages: list[speak.ClientMessage], code: str):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(*messages)
        error = await client.until(speak.Error)
        assert isinstance(error, speak.Error)
        assert (error.code, error.utterance) == (code, messages[-1].utterance)  # type: ignore[union-attr]
        pong = await client.connection.ping()
        await pong  # it lives


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ('{"type":"hello","version":1,"voice":"nobody"}', None, "unknown_voice"),
        ('{"type":"hello","version":1,"speed":2.5}', None, "bad_speed"),
        ('{"type":"hello","version":1,"speed":0}', None, "bad_speed"),
        ('{"type":"hello","version":9}', None, "bad_version"),
        ('{"type":"text","utterance":1,"delta":"a"}', None, "no_hello"),
        ('{"type":"hello","version":1}', b"\0\0", "bad_request"),
        ('{"type":"hello","version":1}', '{"type":"hello","version":1}', "bad_message"),
        ('{"type":"hello","version":1}', '{"type":"txt"}', "bad_message"),
        ('{"type":"hello","version":1}', "garbage", "bad_json"),
    ],
)
async def test_a_broken_protocol_closes_the_connection(
    engine: Engine, first: str, second: str | bytes | None, code: str
):
    async with (
        speaking(engine) as base,
        aiohttp.ClientSession(base) as http,
        http.ws_connect("/v1/speak") as socket,
    ):
        await socket.send_str(first)
        if second is not None:
            await socket.receive_str()
            await (socket.send_bytes(second) if isinstance(second, bytes) else socket.send_str(second))
        error = json.loads(await socket.receive_str())
        closing = await socket.receive()

    assert (error["type"], error["code"]) == ("error", code)
    assert closing.data == 1008


async def test_a_deadline_that_cannot_be_met_fails_before_any_audio(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.say(1, TEXT, deadline_ms=1)
        error = await client.until(speak.Error, 1)
        await client.say(2, "Yes.", deadline_ms=20_000)
        await client.until(speak.Done, 2)

    assert isinstance(error, speak.Error)
    assert error.code == "deadline_exceeded"
    assert client.heard[1].order == ["error"]


async def test_a_text_that_is_never_flushed_meets_its_deadline(engine: Engine):
    async with speaking(engine) as base, connected(base) as client:
        await client.send(speak.Text(1, "And then", 200))
        error = await client.until(speak.Error, 1)
        await client.send(speak.Text(1, " he said."), speak.Text(2, "a"), speak.End(2))  # the first is too late

        assert isinstance(error, speak.Error)
        assert error.code == "deadline_exceeded"
        assert await client.until(speak.Done, 2)
        assert client.heard[1].order == ["error"]


async def test_one_utterance_too_many_is_told_when_to_come_back(speaker, engine: Engine):
    small = Engine({"joe": speaker}, max_waiting=1)
    async with speaking(small) as base, connected(base) as client:
        for number in range(1, 4):
            await client.send(speak.Text(number, f"{number}. {TEXT}"), speak.End(number))
        error = await client.until(speak.Error)
        await client.until(speak.Done, 1)

    assert isinstance(error, speak.Error)
    assert error.code == "overloaded"
    assert error.retry_after_ms is not None
    assert error.retry_after_ms > 0


async def test_connections_beyond_the_limit_are_refused(engine: Engine):
    async with speaking(engine, max_connections=1) as base, connected(base), aiohttp.ClientSession() as http:
        async with http.ws_connect(base + "/v1/speak") as second:
            error = json.loads(await second.receive_str())
            closing = await second.receive()
        async with http.post(base + "/v1/audio/speech", json={"input": TEXT}) as response:
            assert response.status == 429
            assert int(response.headers["retry-after"]) >= 1

    assert error["code"] == "overloaded"
    assert closing.data == 1013


async def test_a_client_that_vanishes_frees_the_voice(engine: Engine):
    async with speaking(engine) as base:
        async with connected(base) as client:
            await client.say(1, LONG)
            await client.until_audio(1)
            client.connection.transport.abort()
        async with connected(base) as client:
            await client.say(1, "Yes.")
            await client.until(speak.Done, 1)
        async with aiohttp.ClientSession() as http, asyncio.timeout(10):
            while (await (await http.get(base + "/health")).json())["connections"]:
                pass
