"""Scripted services behind the proxies, and a call server in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from load.faults.http_hop import client
from load.faults.stage_proxy import StageProxy
from load.faults.stages import (
    LlmDeath,
    LlmRefusal,
    LlmStall,
    Stage,
    StageFault,
    SttEmpty,
    SttLate,
    SttNever,
    TtsDeath,
    TtsSilence,
    TtsStall,
)
from tests.fakes import SECONDS_PER_WORD, TTS_RATE_HZ, FakeLlm, FakeStt, FakeTts
from tests.serving import serving
from wire import listen, speak, sse
from wire.config import EdgeConfig
from wire.messages import decode, encode
from wire.pcm import unpack_utterance
from wire.service import Lifecycle

EDGE = EdgeConfig(port=0)
WORD_SAMPLES = round(SECONDS_PER_WORD * TTS_RATE_HZ)


@contextlib.asynccontextmanager
async def proxied(stage: Stage, fake: FakeStt | FakeLlm | FakeTts, *faults: StageFault) -> AsyncIterator[str]:
    async with serving(fake.app(), Lifecycle("fake"), EDGE) as target, asyncio.timeout(20):
        proxy = StageProxy(stage, target, np.random.default_rng(1))
        proxy.plan.set(faults)
        async with proxy.open() as url:
            yield url


@contextlib.asynccontextmanager
async def listening(fake: FakeStt, *faults: StageFault) -> AsyncIterator[ClientConnection]:
    async with proxied("stt", fake, *faults) as url, connect(f"{url.replace('http', 'ws')}/v1/listen") as line:
        await line.send(encode(listen.Hello(1)))
        assert isinstance(decode(str(await line.recv()), listen.SERVER_MESSAGES), listen.Ready)
        await line.send(bytes(640))
        yield line


async def result(line: ClientConnection) -> listen.ServerMessage:
    return decode(str(await line.recv()), listen.SERVER_MESSAGES)


async def to_its_end(line: ClientConnection, messages: list[str | bytes] | None = None) -> None:
    while True:
        data = await line.recv()
        if messages is not None:
            messages.append(data)


async def is_silent(line: ClientConnection) -> bool:
    try:
        async with asyncio.timeout(0.1):
            await line.recv()
    except TimeoutError:
        return True
    return False


@contextlib.asynccontextmanager
async def speaking(fake: FakeTts, *faults: StageFault) -> AsyncIterator[ClientConnection]:
    async with proxied("tts", fake, *faults) as url, connect(f"{url.replace('http', 'ws')}/v1/speak") as line:
        await line.send(encode(speak.Hello(1)))
        await line.recv()
        yield line


async def say(line: ClientConnection, utterance: int, text: str) -> None:
    for message in (speak.Text(utterance, text), speak.Flush(utterance), speak.End(utterance)):
        await line.send(encode(message))


async def heard(line: ClientConnection, utterance: int) -> np.ndarray:
    """All audio up to `done`."""
    parts = [np.zeros(0, np.int16)]
    while True:
        data = await line.recv()
        if isinstance(data, bytes):
            number, pcm = unpack_utterance(data)
            assert number == utterance
            parts.append(pcm)
        elif isinstance(decode(data, speak.SERVER_MESSAGES), speak.Done):
            return np.concatenate(parts)


async def answered(http: aiohttp.ClientSession, url: str, max_tokens: int = 50) -> list[str]:
    body = {"messages": [], "max_tokens": max_tokens, "stream": True}
    decoder, events = sse.Decoder(), []
    async with http.post(f"{url}/v1/chat/completions", json=body) as response:
        assert response.status == 200
        async for chunk in response.content.iter_any():
            events += decoder.feed(chunk)
    return events


async def test_without_a_fault_recognition_is_as_ever() -> None:
    async with listening(FakeStt()) as line:
        await line.send(encode(listen.Speculate(1)))
        assert await result(line) == listen.Speculation(1, 3, "Hello there.", 320, 0.0)
        await line.send(encode(listen.Finalize(2)))
        assert await result(line) == listen.Final(2, 4, "Hello there.", 0, 320, 0.0)


async def test_empty_recognition_has_no_words_for_one_request() -> None:
    async with listening(FakeStt(), SttEmpty()) as line:
        texts = []
        for request in (listen.Speculate(1), listen.Finalize(2), listen.Finalize(3)):
            await line.send(encode(request))
            message = await result(line)
            assert isinstance(message, listen.Speculation | listen.Final)
            texts.append(message.text)
    assert texts == ["", "", "Hello there."]


async def test_late_recognition_comes_late_and_holds_nobody_else_up() -> None:
    async with listening(FakeStt(), SttLate(by_s=0.15)) as line:
        start_s = time.monotonic()
        for request in (1, 2):
            await line.send(encode(listen.Finalize(request)))
        first, second = await result(line), await result(line)
        assert isinstance(first, listen.Final)
        assert isinstance(second, listen.Final)
        assert (first.id, second.id) == (2, 1)
        assert time.monotonic() - start_s >= 0.15


async def test_late_recognition_says_when_it_misses_a_deadline() -> None:
    async with listening(FakeStt(), SttLate(by_s=5.0)) as line:
        await line.send(encode(listen.Finalize(1, deadline_ms=50)))
        error = await result(line)
        assert isinstance(error, listen.Error)
        assert (error.id, error.code) == (1, "deadline_exceeded")


async def test_recognition_that_never_answers_answers_the_next() -> None:
    async with listening(FakeStt(), SttNever()) as line:
        await line.send(encode(listen.Speculate(1)))
        await line.send(encode(listen.Finalize(2)))
        assert await is_silent(line)
        await line.send(encode(listen.Finalize(3)))
        assert await result(line) == listen.Final(3, 5, "Hello there.", 0, 320, 0.0)


async def test_messages_of_no_protocol_are_left_to_the_service() -> None:
    async with listening(FakeStt()) as line:
        await line.send("{")
        with pytest.raises(ConnectionClosed) as closed:
            await to_its_end(line)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


async def test_a_close_comes_through_with_its_code() -> None:
    fake = FakeStt(failure="drop")
    async with listening(fake) as line:
        await line.send(encode(listen.Finalize(1)))
        with pytest.raises(ConnectionClosed) as closed:
            await line.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011


async def test_a_client_that_goes_leaves_no_connection_behind() -> None:
    fake = FakeStt()
    async with listening(fake) as line:
        line.transport.abort()
        until_s = time.monotonic() + 5
        while fake.peers:
            assert time.monotonic() < until_s
            await asyncio.sleep(0.01)


async def test_without_a_fault_the_voice_is_as_ever() -> None:
    async with speaking(FakeTts()) as line:
        await say(line, 1, "one two three")
        assert (await heard(line, 1)).size == 3 * WORD_SAMPLES


async def test_a_voice_of_silence_keeps_its_length() -> None:
    async with speaking(FakeTts(), TtsSilence()) as line:
        await say(line, 1, "one two three")
        pcm = await heard(line, 1)
        assert pcm.size == 3 * WORD_SAMPLES
        assert not pcm.any()
        await say(line, 2, "four")
        assert (await heard(line, 2)).any()


@pytest.mark.parametrize("after_s", [0.0, 0.2, 9.0])
async def test_a_voice_that_stalls_goes_on_where_it_stopped(after_s: float) -> None:
    async with speaking(FakeTts(), TtsStall(after_s=after_s, for_s=0.2)) as line:
        start_s = time.monotonic()
        await say(line, 1, "one two three")
        assert (await heard(line, 1)).size == 3 * WORD_SAMPLES
        assert time.monotonic() - start_s >= 0.2


async def test_a_voice_that_stalls_for_ever_is_cut_to_the_sample_and_speaks_the_next() -> None:
    async with speaking(FakeTts(), TtsStall(after_s=0.2)) as line:
        await say(line, 1, "one two three")
        samples = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                while True:
                    data = await line.recv()
                    samples += unpack_utterance(data)[1].size if isinstance(data, bytes) else 0
                    assert isinstance(data, bytes) or isinstance(decode(data, speak.SERVER_MESSAGES), speak.Words)
        assert samples == round(0.2 * TTS_RATE_HZ)
        await line.send(encode(speak.Cancel(1)))
        assert decode(str(await line.recv()), speak.SERVER_MESSAGES) == speak.Cancelled(1)
        await say(line, 2, "four")
        assert (await heard(line, 2)).size == WORD_SAMPLES


@pytest.mark.parametrize(("after_s", "samples"), [(0.0, 0), (0.2, round(0.2 * TTS_RATE_HZ)), (9.0, 3 * WORD_SAMPLES)])
async def test_a_voice_that_dies_says_up_to_there(after_s: float, samples: int) -> None:
    async with speaking(FakeTts(), TtsDeath(after_s=after_s)) as line:
        await say(line, 1, "one two three")
        messages: list[str | bytes] = []
        with pytest.raises(ConnectionClosed) as closed:
            await to_its_end(line, messages)
        assert closed.value.rcvd is None  # no close: lost
        got = sum(unpack_utterance(data)[1].size for data in messages if isinstance(data, bytes))
        assert got <= samples
        assert got == samples or after_s > 0  # a reset may overtake what was under way


async def test_a_service_that_is_not_there_refuses_the_handshake() -> None:
    proxy = StageProxy("tts", "http://127.0.0.1:9", np.random.default_rng(1))
    async with proxy.open() as url, client() as http:
        with pytest.raises(InvalidStatus) as refusal:
            await connect(f"{url.replace('http', 'ws')}/v1/speak")
        assert refusal.value.response.status_code == 502
        async with http.get(f"{url}/health") as response:
            assert response.status == 502


async def test_health_comes_through() -> None:
    async with proxied("llm", FakeLlm()) as url, client() as http, http.get(f"{url}/health") as response:
        assert (response.status, (await response.json())["service"]) == (200, "llm")


async def test_a_model_stalls_where_it_was_told() -> None:
    fake = FakeLlm(replies=["one two three"])
    async with proxied("llm", fake, LlmStall(2, for_s=0.2), LlmStall(0, 0.2, first=2)) as url, client() as http:
        whole = None
        for _ in range(3):
            start_s = time.monotonic()
            events = await answered(http, url)
            whole = whole or events
            assert events == whole
            assert len(events) == 4
            if len(fake.prompts) < 3:
                assert time.monotonic() - start_s >= 0.2


async def test_a_stalled_model_is_aborted_when_its_client_goes() -> None:
    fake = FakeLlm(replies=["one two three"], token_s=0.05)
    async with proxied("llm", fake, LlmStall(1)) as url, client() as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await answered(http, url)
        await fake.aborted.wait()


@pytest.mark.parametrize("after_tokens", [0, 2, 99])
async def test_a_model_dies_where_it_was_told(after_tokens: int, caplog: pytest.LogCaptureFixture) -> None:
    async with proxied("llm", FakeLlm(replies=["one two three"]), LlmDeath(after_tokens)) as url, client() as http:
        with pytest.raises(aiohttp.ClientError):
            await answered(http, url)
        assert len(await answered(http, url)) == 4
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(("status", "retry_after_s"), [(429, 2), (503, None)])
async def test_a_model_refuses_as_told(status, retry_after_s) -> None:
    fake = FakeLlm()
    async with proxied("llm", fake, LlmRefusal(status=status, retry_after_s=retry_after_s)) as url, client() as http:
        assert await answered(http, url, max_tokens=0) == [sse.DONE]  # warming is not refused, and not counted
        async with http.post(f"{url}/v1/chat/completions", json={"max_tokens": 9}) as response:
            assert response.status == status
            assert response.headers.get("retry-after") == (str(retry_after_s) if retry_after_s else None)
            assert "message" in (await response.json())["error"]
        assert len(await answered(http, url)) > 1
    assert (fake.num_prefills, len(fake.prompts)) == (1, 1)
