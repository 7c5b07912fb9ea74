"""The engine's thread with the real voice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tts_engine.engine import Audio, Engine, Failed, Finished, Line, Manner
from tts_engine.scheduler import MAX_UNSENT_CHUNKS
from tts_engine.segmenter import Unit
from tts_engine.speaking import Chunk, Speaker
from wire.errors import Unavailable

pytestmark = pytest.mark.slow

JOE = Manner("joe")


class Faulty(Speaker):
    """Fails at the second step."""

    def speak(self, unit: Unit, *, index: int, first_sample: int, seed: int, speed: float) -> Iterator[Chunk]:
        steps = super().speak(unit, index=index, first_sample=first_sample, seed=seed, speed=speed)
        yield next(steps)
        raise ZeroDivisionError("a bug")


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[Engine]:
    engine.start()
    try:
        yield engine
    finally:
        engine.close()


def say(line: Line, text: str, manner: Manner = JOE) -> int:
    key = line.open(manner, None)
    line.add(key, Unit(text, 0))
    line.end(key)
    return key


async def outcome(line: Line) -> list[type]:
    """Kinds of the events up to the last one of an utterance."""
    kinds = []
    async with asyncio.timeout(30):
        while not kinds or kinds[-1] is Audio:
            event = await line.events.get()
            kinds.append(type(event))
            if isinstance(event, Audio):
                line.sent()
    return kinds


async def test_a_step_that_fails_ends_its_utterance_and_no_other(speaker: Speaker, caplog: pytest.LogCaptureFixture):
    speakers = {"joe": speaker, "faulty": Faulty(speaker.voice, speaker.lexicon)}
    async with running(Engine(speakers, max_waiting=4)) as engine:
        line, other = engine.line(), engine.line()
        say(line, "Hello.", Manner("faulty"))
        say(other, "Hello.")

        assert await outcome(line) == [Failed]
        assert (await outcome(other))[-1] is Finished
    assert "a bug" in caplog.text


async def test_what_is_not_read_is_bounded_and_goes_on_when_read(engine: Engine):
    async with running(engine):
        line, other = engine.line(), engine.line()
        say(line, "A sentence that lasts a while, or so it should, when it is spoken. " * 8)
        say(other, "Hello.")
        await outcome(other)
        held = line.events.qsize()
        kinds = await outcome(line)

    assert held <= MAX_UNSENT_CHUNKS
    assert kinds.count(Audio) > MAX_UNSENT_CHUNKS
    assert kinds[-1] is Finished


async def test_a_closed_line_leaves_the_voice_to_others(engine: Engine):
    async with running(engine):
        line, other = engine.line(), engine.line()
        say(line, "A sentence that lasts a while, or so it should, when it is spoken. " * 3)
        line.close()
        say(other, "Hello.")

        assert (await outcome(other))[-1] is Finished
    assert not any(isinstance(line.events.get_nowait(), Finished) for _ in range(line.events.qsize()))


async def test_closing_fails_what_is_open_and_takes_nothing_more(engine: Engine):
    async with running(engine):
        line = engine.line()
        say(line, "Hello there, this goes on. " * 7)
        engine.close()
        await asyncio.sleep(0)

        assert (await outcome(line))[-1] is Failed
        with pytest.raises(Unavailable):
            engine.line()
        with pytest.raises(Unavailable):
            line.open(JOE, None)
