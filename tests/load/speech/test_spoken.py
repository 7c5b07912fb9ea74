from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection, serve

from load.errors import LoadError
from load.speech.spoken import borders_of, hello_of, speaker_at
from tests.tts_engine.client import speaking
from tests.tts_engine.conftest import engine, lexicon, speaker, voice  # noqa: F401
from tts_engine.engine import Engine
from wire import speak
from wire.messages import Message, encode

HELLO = hello_of("joe", 1.0, 0)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 9000)), max_size=12))
def test_borders_stand_between_words_in_order(lengths: list[tuple[int, int]]) -> None:
    words, at = [], 0
    for gap, length in lengths:
        words.append(speak.Word("w", at + gap, at + gap + length, 0, 1))
        at += gap + length
    borders = borders_of(words)
    assert len(borders) == max(0, len(words) - 1)
    for border, before, after in zip(borders, words, words[1:], strict=False):
        assert before.end_sample <= border <= after.start_sample


@contextlib.asynccontextmanager
async def answering(*messages: Message) -> AsyncIterator[str]:
    """A server that answers so, message by message, and closes at the next."""

    async def answer(connection: ServerConnection) -> None:
        for message in messages:
            await connection.recv()
            await connection.send(encode(message))
        async for _ in connection:
            return

    async with serve(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "does not take a request to speak"),
        ([speak.Error("unknown_voice", "no voice 'joe'")], "does not speak: no voice 'joe'"),
        ([speak.Done(1, 0, 0.0)], "does not speak: answered with done"),
        ([speak.Ready(1, "joe", 22050)], "broke off while it spoke"),
        (
            [speak.Ready(1, "joe", 22050), speak.Error("failed", "out of breath", 1), speak.Done(1, 0, 0.0)],
            "does not speak: out of breath",
        ),
    ],
)
async def test_a_voice_that_fails_is_one_line(messages: list[Message], problem: str) -> None:
    async with answering(*messages) as url:
        with pytest.raises(LoadError, match=problem) as caught:
            async with speaker_at(url, HELLO, None) as ours:
                await ours.say("Hello.")
    assert "\n" not in str(caught.value)


async def test_a_voice_that_is_not_there_is_one_line() -> None:
    async with answering() as url:
        pass
    with pytest.raises(LoadError, match=f"no voice service at {url}"):
        async with speaker_at(url, HELLO, None):
            pass


@pytest.mark.slow
async def test_the_real_voice_tells_where_its_words_meet(engine: Engine) -> None:  # noqa: F811
    async with speaking(engine) as url, speaker_at(url, HELLO, None) as ours:
        pcm, borders = await ours.say("I lost my card, and I need a new one.")
        again, _ = await ours.say("I lost my card, and I need a new one.")
    assert len(borders) == 9
    assert 0 < borders[0] < borders[-1] < pcm.size
    comma = borders[3]
    assert np.abs(pcm[comma - 200 : comma + 200].astype(int)).max() < np.abs(pcm.astype(int)).max() / 10
    assert np.array_equal(pcm, again)
