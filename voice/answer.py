"""From what a caller has said to speech: LLM, units of text to the voice.

One `Answering` serves one attempt at one turn. It may begin while a pause may still turn out to be the end of the turn
(a revision), and then goes as far as `allow` lets it:

    PREFILL    the LLM computes the prompt
    GENERATE   the LLM answers
    SPEAK      the first unit of text is spoken, and the mouth holds it

`commit` says that the turn is over, `confirm` what the caller said in it: the same words, and what is held is let go;
others, and it begins anew. Nothing can be observed before. Whoever withdraws an attempt cancels it, which closes the
LLM's stream and with it the work upstream.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from voice import metrics
from voice.budget import Stage, Waterfall
from voice.chunker import MIN_FIRST_WORDS, Chunker, length
from voice.clients.llm import LlmClient
from voice.history import History, Message
from voice.mouth import Mouth, Utterance
from wire import calls
from wire.errors import DeadlineExceeded, Unavailable, WireError
from wire.request import RequestContext

logger = logging.getLogger(__name__)

Outcome: TypeAlias = Literal["answered", "interrupted", "failed", "empty"]
Generation: TypeAlias = "asyncio.Task[WireError | None]"

FIRST_CLAUSE_S = 0.12  # after the first token: what there is by then is spoken, clause or not ...
HASTY_CLAUSE_S = 0.04  # ... or after this, two words of it, if nobody has spoken for PATIENT_S
PATIENT_S = 0.32  # with 60 ms of synthesis and a word or two, 450 from the caller's last
CHARACTERS_PER_S = 16.0  # of quick speech
AHEAD_S = 0.2  # that the next unit is handed over, at the latest, before the voice falls silent: synthesis, and slack
MIN_WORDS = 3  # of a unit that is handed over for this reason
PREFILL_S = 2.0  # a prompt of a long call takes a second on a CPU; what takes longer comes too late


class Tier(IntEnum):
    PREFILL = 1
    GENERATE = 2
    SPEAK = 3


class Answering:
    """`number` is the turn's. The context's deadline is for the first audio."""

    def __init__(
        self,
        number: int,
        *,
        llm: LlmClient,
        mouth: Mouth,
        history: History,
        context: RequestContext,
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        self.number = number
        self.user_text = ""
        self.heard = ""  # of an answer that is over
        self.utterance: Utterance | None = None  # from its first unit of text on
        self.tasks: tuple[asyncio.Task[None], ...] = ()  # what `cancel` ends, besides its own
        self.waterfall: Waterfall | None = None
        self.tier = Tier.PREFILL  # allowed before the turn was over
        self._silent_since_s = time.monotonic()
        self._spoken_until_s: float | None = None  # at the earliest: what the voice has been given
        self._llm, self._mouth, self._history = llm, mouth, history
        self._context = context
        self._spawn = spawn
        self._generation: Generation | None = None
        self._may_generate, self._may_speak = asyncio.Event(), asyncio.Event()
        self._confirmed = asyncio.Event()
        self._reached: list[Stage] = []  # before it was confirmed

    def begin(self, text: str) -> None:
        """Towards an answer to `text`, as far as is allowed."""
        self.user_text = text
        self._generation = self._spawn(self._generate())

    def allow(self, tier: Tier) -> None:
        self.tier = max(self.tier, tier)
        if self.tier >= Tier.GENERATE:
            self._may_generate.set()
        if self.tier >= Tier.SPEAK:
            self._may_speak.set()

    def commit(self, waterfall: Waterfall, deadline_s: float) -> None:
        """The turn is over. What has failed by now is made anew, and what fails from now on has failed."""
        if self._generation is not None and self._has_failed:
            self._forget()
        self.waterfall = waterfall
        self._silent_since_s = waterfall.begun_s
        self._context = dataclasses.replace(self._context, deadline_s=deadline_s)
        self._may_generate.set()
        self._may_speak.set()

    async def confirm(self, text: str) -> bool:
        """The turn was `text`. Returns whether what was done by then is of use."""
        is_of_use = self._generation is not None and text == self.user_text
        if not is_of_use:
            self._forget()
            self.begin(text)
        assert self.waterfall is not None, "commit() first"
        for stage in self._reached:
            self.waterfall.mark(stage, time.monotonic())
        self._confirmed.set()
        if self.utterance is not None:
            self._note_spoken(self.utterance.text)
            await self._mouth.release(self.utterance)
        return is_of_use

    async def finish(self) -> None:
        """Until all of the answer is with the voice. Raises: WireError."""
        assert self._generation is not None, "confirm() first"
        if (error := await self._generation) is not None:
            raise error

    def mark(self, stage: Stage, now: float) -> None:
        """`stage` ended at `now`. What was done before the words were known cost the turn nothing."""
        if self.waterfall is not None and (self._confirmed.is_set() or stage == "stt"):
            self.waterfall.mark(stage, now)
        elif stage not in self._reached:
            self._reached.append(stage)

    def give_way(self) -> None:
        """Something else is to be said: what is held is dropped, to be made again once the words are known."""
        if not self._confirmed.is_set():
            self._forget()

    def cancel(self) -> None:
        """What the mouth has of it is for others to stop."""
        for task in self.tasks:
            task.cancel()
        if self._generation is not None:
            self._generation.cancel()

    def record(self, turn: int, outcome: Outcome, heard: str) -> calls.Turn:
        """The turn's line for the caller, the log and Prometheus."""
        metrics.TURNS.labels(outcome).inc()
        stages_ms = {}
        if self.waterfall is not None and self.waterfall.complete:
            metrics.TURN_LATENCY.observe(self.waterfall.latency_s)
            for stage, seconds in self.waterfall.stages_s.items():
                metrics.STAGE.labels(stage).observe(seconds)
                stages_ms[str(stage)] = round(1000 * seconds, 1)
        latency_ms = round(sum(stages_ms.values()), 1) if stages_ms else None
        return calls.Turn(turn, outcome, self.user_text, heard, latency_ms, stages_ms)

    @property
    def _has_failed(self) -> bool:
        assert self._generation is not None
        if self.utterance is not None and self.utterance.has_failed:
            return True
        return self._generation.done() and (self._generation.cancelled() or self._generation.result() is not None)

    def _forget(self) -> None:
        if self._generation is not None:
            self._generation.cancel()
        if self.utterance is not None:
            self._mouth.discard(self.utterance)
            self._spawn(self._mouth.hush(self.utterance))
        self._generation = self.utterance = self._spoken_until_s = None
        self._reached.clear()

    async def _generate(self) -> WireError | None:
        try:
            await self._answer()
        except WireError as error:
            return error
        return None

    async def _answer(self) -> None:
        """Raises: WireError."""
        messages = self._history.prompt(self.user_text)
        if not self._may_generate.is_set():
            await self._prefill(messages)
            await self._may_generate.wait()
        chunker = Chunker()
        begun_s: float | None = None
        async with aclosing(self._llm.answer(messages, self._context)) as deltas:
            async for delta in deltas:
                now = time.monotonic()
                if self.utterance is not None:
                    self.utterance.expect()
                self.mark("llm_first_token", now)
                begun_s = begun_s or now
                for unit in chunker.push(delta):
                    await self._say(unit)
                if unit_now := self._due(chunker, now, now - begun_s):
                    await self._say(unit_now)
        if rest := chunker.finish():
            await self._say(rest)
        if self.utterance is None:
            raise Unavailable("the LLM said nothing")
        await self._mouth.finish(self.utterance)

    def _due(self, chunker: Chunker, now: float, generated_s: float) -> str | None:
        """A unit that no mark ends yet, for which there is no more time."""
        if self.utterance is not None and self.utterance.text.strip():
            is_late = self._spoken_until_s is not None and now >= self._spoken_until_s - AHEAD_S
            return chunker.due(MIN_WORDS) if is_late else None
        if generated_s >= FIRST_CLAUSE_S:
            return chunker.due()
        if generated_s >= HASTY_CLAUSE_S and now - self._silent_since_s >= PATIENT_S:
            return chunker.due(MIN_FIRST_WORDS)
        return None

    def _note_spoken(self, text: str) -> None:
        """`text` begins to be spoken now, or when what came before has been."""
        begin_s = max(time.monotonic(), self._spoken_until_s or 0.0)
        self._spoken_until_s = begin_s + length(text) / CHARACTERS_PER_S

    async def _prefill(self, messages: list[Message]) -> None:
        """Only time is lost when it fails."""
        try:
            context = dataclasses.replace(self._context, deadline_s=time.monotonic() + PREFILL_S)
            await self._llm.prefill(messages, context)
        except WireError as error:
            logger.debug("call %s: no prefill: %s", self._context.call, error)

    def _left_s(self) -> float:
        left = self._context.left_s(time.monotonic())
        if left <= 0:
            raise DeadlineExceeded("the turn's budget is spent")
        return left

    async def _say(self, unit: str) -> None:
        if self.utterance is not None and self.utterance.text.strip():
            await self._confirmed.wait()
            self._note_spoken(unit)
            await self._mouth.say(self.utterance, unit)
            return
        await self._may_speak.wait()
        if self.utterance is None:
            await self._mouth.wait_free()  # a filler is heard to its end
        left_s = self._left_s()  # may raise: then nothing must have begun, which nothing would end
        if self.utterance is None:
            self.utterance = self._mouth.begin("answer", self.number, is_held=not self._confirmed.is_set())
        if unit.strip():
            self.mark("llm_first_clause", time.monotonic())
            if self._confirmed.is_set():
                self._note_spoken(unit)
        await self._mouth.say(self.utterance, unit, left_s)
