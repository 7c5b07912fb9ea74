"""A caller who speaks over the agent, with real speech and VAD, on scripted recognition, model and voice."""

import asyncio

import numpy as np
import pytest

from tests.caller import OUTPUT_HZ, Caller, calling
from tests.fakes import SECONDS_PER_WORD
from tests.speech import clip, silence
from tests.voice.conftest import Stage
from voice.history import INTERRUPTED
from wire import calls

pytestmark = pytest.mark.slow

NUM_WORDS = 30
STORY = " ".join(f"wo{'o' * i}rd" for i in range(NUM_WORDS)) + "."


def hello() -> np.ndarray:
    return np.concatenate([silence(0.2), clip("hello_world")[0]])


def short() -> np.ndarray:
    """Half a second of speech."""
    pcm = clip("hello_world")[0]
    begin = int(np.argmax(np.abs(pcm) > 2000))
    return pcm[begin : begin + 8000]


async def until_telling(caller: Caller) -> None:
    caller.say(hello())
    await caller.until(calls.State, lambda state: state.state == "speaking")
    await caller.until_audio(0.8)


@pytest.mark.parametrize("words", ["Mm-hm.", "Yeah, right.", ""])
async def test_who_only_listens_costs_no_word_and_no_turn(stage: Stage, words: str):
    stage.stt.texts = ["Tell me a story.", words]
    stage.llm.replies = [STORY]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        caller.say(short())
        turn = await caller.until(calls.Turn)

    assert (turn.outcome, turn.heard) == ("answered", STORY)
    assert [state.state for state in caller.of(calls.State)] == ["hearing", "thinking", "speaking", "listening"]
    assert caller.of(calls.Rewind)
    assert caller.end_sample == pytest.approx(NUM_WORDS * SECONDS_PER_WORD * OUTPUT_HZ, abs=50)
    assert len(caller.of(calls.Final)) == 1


async def test_the_agent_is_silent_while_it_is_not_known_what_the_caller_wants(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Mm-hm."]
    stage.llm.replies = [STORY]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        caller.say(short())
        await caller.until(calls.Turn)

    at = [at for at, m in zip(caller.message_times, caller.messages, strict=True) if isinstance(m, calls.Rewind)]
    levels = [(when, int(np.abs(pcm.astype(np.int32)).max())) for when, pcm in caller.audio]
    assert len(at) == 2  # softer, then silent
    assert not [when for when, _ in levels if at[-1] < when < at[-1] + 0.2]
    assert np.median([level for when, level in levels if when > at[-1] + 1]) > 7000  # it goes on as loud as before


async def test_a_short_word_that_means_it_takes_the_turn(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Stop."]
    stage.llm.replies = [STORY, "All right."]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        caller.say(short())
        interrupted = await caller.until(calls.Turn)
        answered = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert interrupted.outcome == "interrupted"
    heard = interrupted.heard.split()
    assert 0 < len(heard) < NUM_WORDS
    assert heard == STORY.split()[: len(heard)]
    assert stage.llm.prompts[1][2]["content"] == interrupted.heard + INTERRUPTED
    assert (answered.outcome, answered.text, answered.heard) == ("answered", "Stop.", "All right.")


async def test_a_listeners_word_answers_a_question(stage: Stage):
    stage.stt.texts = ["Hello.", "Yes."]
    stage.llm.replies = ["Shall I? I could tell you more.", "All right."]
    stage.llm.token_s, stage.filler = 0.4, ""  # the agent has asked, and thinks of what to say next
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        caller.say(hello())
        await caller.until_audio(1.5 * SECONDS_PER_WORD)
        caller.say(short())
        asked = await caller.until(calls.Turn)
        answered = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert (asked.outcome, asked.heard) == ("interrupted", "Shall I?")
    assert (answered.outcome, answered.text) == ("answered", "Yes.")


async def test_who_goes_on_speaking_takes_the_turn_whatever_he_says(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Yeah."]
    stage.llm.replies = [STORY, "All right."]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        caller.say(clip("quick_brown_fox")[0])
        clear = await caller.until(calls.Clear)
        answered = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert clear.turn == 1
    assert answered.text == "Yeah."


async def test_without_recognition_the_agent_goes_on(stage: Stage):
    stage.stt.texts = ["Tell me a story."]
    stage.llm.replies = [STORY]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        stage.stt.speculates = False
        caller.say(short())
        turn = await caller.until(calls.Turn)

    assert (turn.outcome, turn.heard) == ("answered", STORY)


async def test_words_that_are_known_late_take_the_turn_and_are_answered(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Stop."]
    stage.llm.replies = [STORY, "All right."]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        stage.stt.speculation_s = 0.8  # the caller has long been silent by then
        caller.say(short())
        answered = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert (answered.outcome, answered.text) == ("answered", "Stop.")


async def test_words_before_a_key_are_part_of_the_same_turn(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Wait."]
    stage.llm.replies = [STORY, "All right."]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        await until_telling(caller)
        stage.stt.speculation_s = 0.8
        caller.say(short())
        await caller.until_quiet()
        await asyncio.sleep(0.45)  # the words have ended and are being judged
        await caller.send(calls.Dtmf("4#"))
        answered = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert answered.outcome == "answered"
    assert "Wait." in answered.text
    assert "keyed in: 4" in answered.text
