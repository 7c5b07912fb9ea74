"""Services that fail, hang or come back while a call goes on: no silence over 1.5 s without a word or a message."""

from __future__ import annotations

import asyncio
import math
import time

import numpy as np
import pytest

from tests.caller import OUTPUT_HZ, RATE_HZ, Caller, calling
from tests.fakes import SECONDS_PER_WORD
from tests.speech import clip, silence
from tests.voice.conftest import Stage
from voice.media.level import speech_end
from wire import calls
from wire.config import EdgeConfig

pytestmark = pytest.mark.slow

LIMIT_S = 1.5  # the promise
FILLER = "One moment, please."
APOLOGY = "Sorry, I did not get that. Could you say it again?"
GOODBYE = "Thank you for calling. Goodbye."


def hello() -> np.ndarray:
    """Speech that ends with its last word."""
    pcm, _ = clip("hello_world")
    return np.concatenate([silence(0.2), pcm[: speech_end(pcm, RATE_HZ)]])


async def until_listening(caller: Caller) -> float:
    """The longest silence from the caller's last word to the end of the turn."""
    await caller.until_next(calls.State, lambda s: s.state == "listening")
    assert caller.said_s < math.inf
    return caller.silence_s(caller.said_s, time.monotonic())


async def failed_turn(caller: Caller) -> float:
    caller.say(hello())
    silent_s = await until_listening(caller)
    assert caller.of(calls.Turn)[0].outcome == "failed"
    return silent_s


@pytest.mark.parametrize("failure", ["silent", "drop", "error"])
@pytest.mark.parametrize("service", ["stt", "llm", "tts"])
async def test_a_service_lost_while_thinking_is_never_a_dead_line(stage: Stage, service: str, failure: str):
    broken = getattr(stage, service)
    broken.failure = failure
    async with stage.up() as base, calling(base) as caller:
        silent_s = await failed_turn(caller)
        broken.failure = "none"
        caller.say(hello())
        answered = await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert silent_s < LIMIT_S
    assert answered.outcome == "answered"


@pytest.mark.parametrize("failure", ["silent", "drop", "error"])
async def test_a_model_lost_mid_answer_is_apologised_for(stage: Stage, failure: str):
    stage.llm.replies = ["One two, three four five six seven eight nine ten.", "Yes."]
    stage.llm.failure, stage.llm.fail_half_way = failure, True  # type: ignore[assignment]
    stage.settings = {"max_revisions": 0}  # what fails before the turn is over is asked for again
    async with stage.up() as base, calling(base) as caller:
        silent_s = await failed_turn(caller)
        stage.llm.failure = "none"
        caller.say(hello())
        await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert silent_s < LIMIT_S
    heard = caller.of(calls.Turn)[0].heard
    assert heard.startswith("One two,")
    assert APOLOGY in stage.tts.texts.values()
    assert stage.llm.prompts[1][2] == {"role": "assistant", "content": f"{heard} {APOLOGY}"}


@pytest.mark.parametrize("failure", ["silent", "drop", "error"])
async def test_a_voice_lost_mid_answer_is_signalled(stage: Stage, failure: str):
    stage.llm.replies = ["One two three. " + "Four five six. " * 10]
    stage.llm.token_s = 0.1
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "speaking")
        stage.tts.failure = failure  # type: ignore[assignment]
        silent_s = await until_listening(caller)
        stage.tts.failure = "none"
        caller.say(hello())
        answered = await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert silent_s < LIMIT_S
    assert caller.of(calls.Error)
    assert answered.outcome == "answered"


async def test_a_late_answer_is_announced_and_still_given(stage: Stage):
    stage.llm.replies = ["We open at nine.", "Yes."]
    stage.llm.first_token_s = 2.0
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        silent_s = await until_listening(caller)
        stage.llm.first_token_s = 0.0
        caller.say(hello())
        await caller.until(calls.Turn, lambda t: t.turn == 2)

    turn = caller.of(calls.Turn)[0]
    assert silent_s < LIMIT_S
    assert FILLER in stage.tts.texts.values()
    assert (turn.outcome, turn.heard) == ("answered", "We open at nine.")
    assert turn.latency_ms is not None
    assert turn.latency_ms > 2000  # a filler is no answer
    assert [e.code for e in caller.of(calls.Error)] == ["delayed"]
    assert stage.llm.prompts[1][2] == {"role": "assistant", "content": "We open at nine."}


async def test_an_answer_waits_for_the_filler_to_end(stage: Stage):
    stage.llm.replies = ["We open at nine."]
    stage.llm.first_token_s = 1.1  # so the text comes while the filler is being said
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await until_listening(caller)

    assert caller.of(calls.Turn)[0].outcome == "answered"
    num_words = sum(len(text.split()) for text in stage.tts.texts.values())
    assert caller.num_samples == pytest.approx(num_words * SECONDS_PER_WORD * OUTPUT_HZ, abs=100)


async def test_a_caller_who_speaks_into_the_filler_goes_on_with_the_turn(stage: Stage):
    stage.stt.texts = ["I would like to", "order a pizza."]
    stage.llm.failure, stage.llm.replies = "silent", ["Yes."]
    stage.filler = "One moment, please. " * 8
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.Words)
        stage.llm.failure = "none"
        caller.say(hello())
        clear = await caller.until(calls.Clear)
        turn = await caller.until(calls.Turn)

    assert (clear.turn, turn.turn) == (1, 1)
    assert (turn.outcome, turn.text, turn.heard) == ("answered", "I would like to order a pizza.", "Yes.")


async def test_recognition_that_is_back_before_the_turn_ends_hears_all_of_it(stage: Stage):
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "hearing")
        await caller.until_spoken(0.3)
        await stage.stt.cut()
        turn = await caller.until(calls.Turn)

    assert turn.outcome == "answered"
    assert stage.stt.num_connections == 2
    spoken = hello().size - 0.3 * RATE_HZ  # the pause before it
    assert stage.stt.num_samples >= spoken  # of the second connection


@pytest.mark.parametrize("missing", ["stt", "tts"])
async def test_a_call_without_recognition_or_voice_is_refused_in_time_and_frees_its_line(stage: Stage, missing: str):
    stage.settings, stage.missing = {"max_calls": 1}, missing
    async with stage.up() as base:
        for _ in range(2):
            start_s = time.monotonic()
            async with calling(base) as caller:
                error = await caller.until(calls.Error)
                assert time.monotonic() - start_s < LIMIT_S
                assert await caller.until_closed() == 1012
            assert error.code == "unavailable"
            assert error.retry_after_ms
            assert not caller.of(calls.Ready)


async def test_a_call_to_a_draining_service_is_refused_and_not_blamed(stage: Stage):
    stage.stt.lifecycle.draining = True
    async with stage.up() as base, calling(base) as caller:
        error = await caller.until(calls.Error)
        assert await caller.until_closed() == 1012

    assert error.code == "unavailable"
    assert "draining" in error.message


async def test_a_draining_call_server_ends_its_call_with_a_whole_goodbye(stage: Stage):
    stage.edge = EdgeConfig(port=0, drain_timeout_s=5.0)
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "speaking")
        stage.lifecycle.draining = True
        assert (await caller.until(calls.Bye)).reason == "drain"
        assert await caller.until_closed() == 1012

    assert caller.of(calls.Turn)[0].outcome == "answered"
    assert GOODBYE in stage.tts.texts.values()
    num_words = sum(len(text.split()) for text in stage.tts.texts.values())
    assert caller.num_samples == pytest.approx(num_words * SECONDS_PER_WORD * OUTPUT_HZ, abs=100)


@pytest.mark.parametrize("sends_empty", [False, True], ids=["nothing", "messages without audio"])
async def test_a_line_that_goes_dead_in_the_middle_of_a_word_is_answered(stage: Stage, *, sends_empty: bool):
    async def keep_sending(caller: Caller) -> None:
        while sends_empty:
            await caller.connection.send(b"")
            await asyncio.sleep(0.02)

    async with stage.up() as base, calling(base) as caller, asyncio.TaskGroup() as tasks:
        caller.say(hello())
        await caller.until_spoken(0.7)
        caller.is_dead, dead_s = True, time.monotonic()
        sending = tasks.create_task(keep_sending(caller))
        turn = await caller.until(calls.Turn, timeout_s=5.0)
        sending.cancel()
        heard_s = next(at for at, pcm in caller.audio if np.abs(pcm).max() > 1000)

    assert turn.outcome == "answered"
    assert heard_s - dead_s < 1.5
