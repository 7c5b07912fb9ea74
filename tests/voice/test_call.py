"""Calls with real speech, VAD and turn model, on scripted STT, LLM and TTS."""

import asyncio

import aiohttp
import numpy as np
import pytest

from tests.caller import OUTPUT_HZ, calling
from tests.fakes import SECONDS_PER_WORD
from tests.speech import clip, silence, white_noise
from tests.voice.conftest import Stage
from voice.history import INTERRUPTED
from wire import calls
from wire.config import EdgeConfig

pytestmark = pytest.mark.slow


def hello() -> np.ndarray:
    return np.concatenate([silence(0.2), clip("hello_world")[0]])


async def test_a_turn_is_heard_answered_and_accounted_for(stage: Stage):
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        turn = await caller.until(calls.Turn)

    assert [f.text for f in caller.of(calls.Final)] == ["Hello there."]
    answer = "This is my answer, and it goes on. Really."
    assert "".join(r.delta for r in caller.of(calls.Reply)) == answer
    assert (turn.outcome, turn.text, turn.heard) == ("answered", "Hello there.", answer)
    assert turn.latency_ms == pytest.approx(sum(turn.stages_ms.values()), abs=0.2)
    assert list(turn.stages_ms) == ["endpointing", "stt", "llm_first_token", "llm_first_clause", "tts", "playout"]
    assert caller.num_samples == pytest.approx(9 * SECONDS_PER_WORD * OUTPUT_HZ, abs=50)
    words = [w for message in caller.of(calls.Words) for w in message.words]
    assert [w.text for w in words] == answer.split()
    assert words[-1].end_sample == pytest.approx(caller.num_samples, abs=50)
    states = [s.state for s in caller.of(calls.State)]
    assert states == ["hearing", "thinking", "speaking", "listening"]


async def test_audio_is_paced_with_a_bounded_lead(stage: Stage):
    stage.llm.replies = ["word " * 12]
    async with stage.up() as base, calling(base) as caller:
        most = (await caller.until(calls.Ready)).lead_ms / 1000  # of a loop that is late
        caller.say(hello())
        await caller.until(calls.Turn)

    first = caller.audio[0][0]
    sent = np.cumsum([pcm.size for _, pcm in caller.audio]) / OUTPUT_HZ
    ahead = sent - np.array([at - first for at, _ in caller.audio])
    assert ahead.max() <= most + 0.02 + 0.02  # the lead, a message, and this test's own clock
    assert np.median(ahead) <= 0.16 + 0.02 + 0.04
    assert caller.audio[-1][0] - first >= 12 * SECONDS_PER_WORD - 0.3


async def test_the_next_turn_remembers_the_last(stage: Stage):
    stage.stt.texts = ["My name is Ann.", "What is my name?"]
    stage.llm.replies = ["Hello Ann.", "It is Ann."]
    async with stage.up() as base, calling(base) as caller:
        for number in (1, 2):
            caller.say(hello())
            await caller.until(calls.Turn, lambda t, n=number: t.turn == n)

    assert [m["content"] for m in stage.llm.prompts[1][1:]] == ["My name is Ann.", "Hello Ann.", "What is my name?"]
    assert stage.llm.num_prefills >= 3


async def test_the_deadline_of_one_turn_does_not_end_the_next(stage: Stage):
    stage.settings = {"answer_deadline_s": 2.5}
    stage.llm.replies = ["Yes."]
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.Turn)
        stage.llm.token_s = 1.0  # the second answer is being waited for when the first's deadline passes
        caller.say(hello())
        second = await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert second.outcome == "answered"


async def test_the_greeting_is_spoken_first_and_remembered(stage: Stage):
    stage.greeting = "Hello caller."
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.State, lambda s: s.state == "listening")
        caller.say(hello())
        await caller.until(calls.Turn)

    assert stage.tts.texts[1] == "Hello caller."
    assert {"role": "assistant", "content": "Hello caller."} in stage.llm.prompts[0]


async def test_barge_in_clears_cancels_and_remembers_only_what_was_heard(stage: Stage):
    stage.stt.texts = ["Tell me a story.", "Stop."]
    stage.llm.replies = [" ".join(f"word{i}" for i in range(60)) + ".", "Done."]
    stage.llm.token_s = 0.05
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "speaking")
        caller.say(hello())
        clear = await caller.until(calls.Clear)
        interrupted = await caller.until(calls.Turn)
        await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert interrupted.outcome == "interrupted"
    assert clear.turn == 1
    heard = interrupted.heard.split()
    assert 0 < len(heard) < 30
    assert heard == [f"word{i}" for i in range(len(heard))]
    remembered = stage.llm.prompts[1][2]
    assert remembered == {"role": "assistant", "content": interrupted.heard + INTERRUPTED}
    assert stage.llm.num_aborted >= 1
    assert stage.tts.cancelled == [1]
    order = [m for m in caller.messages if isinstance(m, calls.Words | calls.Clear)]
    after = order[order.index(clear) + 1 :]
    assert all(w.start_sample >= clear.sample for m in after if isinstance(m, calls.Words) for w in m.words)


async def test_a_caller_who_goes_on_before_the_answer_is_one_turn(stage: Stage):
    stage.stt.texts = ["I would like to", "order a pizza."]
    stage.llm.failure, stage.llm.replies = "silent", ["Yes."]
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.Final)
        async with asyncio.timeout(5):
            await stage.llm.asked.wait()
        stage.llm.failure = "none"
        caller.say(hello())
        turn = await caller.until(calls.Turn)

    assert turn.turn == 1
    assert turn.text == "I would like to order a pizza."
    assert turn.outcome == "answered"


async def test_a_caller_who_goes_on_before_the_transcript_loses_no_word(stage: Stage):
    stage.stt.texts = ["I would like to", "order a pizza."]
    stage.stt.final_delay_s = 0.8
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "thinking")
        caller.say(hello())
        turn = await caller.until(calls.Turn)

    assert (turn.turn, turn.text) == (1, "I would like to order a pizza.")


async def test_sentences_that_arrive_in_a_burst_are_answered(stage: Stage):
    stage.stt.texts = ["One,", "two,", "three."]
    burst = np.concatenate([np.concatenate([hello(), silence(0.6)]) for _ in range(3)])
    async with stage.up() as base, calling(base) as caller:
        await caller.until(calls.Ready)
        for i in range(0, burst.size, 16000):
            await caller.connection.send(burst[i : i + 16000].tobytes())
        turn = await caller.until(calls.Turn)

    assert turn.outcome == "answered"
    assert turn.text == "One, two, three."


async def test_noise_and_empty_transcripts_get_no_answer(stage: Stage):
    stage.stt.texts = [""]
    async with stage.up() as base, calling(base) as caller:
        caller.say(white_noise(1.0, -30))
        caller.say(hello())
        turn = await caller.until(calls.Turn)
        await caller.until(calls.State, lambda s: s.state == "listening")

    assert turn.outcome == "empty"
    assert stage.llm.prompts == []
    assert caller.num_samples == 0


@pytest.mark.parametrize("failure", ["error", "silent", "drop"])
@pytest.mark.parametrize("service", ["stt", "llm"])
async def test_a_failing_service_is_apologised_for_and_the_next_turn_works(stage: Stage, service: str, failure: str):
    stage.settings = {"answer_deadline_s": 1.5}
    broken = getattr(stage, service)
    broken.failure = failure
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        failed = await caller.until(calls.Turn)
        await caller.until(calls.State, lambda s: s.state == "listening")
        broken.failure = "none"
        caller.say(hello())
        answered = await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert (failed.outcome, failed.latency_ms) == ("failed", None)
    assert "Sorry, I did not get that. Could you say it again?" in stage.tts.texts.values()
    assert caller.of(calls.Error)
    assert answered.outcome == "answered"


@pytest.mark.parametrize("failure", ["error", "silent", "drop"])
async def test_a_failing_voice_is_signalled_and_the_next_turn_works(stage: Stage, failure: str):
    stage.tts.failure = failure
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        failed = await caller.until(calls.Turn)
        stage.tts.failure = "none"
        await caller.until(calls.State, lambda s: s.state == "listening")
        caller.say(hello())
        answered = await caller.until(calls.Turn, lambda t: t.turn == 2)

    assert failed.outcome == "failed"
    assert caller.of(calls.Error)
    assert answered.outcome == "answered"


async def test_the_apology_for_a_voice_that_hung_is_spoken_when_it_is_back(stage: Stage):
    stage.tts.failure = "silent"
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.Turn)
        stage.tts.failure = "none"
        await caller.until(calls.State, lambda s: s.state == "listening")

    assert "Sorry, I did not get that. Could you say it again?" in stage.tts.texts.values()
    assert caller.num_samples == pytest.approx(11 * SECONDS_PER_WORD * OUTPUT_HZ, abs=50)


async def test_an_answer_that_breaks_off_is_heard_as_far_as_it_got(stage: Stage):
    stage.llm.replies = ["One two, three four five six seven eight nine ten."]
    stage.llm.failure, stage.llm.fail_half_way = "drop", True
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        turn = await caller.until(calls.Turn)

    assert turn.outcome == "failed"
    assert turn.heard.startswith("One two,")


async def test_hangup_ends_the_call_cleanly_mid_answer(stage: Stage):
    stage.llm.replies = ["word " * 60]
    stage.llm.token_s = 0.05
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until(calls.State, lambda s: s.state == "speaking")
        await caller.send(calls.Hangup())
        assert (await caller.until(calls.Bye)).reason == "hangup"
        assert await caller.until_closed() == 1000
        async with asyncio.timeout(5):
            await stage.llm.aborted.wait()


async def test_a_turn_that_the_hangup_cuts_off_is_told_before_the_bye(stage: Stage):
    stage.llm.replies = ["word " * 60]
    async with stage.up() as base, calling(base, acknowledges=True) as caller:
        caller.say(hello())
        await caller.until_audio(0.5)
        await caller.send(calls.Hangup())
        await caller.until(calls.Bye)

    [turn] = caller.of(calls.Turn)
    assert caller.messages.index(turn) < caller.messages.index(caller.of(calls.Bye)[0])
    assert (turn.outcome, turn.text) == ("interrupted", "Hello there.")
    assert 0 < len(turn.heard.split()) < 60
    assert turn.latency_ms == pytest.approx(sum(turn.stages_ms.values()), abs=0.2)


async def test_a_turn_cut_off_before_its_answer_is_told_without_latency(stage: Stage):
    stage.llm.failure = "silent"
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until_audio(0.3)  # of the filler, which is no answer
        await caller.send(calls.Hangup())
        await caller.until(calls.Bye)

    [turn] = caller.of(calls.Turn)
    assert (turn.outcome, turn.text, turn.heard, turn.latency_ms) == ("interrupted", "Hello there.", "", None)


async def test_a_turn_that_the_end_of_the_drain_cuts_off_is_told_before_the_bye(stage: Stage):
    stage.llm.replies = ["word " * 100]
    stage.edge = EdgeConfig(port=0, drain_timeout_s=0.5)
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        await caller.until_audio(0.1)
        stage.lifecycle.draining = True
        assert (await caller.until(calls.Bye)).reason == "drain"

    assert [turn.outcome for turn in caller.of(calls.Turn)] == ["interrupted"]


async def test_no_call_is_promised_while_draining(stage: Stage):
    async with stage.up() as base, aiohttp.ClientSession() as http:
        for draining, status in ((False, 200), (True, 503)):
            stage.lifecycle.draining = draining
            async with http.get(f"{base}/v1/calls") as response:
                assert response.status == status
                body = await response.json()
    assert body["error"]["code"] == "unavailable"


async def test_a_vanished_caller_frees_the_line(stage: Stage):
    stage.settings = {"max_calls": 1}
    async with stage.up() as base:
        async with calling(base) as caller:
            await caller.until(calls.Ready)
            caller.connection.transport.abort()
        async with asyncio.timeout(5):
            while True:
                async with calling(base) as second:
                    first = await second.until(calls.Ready | calls.Error)  # type: ignore[type-var]
                    if isinstance(first, calls.Ready):
                        break


async def test_the_call_after_the_last_line_is_refused_and_told_when_to_come_back(stage: Stage):
    stage.settings = {"max_calls": 1}
    async with stage.up() as base, calling(base) as first:
        await first.until(calls.Ready)
        async with calling(base) as second:
            refused = await second.until(calls.Error)
            assert await second.until_closed() == 1013

    assert refused.code == "overloaded"
    assert refused.retry_after_ms is not None
    assert refused.retry_after_ms >= 1000


async def test_a_silent_caller_is_asked_and_then_let_go(stage: Stage):
    stage.settings = {"idle_after_s": 0.5}
    async with stage.up() as base, calling(base) as caller:
        assert (await caller.until(calls.Bye)).reason == "idle"
        assert await caller.until_closed() == 1000

    assert list(stage.tts.texts.values()) == ["Are you still there?", "Thank you for calling. Goodbye."]
    assert caller.num_samples > 8 * SECONDS_PER_WORD * OUTPUT_HZ - 100  # the goodbye was heard to its end


async def test_the_longest_call_ends_with_a_goodbye(stage: Stage):
    stage.settings = {"max_call_s": 0.5}
    async with stage.up() as base, calling(base) as caller:
        assert (await caller.until(calls.Bye)).reason == "max_length"

    assert list(stage.tts.texts.values()) == ["Thank you for calling. Goodbye."]


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (b"\0\0", "no_hello"),
        ("garbage", "bad_json"),
        ('{"type":"hello","version":9}', "bad_version"),
        ('{"type":"hello","version":1,"sample_rate_hz":11025}', "bad_message"),
        ('{"type":"hello","version":1,"langauge":"en"}', "bad_message"),
        ('{"type":"hangup"}', "no_hello"),
    ],
)
async def test_a_broken_hello_is_one_clear_error(stage: Stage, first: str | bytes, code: str):
    from websockets.asyncio.client import connect

    from wire.messages import decode

    async with stage.up() as base, connect(base.replace("http", "ws") + "/v1/calls", proxy=None) as connection:
        await connection.send(first)
        error = decode(await connection.recv(), calls.SERVER_MESSAGES)  # type: ignore[arg-type]
        assert isinstance(error, calls.Error)
        assert error.code == code
        await connection.wait_closed()
        assert connection.close_code == 1008


async def test_an_unknown_voice_is_one_clear_error(stage: Stage):
    async with stage.up() as base, calling(base, calls.Hello(1, voice="nobody")) as caller:
        assert (await caller.until(calls.Error)).code == "unknown_voice"
        assert await caller.until_closed() == 1008


@pytest.mark.parametrize("payload", [b"\0", bytes(64002), "{", '{"type":"hello","version":1}', '{"type":"played"}'])
async def test_a_broken_message_ends_that_call_only(stage: Stage, payload: str | bytes):
    stage.settings = {"max_calls": 2}
    async with stage.up() as base, calling(base) as good, calling(base) as bad:
        await bad.until(calls.Ready)
        await bad.connection.send(payload)
        await bad.until(calls.Error)
        assert await bad.until_closed() == 1008
        good.say(hello())
        assert (await good.until(calls.Turn)).outcome == "answered"


async def test_two_calls_do_not_hear_each_other(stage: Stage):
    stage.settings = {"max_calls": 2}
    async with stage.up() as base, calling(base) as talker, calling(base) as listener:
        talker.say(hello())
        await talker.until(calls.Turn)

    assert talker.num_samples > 0
    assert listener.num_samples == 0
    assert not listener.of(calls.Turn)


async def test_the_language_model_is_asked_whether_the_words_end_a_sentence(stage: Stage):
    stage.stt.texts = ["They took the cross."]
    stage.llm.likely = {" bus": -0.1}
    async with stage.up() as base, calling(base) as caller:
        caller.say(hello())
        turn = await caller.until(calls.Turn)

    assert stage.llm.expected_after
    assert set(stage.llm.expected_after) == {"<|endoftext|>They took the cross"}
    assert turn.outcome == "answered"
