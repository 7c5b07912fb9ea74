"""`WS /v1/listen` over real sockets with the real models."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import aiohttp
import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from load.alignment import word_error_rate
from stt.connection import MAX_PENDING
from stt.recognition import Models
from stt.service import build
from stt.stream import MAX_UTTERANCE_S
from tests.serving import serving
from tests.speech import RATE_HZ, clip, silence, tone, white_noise
from tests.stt.conftest import CONFIG
from tests.stt.listener import connected, listening
from wire import listen
from wire.messages import encode
from wire.service import Lifecycle

FOX, FOX_TEXT = clip("quick_brown_fox")
HELLO, HELLO_TEXT = clip("hello_world")


@pytest.mark.slow
async def test_an_utterance_is_finalized_with_its_range_and_id(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Finalize(7))
        final = await listener.next(listen.Final)
    assert word_error_rate(FOX_TEXT, final.text) == 0
    assert (final.id, final.start_sample, final.end_sample) == (7, 0, FOX.size)
    assert final.compute_ms > 0
    assert final.words is None


@pytest.mark.slow
async def test_one_connection_recognises_utterance_after_utterance(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(np.concatenate([FOX, HELLO]))
        await listener.send(listen.Finalize(1, FOX.size))
        first = await listener.next(listen.Final)
        await listener.send(listen.Finalize(2))
        second = await listener.next(listen.Final)
    assert word_error_rate(FOX_TEXT, first.text) == 0
    assert word_error_rate(HELLO_TEXT, second.text) == 0
    assert (second.start_sample, second.end_sample) == (FOX.size, FOX.size + HELLO.size)
    assert second.revision > first.revision


@pytest.mark.slow
async def test_a_finalize_takes_the_result_of_its_speculation(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1))
        speculation = await listener.next(listen.Speculation)
        await listener.feed(silence(0.3))  # sent meanwhile: does not change what was asked
        await listener.send(listen.Finalize(2, speculation.end_sample))
        final = await listener.next(listen.Final)
    assert speculation.compute_ms > 0
    assert final.compute_ms == 0
    assert final.text == speculation.text
    assert final.revision > speculation.revision


@pytest.mark.slow
async def test_a_finalize_waits_for_its_speculation_and_does_not_compute_twice(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1))
        await listener.send(listen.Finalize(2))
        speculation = await listener.next(listen.Speculation)
        final = await listener.next(listen.Final)
    assert (speculation.id, final.id) == (1, 2)
    assert final.compute_ms == 0
    assert final.text == speculation.text != ""


@pytest.mark.slow
async def test_discarding_does_not_touch_what_is_being_finalized(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1))
        await listener.send(listen.Finalize(2))
        await listener.send(listen.Discard())
        final = await listener.next(listen.Final)
    assert final.id == 2
    assert final.text


@pytest.mark.slow
async def test_a_speculation_of_other_audio_is_not_reused(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1, FOX.size // 2))
        half = await listener.next(listen.Speculation)
        await listener.send(listen.Finalize(2))
        whole = await listener.next(listen.Final)
    assert whole.compute_ms > 0
    assert len(whole.text) > len(half.text)


@pytest.mark.slow
async def test_a_speculation_in_time_for_the_final_outlives_its_own_deadline(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1, deadline_ms=5))
        await listener.send(listen.Finalize(2, deadline_ms=10_000))
        error, final = await listener.receive(), await listener.receive()
    assert isinstance(error, listen.Error)
    assert (error.id, error.code) == (1, "deadline_exceeded")
    assert isinstance(final, listen.Final)
    assert word_error_rate(FOX_TEXT, final.text) == 0


@pytest.mark.slow
async def test_partials_come_while_audio_comes_and_revisions_grow(url: str) -> None:
    async with listening(url, partials=True) as listener:
        partials = []
        for start in range(0, FOX.size, RATE_HZ // 2):
            await listener.feed(FOX[start : start + RATE_HZ // 2])
            if FOX.size - start >= RATE_HZ:
                partials.append(await listener.next(listen.Partial))
        await listener.send(listen.Finalize(1))
        final = await listener.next(listen.Final)
    revisions = [partial.revision for partial in partials] + [final.revision]
    assert revisions == sorted(set(revisions))
    assert [partial.end_sample for partial in partials] == sorted({partial.end_sample for partial in partials})
    assert len(partials[-1].text) > len(partials[0].text) > 0
    assert word_error_rate(FOX_TEXT, final.text) == 0


@pytest.mark.slow
async def test_a_model_with_one_instance_sends_no_partials(url: str) -> None:
    async with listening(url, partials=True, language="de") as listener:
        await listener.feed(HELLO)
        await listener.send(listen.Finalize(1))
        await listener.next(listen.Final)
    assert not [message for message in listener.seen if isinstance(message, listen.Partial)]


@pytest.mark.slow
async def test_two_connections_do_not_mix(url: str) -> None:
    async with listening(url) as one, listening(url) as two:
        for start in range(0, FOX.size, 1600):
            await one.feed(FOX[start : start + 1600])
            await two.feed(HELLO[start : start + 1600])
        await one.send(listen.Finalize(1))
        await two.send(listen.Finalize(1))
        heard = await asyncio.gather(one.next(listen.Final), two.next(listen.Final))
    assert word_error_rate(FOX_TEXT, heard[0].text) == 0
    assert word_error_rate(HELLO_TEXT, heard[1].text) == 0


@pytest.mark.slow
async def test_word_times_count_from_the_start_of_the_connection(url: str) -> None:
    async with listening(url, words=True) as listener:
        await listener.feed(np.concatenate([HELLO, FOX]))
        await listener.send(listen.Discard(HELLO.size))
        await listener.send(listen.Finalize(1))
        final = await listener.next(listen.Final)
    assert final.words is not None
    assert " ".join(word.text for word in final.words) == final.text
    assert final.words[0].start_sample >= HELLO.size
    assert final.words[-1].end_sample <= HELLO.size + FOX.size


@pytest.mark.slow
async def test_nothing_is_heard_in_silence_noise_or_tones(url: str) -> None:
    async with listening(url, partials=True) as listener:
        for request, sound in enumerate([silence(2), white_noise(2, -30), white_noise(2, -50), tone(2, 440)]):
            await listener.feed(sound)
            await listener.send(listen.Finalize(request))
            assert (await listener.next(listen.Final)).text == ""
    assert not [message for message in listener.seen if isinstance(message, listen.Partial)]


async def test_finalizing_no_audio_is_an_empty_final(url: str) -> None:
    async with listening(url) as listener:
        await listener.send(listen.Finalize(1))
        final = await listener.next(listen.Final)
    assert (final.text, final.end_sample, final.compute_ms) == ("", 0, 0)


@pytest.mark.slow
async def test_discarded_audio_is_not_heard_and_needs_no_answer(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Discard())
        await listener.feed(HELLO)
        await listener.send(listen.Finalize(1))
        final = await listener.next(listen.Final)
    assert word_error_rate(HELLO_TEXT, final.text) == 0
    assert final.start_sample == FOX.size


@pytest.mark.slow
async def test_requests_for_discarded_audio_are_answered_as_such(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1))
        await listener.send(listen.Discard())
        error = await listener.receive()
    assert isinstance(error, listen.Error)
    assert (error.id, error.code) == (1, "discarded")


@pytest.mark.slow
@pytest.mark.parametrize("late", [listen.Discard(HELLO.size), listen.Finalize(9, HELLO.size)])
async def test_dropping_what_is_gone_leaves_a_speculation_of_what_follows(
    url: str, late: listen.Discard | listen.Finalize
) -> None:
    async with listening(url) as listener:
        await listener.feed(np.concatenate([HELLO, FOX]))
        await listener.send(listen.Discard(HELLO.size))
        await listener.send(listen.Speculate(1))
        await listener.send(late)
        speculation = await listener.next(listen.Speculation)
    assert word_error_rate(FOX_TEXT, speculation.text) == 0


@pytest.mark.slow
@pytest.mark.parametrize("deadline_ms", [0, -5, 1])
async def test_a_deadline_that_passes_fails_the_request_and_not_the_connection(url: str, deadline_ms: int) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        await listener.send(listen.Speculate(1, deadline_ms=deadline_ms))
        error = await listener.receive()
        assert isinstance(error, listen.Error)
        assert (error.id, error.code) == (1, "deadline_exceeded")
        await listener.send(listen.Finalize(2))
        assert word_error_rate(FOX_TEXT, (await listener.next(listen.Final)).text) == 0


async def test_a_range_that_is_not_there_fails_the_request_and_not_the_connection(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(silence(0.1))
        await listener.send(listen.Finalize(1, 1601))
        error = await listener.receive()
        assert isinstance(error, listen.Error)
        assert (error.id, error.code) == (1, "bad_range")
        await listener.send(listen.Finalize(2))
        assert (await listener.next(listen.Final)).end_sample == 1600


@pytest.mark.slow
async def test_more_requests_than_a_turn_has_are_refused_one_by_one(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(FOX)
        for request in range(MAX_PENDING + 4):
            await listener.send(listen.Speculate(request, FOX.size - request, deadline_ms=60_000))
        answers = [await listener.receive() for _ in range(MAX_PENDING + 4)]
    codes = [answer.code for answer in answers if isinstance(answer, listen.Error)]
    assert set(codes) == {"overloaded"}
    assert {answer.id for answer in answers} == set(range(MAX_PENDING + 4))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        ("{", "bad_json"),
        ("[]", "bad_json"),
        ('{"type":"hallo"}', "bad_message"),
        ('{"type":"hello"}', "bad_message"),
        ('{"type":"hello","version":1,"loud":true}', "bad_message"),
        ('{"type":"hello","version":2}', "bad_version"),
        ('{"type":"hello","version":1,"language":"xx"}', "unknown_language"),
        ('{"type":"finalize","id":1}', "no_hello"),
        (b"\0\0", "no_hello"),
    ],
)
async def test_a_wrong_first_message_is_named_and_the_connection_closed(
    url: str, first: str | bytes, code: str
) -> None:
    async with connected(url) as listener:
        await listener.connection.send(first)
        assert await listener.failure() == (code, 1008)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\0\0\0", "bad_audio"),
        (bytes(2 * 3 * RATE_HZ), "too_large"),
        ("{", "bad_json"),
        (encode(listen.Hello(1)), "bad_message"),
        ('{"type":"finalize","id":"1"}', "bad_message"),
        (encode(listen.Discard(5)), "bad_range"),
    ],
)
async def test_a_broken_protocol_is_named_and_the_connection_closed(url: str, data: str | bytes, code: str) -> None:
    async with listening(url) as listener:
        await listener.connection.send(data)
        assert await listener.failure() == (code, 1008)


async def test_a_text_message_too_large_closes_the_connection(url: str) -> None:
    async with listening(url) as listener:
        await listener.connection.send('{"type":"' + "x" * (1 << 20) + '"}')
        with pytest.raises(ConnectionClosed):
            await listener.receive()
        assert listener.connection.close_code == 1009


@pytest.mark.slow
async def test_audio_that_is_never_finalized_is_an_error_in_the_end(url: str) -> None:
    async with listening(url) as listener:
        await listener.feed(silence(MAX_UTTERANCE_S + 0.1))
        assert await listener.failure() == ("too_long", 1008)


async def health(url: str) -> dict[str, object]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/health") as response:
        return await response.json()


@pytest.mark.slow
async def test_a_client_that_vanishes_leaves_nothing_to_compute(url: str) -> None:
    long = np.concatenate([FOX] * 8)
    async with asyncio.timeout(20), listening(url) as listener:
        await listener.feed(long)
        for request in range(10):
            await listener.send(listen.Speculate(request, long.size - request))
        await listener.send(listen.Speculate(99, long.size + 1))
        while not (isinstance(seen := await listener.receive(), listen.Error) and seen.id == 99):
            pass
        waiting = (await health(url))["waiting"]
        assert isinstance(waiting, dict)
        assert waiting["whisper-tiny.en"] > 0
        listener.connection.transport.abort()
        while (await health(url))["streams"]:
            pass
        waiting = (await health(url))["waiting"]
        assert waiting == {"whisper-tiny.en": 0, "whisper-base": 0}


@pytest.mark.slow
async def test_a_client_that_stops_reading_is_cut_off(url: str) -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    host, port = url.removeprefix("http://").split(":")
    await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
    async with connect(url.replace("http", "ws") + "/v1/listen", sock=sock, max_queue=1, proxy=None) as connection:
        await connection.send(encode(listen.Hello(1)))
        await connection.recv()  # ready: the last message that is read

        async def ask_without_reading_answers() -> None:
            while True:
                await connection.send(encode(listen.Finalize(1, 10**6)))

        asking = asyncio.create_task(ask_without_reading_answers())
        async with asyncio.timeout(60):
            while (await health(url))["streams"]:
                await asyncio.wait([asking], timeout=0.1)
        asking.cancel()
        connection.transport.abort()
        await asyncio.wait([asking])


@pytest.mark.slow
async def test_above_the_bound_a_stream_is_refused(models: Models) -> None:
    config = replace(CONFIG, max_streams=1)
    lifecycle = Lifecycle("stt")
    app = build(config, models, lifecycle)
    async with serving(app, lifecycle, config.edge) as url, listening(url), connected(url) as second:
        assert await second.failure() == ("overloaded", 1013)
