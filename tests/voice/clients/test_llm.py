from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi.responses import StreamingResponse

from tests.fakes import Failure, FakeLlm
from tests.serving import serving
from voice.clients.llm import LlmClient
from voice.sentence_end import FLOOR
from wire.config import EdgeConfig
from wire.errors import DeadlineExceeded, Unavailable
from wire.request import RequestContext
from wire.service import Lifecycle, create_app


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 1.1])
async def test_a_repetition_penalty_is_sent_only_when_there_is_one(penalty: float) -> None:
    fake = FakeLlm(replies=["Two words."])
    async with serving(fake.app(), Lifecycle("fake"), EdgeConfig(port=0)) as url:
        client = LlmClient(
            url, "fake", key=None, temperature=0.0, max_tokens=5, prefill_tokens=0, repetition_penalty=penalty
        )
        await client.open()
        context = RequestContext("call", deadline_s=time.monotonic() + 5)
        deltas = [delta async for delta in client.answer([{"role": "user", "content": "Hello"}], context)]
        await client.close()
    assert "".join(deltas) == "Two words."
    [body] = fake.bodies
    assert body.get("repetition_penalty") == (None if penalty == 1 else penalty)


@asynccontextmanager
async def connected(fake: FakeLlm) -> AsyncIterator[LlmClient]:
    async with serving(fake.app(), Lifecycle("fake"), EdgeConfig(port=0)) as url:
        client = LlmClient(url, "fake", key=None, temperature=0.0, max_tokens=5, prefill_tokens=0)
        await client.open()
        yield client
        await client.close()


def within(seconds: float) -> RequestContext:
    return RequestContext("call", deadline_s=time.monotonic() + seconds)


@pytest.mark.slow
async def test_it_is_asked_what_follows_the_words() -> None:
    fake = FakeLlm(likely={".": math.log(0.25), " bus": math.log(0.5)})
    async with connected(fake) as client:
        assert await client.stop_logprob("They took the cross.", within(5)) == pytest.approx(math.log(0.25))
        assert await client.stop_logprob("...", within(5)) is None
    assert fake.expected_after == ["<|endoftext|>They took the cross"]


@pytest.mark.slow
async def test_a_server_that_does_not_tell_what_is_likely_is_asked_once() -> None:
    fake = FakeLlm(likely=None)
    async with connected(fake) as client:
        assert await client.stop_logprob("They took", within(5)) is None
        assert await client.stop_logprob("They took the", within(5)) is None
    assert len(fake.expected_after) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("failure", "error"), [("silent", DeadlineExceeded), ("error", Unavailable)])
async def test_a_server_that_fails_is_asked_again(failure: Failure, error: type[Exception]) -> None:
    fake = FakeLlm(likely={".": -1.0}, failure=failure)
    async with connected(fake) as client:
        with pytest.raises(error):
            await client.stop_logprob("They took", within(0.1))
        fake.failure = "none"
        assert await client.stop_logprob("They took", within(5)) == -1.0


@pytest.mark.slow
@pytest.mark.parametrize(("value", "expected"), [("-1.5", -1.5), ("NaN", FLOOR), ("1" + 400 * "0", FLOOR)])
async def test_what_is_likely_may_come_in_pieces_and_may_be_nonsense(value: str, expected: float) -> None:
    app = create_app(Lifecycle("llm"), EdgeConfig(port=0))

    @app.post("/v1/completions")
    async def complete() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            yield b'{"choices": [{"logprobs": {"top_log'
            await asyncio.sleep(0.05)
            yield b'probs": [{".": %s}]}}]}' % value.encode()

        return StreamingResponse(pieces(), media_type="application/json")

    async with serving(app, Lifecycle("llm"), EdgeConfig(port=0)) as url:
        client = LlmClient(url, "fake", key=None, temperature=0.0, max_tokens=5, prefill_tokens=0)
        await client.open()
        told = await client.stop_logprob("They took the bus", within(5))
        await client.close()
    assert told == pytest.approx(expected)
