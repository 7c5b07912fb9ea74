from __future__ import annotations

import time

import pytest

from tests.fakes import FakeLlm
from tests.serving import serving
from voice.clients.llm import LlmClient
from wire.config import EdgeConfig
from wire.request import RequestContext
from wire.service import Lifecycle


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
