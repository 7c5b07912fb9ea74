"""From the end of a turn to speech: final transcript, LLM, units of text to the voice.

One `Answering` serves one attempt at one turn. It only ever appends: whoever withdraws it cancels its task, which
closes the LLM's stream and with it the work upstream.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeAlias

from voice import metrics
from voice.budget import Waterfall
from voice.chunker import Chunker
from voice.clients.llm import LlmClient
from voice.history import History
from voice.mouth import Mouth, Utterance
from voice.said import Said
from voice.speculation import Speculation
from wire import calls
from wire.errors import DeadlineExceeded, Unavailable
from wire.request import RequestContext

Outcome: TypeAlias = Literal["answered", "interrupted", "failed", "empty"]

FIRST_CLAUSE_S = 0.12  # after the first token: what there is by then is spoken, clause or not


@dataclass
class Answering:
    """The context's deadline is for the first audio."""

    said: Said
    llm: LlmClient
    mouth: Mouth
    history: History
    waterfall: Waterfall
    context: RequestContext
    speculation: Speculation | None
    user_text: str = ""
    heard: str = ""  # of an answer that is over
    utterance: Utterance | None = None  # from its first unit of text on
    tasks: tuple[asyncio.Task[None], ...] = ()  # what `cancel` ends

    def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()

    async def transcribe(self) -> str:
        """The caller's whole turn. Raises: WireError."""
        self.user_text = await self.said.words()
        self.waterfall.mark("stt", time.monotonic())
        return self.user_text

    async def speak(self, turn: int) -> None:
        """Generate the answer and hand it to the voice unit by unit. Raises: WireError."""
        if self.speculation is not None and self.speculation.prefill is not None:
            await asyncio.wait([self.speculation.prefill], timeout=self._left_s())
        chunker = Chunker()
        clause_due_s: float | None = None
        messages = self.history.prompt(self.user_text)
        async with aclosing(self.llm.answer(messages, self.context)) as deltas:
            async for delta in deltas:
                now = time.monotonic()
                if self.utterance is not None:
                    self.utterance.expect()
                self.waterfall.mark("llm_first_token", now)
                clause_due_s = clause_due_s or now + FIRST_CLAUSE_S
                for unit in chunker.push(delta):
                    await self._say(turn, unit)
                if now >= clause_due_s and (unit_now := chunker.due()):
                    await self._say(turn, unit_now)
        if rest := chunker.finish():
            await self._say(turn, rest)
        if self.utterance is None:
            raise Unavailable("the LLM said nothing")
        await self.mouth.finish(self.utterance)

    def record(self, turn: int, outcome: Outcome, heard: str) -> calls.Turn:
        """The turn's line for the caller, the log and Prometheus."""
        metrics.TURNS.labels(outcome).inc()
        stages_ms = {}
        if self.waterfall.complete:
            metrics.TURN_LATENCY.observe(self.waterfall.latency_s)
            for stage, seconds in self.waterfall.stages_s.items():
                metrics.STAGE.labels(stage).observe(seconds)
                stages_ms[str(stage)] = round(1000 * seconds, 1)
        latency_ms = round(sum(stages_ms.values()), 1) if stages_ms else None
        return calls.Turn(turn, outcome, self.user_text, heard, latency_ms, stages_ms)

    def _left_s(self) -> float:
        left = self.context.left_s(time.monotonic())
        if left <= 0:
            raise DeadlineExceeded("the turn's budget is spent")
        return left

    async def _say(self, turn: int, unit: str) -> None:
        if self.utterance is None:
            await self.mouth.wait_free()  # a filler is heard to its end
        is_first = self.utterance is None or not self.utterance.text.strip()
        left_s = (
            self._left_s() if is_first else None
        )  # may raise: then nothing must have begun, which nothing would end
        if self.utterance is None:
            self.utterance = self.mouth.begin("answer", turn)
        if is_first and unit.strip():
            self.waterfall.mark("llm_first_clause", time.monotonic())
        await self.mouth.say(self.utterance, unit, left_s)
