"""An attempt at an answer, before and after the turn is over, on scripted services behind their real protocols."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.fakes import Failure, FakeLlm, FakeTts
from tests.serving import serving
from voice.answer import Answering, Tier
from voice.budget import Stage, Waterfall
from voice.clients.llm import LlmClient
from voice.clients.tts import TtsClient
from voice.history import History
from voice.mouth import Mouth, Utterance
from voice.outbox import Payload, Written
from voice.playout import Playout
from wire import calls
from wire.config import EdgeConfig
from wire.errors import DeadlineExceeded
from wire.request import RequestContext
from wire.service import Lifecycle

ANSWER = "This is my answer, and it goes on. Really."


@dataclass
class Agent:
    """What an attempt needs of a call, and what the caller would get."""

    llm: FakeLlm = field(default_factory=lambda: FakeLlm(replies=[ANSWER]))
    tts: FakeTts = field(default_factory=FakeTts)
    told: list[Payload] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        async with (
            serving(self.llm.app(), Lifecycle("llm"), EdgeConfig(port=0)) as llm_url,
            serving(self.tts.app(), Lifecycle("tts"), EdgeConfig(port=0)) as tts_url,
            asyncio.TaskGroup() as self.tasks,
        ):
            self.client = LlmClient(llm_url, "m", key=None, temperature=0.0, max_tokens=80, prefill_tokens=0)
            await self.client.open()
            voice = TtsClient(
                tts_url,
                key=None,
                call="c",
                voice=None,
                on_event=lambda event: self.mouth.on_event(event),
                on_lost=lambda: None,
            )
            self.mouth = Mouth(
                voice,
                Playout(24000, 0.16),
                post=self._post,
                on_audio=lambda utterance: self._mark(utterance, "tts", time.monotonic()),
                on_audible=lambda utterance, now: self._mark(utterance, "playout", now),
                on_said=lambda utterance, heard: self.said.set(),
                language="en",
            )
            self.said = asyncio.Event()
            running = [self.tasks.create_task(voice.link.run()), self.tasks.create_task(self.mouth.run())]
            await voice.link.wait_ready(time.monotonic() + 5)
            self.attempt = Answering(
                1,
                llm=self.client,
                mouth=self.mouth,
                history=History("", 1),
                context=RequestContext("c", 1, 1, time.monotonic() + 5),
                spawn=self.tasks.create_task,
            )
            try:
                yield
            finally:
                self.attempt.cancel()
                for task in running:
                    task.cancel()
                await self.client.close()

    def _post(self, payload: Payload, written: Written | None) -> None:
        self.told.append(payload)
        if written is not None:
            written(time.monotonic())

    def _mark(self, utterance: Utterance, stage: Stage, now: float) -> None:
        if utterance is self.attempt.utterance:
            self.attempt.mark(stage, now)

    def commit(self) -> None:
        self.attempt.commit(Waterfall(time.monotonic() - 0.2), time.monotonic() + 5)
        assert self.attempt.waterfall is not None
        self.attempt.waterfall.mark("endpointing", time.monotonic())
        self.attempt.mark("stt", time.monotonic())

    @property
    def reply(self) -> str:
        return "".join(message.delta for message in self.told if isinstance(message, calls.Reply))

    @property
    def num_samples(self) -> int:
        return sum(pcm.size for pcm in self.told if isinstance(pcm, np.ndarray))


@pytest.fixture
def agent() -> Agent:
    return Agent()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - of services that tell nobody
            await asyncio.sleep(0.005)


async def test_the_first_words_are_ready_and_nobody_knows_until_the_turn_is_over(agent: Agent) -> None:
    async with agent.up():
        agent.attempt.allow(Tier.SPEAK)
        agent.attempt.begin("Hello there.")
        await until(lambda: agent.tts.texts)
        await asyncio.sleep(0.3)  # the audio of the first unit has long come
        assert not agent.told
        assert list(agent.tts.texts.values()) == ["This is my answer,"]

        agent.commit()
        assert await agent.attempt.confirm("Hello there.")
        await agent.attempt.finish()
        await agent.said.wait()

        assert agent.reply == ANSWER
        assert agent.num_samples > 0
        assert agent.attempt.waterfall is not None
        stages_s = agent.attempt.waterfall.stages_s
        assert stages_s["llm_first_token"] + stages_s["llm_first_clause"] + stages_s["tts"] < 0.05
        assert len(agent.llm.prompts) == 1


async def test_an_answer_to_other_words_is_never_told(agent: Agent) -> None:
    agent.llm.replies = ["Wrong, all of it.", ANSWER]
    async with agent.up():
        agent.attempt.allow(Tier.SPEAK)
        agent.attempt.begin("Hello.")
        await until(lambda: agent.tts.texts)
        agent.commit()

        assert not await agent.attempt.confirm("Hello there.")
        await agent.attempt.finish()
        await agent.said.wait()

        assert agent.reply == ANSWER
        assert [m[-1]["content"] for m in agent.llm.prompts] == ["Hello.", "Hello there."]
        await until(lambda: agent.tts.cancelled == [1])
        words = [word.text for m in agent.told if isinstance(m, calls.Words) for word in m.words]
        assert words == ANSWER.split()


@pytest.mark.parametrize(
    ("tier", "num_prefills", "num_prompts"), [(Tier.PREFILL, 1, 0), (Tier.GENERATE, 0, 1), (Tier.SPEAK, 0, 1)]
)
async def test_a_tier_goes_no_further(agent: Agent, tier: Tier, num_prefills: int, num_prompts: int) -> None:
    async with agent.up():
        agent.attempt.allow(tier)
        agent.attempt.begin("Hello there.")
        await asyncio.sleep(0.3)

        assert (agent.llm.num_prefills, len(agent.llm.prompts)) == (num_prefills, num_prompts)
        assert bool(agent.tts.texts) == (tier == Tier.SPEAK)


async def test_tiers_follow_one_another_while_the_pause_lasts(agent: Agent) -> None:
    async with agent.up():
        agent.attempt.begin("Hello there.")
        await until(lambda: agent.llm.num_prefills == 1)
        agent.attempt.allow(Tier.GENERATE)
        await until(lambda: agent.llm.prompts)
        agent.attempt.allow(Tier.SPEAK)
        await until(lambda: agent.tts.texts)

        assert not agent.told


@pytest.mark.parametrize("silent_s", [0.0, 0.4])
async def test_who_has_waited_long_hears_fewer_words_first(agent: Agent, silent_s: float) -> None:
    agent.llm.replies = ["One two three four five six seven eight nine"]
    agent.llm.token_s = 0.03
    async with agent.up():
        agent.attempt.commit(Waterfall(time.monotonic() - silent_s), time.monotonic() + 5)
        agent.attempt.waterfall.mark("endpointing", time.monotonic())
        agent.attempt.mark("stt", time.monotonic())
        await agent.attempt.confirm("Hello.")
        await until(lambda: agent.tts.texts)

        [first] = agent.tts.texts.values()
        num_words = len(first.split())
        assert agent.llm.replies[0].startswith(first)
        assert num_words in {2, 3} if silent_s else num_words > 3


async def test_the_next_words_are_handed_over_before_the_voice_falls_silent(agent: Agent) -> None:
    """Also of a sentence that takes the model longer than its first words take to say."""
    agent.llm.replies = [" ".join(["Well, yes,", *(f"word{i}" for i in range(40))])]
    agent.llm.token_s = 0.05
    async with agent.up():
        agent.commit()
        await agent.attempt.confirm("Hello.")
        await until(lambda: agent.tts.texts)
        [first] = agent.tts.texts.values()
        await until(lambda: len(agent.tts.texts[1]) > len(first))
        second = agent.tts.texts[1][len(first) :]
        assert first.strip() == "Well, yes,"
        assert 3 <= len(second.split()) < 30


async def test_withdrawn_it_leaves_nothing_behind(agent: Agent) -> None:
    agent.llm.token_s = 0.05
    async with agent.up():
        agent.attempt.allow(Tier.SPEAK)
        agent.attempt.begin("Hello there.")
        await until(lambda: agent.tts.texts)
        assert agent.attempt.utterance is not None
        agent.attempt.give_way()
        agent.attempt.cancel()
        async with asyncio.timeout(2):
            await agent.llm.aborted.wait()
        await until(lambda: agent.tts.cancelled == [1])

        assert agent.mouth.is_free
        assert not agent.told


@pytest.mark.parametrize(("of", "failure"), [("llm", "error"), ("llm", "drop"), ("tts", "error")])
async def test_what_failed_before_the_turn_was_over_is_made_again(agent: Agent, of: str, failure: Failure) -> None:
    failing = agent.llm if of == "llm" else agent.tts
    failing.failure = failure
    async with agent.up():
        agent.attempt.allow(Tier.SPEAK)
        agent.attempt.begin("Hello there.")
        await until(lambda: agent.llm.prompts if of == "llm" else agent.tts.texts)
        await asyncio.sleep(0.2)
        failing.failure = "none"
        agent.commit()

        assert not await agent.attempt.confirm("Hello there.")
        await agent.attempt.finish()
        await agent.said.wait()

        assert agent.reply == ANSWER


async def test_what_is_held_gives_way_to_something_else_and_is_made_again(agent: Agent) -> None:
    async with agent.up():
        agent.attempt.allow(Tier.SPEAK)
        agent.attempt.begin("Hello there.")
        await until(lambda: agent.tts.texts)
        agent.commit()
        agent.attempt.give_way()
        assert agent.mouth.is_free
        filler = agent.mouth.begin("filler", 1)
        await agent.mouth.say(filler, "One moment.")
        await agent.mouth.finish(filler)

        await agent.attempt.confirm("Hello there.")
        await agent.attempt.finish()
        await agent.mouth.wait_free()

        assert agent.reply == ANSWER
        words = [word.text for m in agent.told if isinstance(m, calls.Words) for word in m.words]
        assert words == ["One", "moment.", *ANSWER.split()]


async def test_an_answer_that_comes_after_its_deadline_does_not_begin_and_leaves_the_mouth_free(agent: Agent) -> None:
    """What has begun without a word is ended by nobody: the call would wait for it for good."""
    async with agent.up():
        agent.attempt.commit(Waterfall(time.monotonic()), time.monotonic() - 1)
        with pytest.raises(DeadlineExceeded):
            await agent.attempt._say("Hello.")
        assert agent.attempt.utterance is None
        assert agent.mouth.is_free
