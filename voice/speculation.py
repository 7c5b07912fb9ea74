"""Work done while a pause may still turn out to be the end of the turn: recognition, and an answer ahead of its time.

How far it goes depends on how likely the end is, and on what callers who wait leave of the capacity. Nothing of it is
observable, and it is void as soon as the caller goes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from voice import metrics
from voice.answer import PREFILL_S, Answering, Tier
from voice.clients.llm import LlmClient
from voice.clients.stt import SttClient
from voice.history import History
from wire.errors import WireError
from wire.request import RequestContext

logger = logging.getLogger(__name__)

DEADLINE_S = 1.5  # no wait for the end of a turn is longer
EXPECTATION_S = 0.3  # for what the language model expects after the words: most turns are over by then
# Probability of the end at and above which a tier begins. Not tuned: of 59 answers begun so all were of use
# (docs/measurements.md, the turn), but the callers there made no pauses within their sentences.
LIKELY = {Tier.GENERATE: 0.3, Tier.SPEAK: 0.5}


class Allowance:
    """In how many calls of a process answers may be made ahead: as many as `limit` leaves beside callers who wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: set[str] = set()
        self._ahead: set[str] = set()

    @property
    def num_ahead(self) -> int:
        return len(self._ahead)

    def has_room(self, call: str) -> bool:
        return call in self._ahead or len(self._ahead) + len(self._waiting) < self._limit

    def grant(self, call: str) -> bool:
        if not self.has_room(call):
            return False
        self._ahead.add(call)
        return True

    def note_waiting(self, call: str) -> None:
        """Its turn is over, and the caller hears nothing yet."""
        self._ahead.discard(call)
        self._waiting.add(call)

    def give_back(self, call: str) -> None:
        self._ahead.discard(call)
        self._waiting.discard(call)


@dataclass
class Revision:
    """Recognition up to `end_sample` of a connection, and the attempt at an answer that begins with its words."""

    connection: int
    end_sample: int
    attempt: Answering
    recognition: asyncio.Task[None] | None = None
    begun_s: float | None = None  # the attempt
    probability: float = 0.0

    def note_use(self, over_s: float, *, is_of_use: bool) -> None:
        """The turn was over at `over_s`, and the attempt went on from there, or began anew."""
        if self.begun_s is None:
            return
        tier = self.attempt.tier.name.lower()
        metrics.REVISIONS.labels(tier, "used" if is_of_use else "other_words").inc()
        if is_of_use:
            metrics.REVISION_LEAD.labels(tier).observe(max(0.0, over_s - self.begun_s))
        else:
            metrics.REVISION_WASTE.labels(tier).observe(time.monotonic() - self.begun_s)


class Speculator:
    def __init__(
        self,
        call: str,
        *,
        stt: SttClient,
        llm: LlmClient,
        history: History,
        allowance: Allowance,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        on_words: Callable[[str], bool],
        on_expected: Callable[[float], None],
    ) -> None:
        """`on_words` gets the words of the turn so far, while its pause lasts, and tells whether it matters what the
        language model expects after them; `on_expected` gets that, log P of a full stop.
        """
        self._call = call
        self._stt, self._llm, self._history = stt, llm, history
        self._allowance = allowance
        self._spawn = spawn
        self._on_words, self._on_expected = on_words, on_expected
        self._present: Revision | None = None

    def begin(self, attempt: Answering, heard_before: str) -> None:
        """The caller pauses; `heard_before` are words of this turn that recognition is done with."""
        self.drop()
        self._present = Revision(self._stt.num_connections, self._stt.position, attempt)
        self._present.recognition = self._spawn(self._recognise(self._present, heard_before))

    def note(self, probability: float) -> None:
        """How likely the pause is the end of the turn, by now."""
        if self._present is not None:
            self._present.probability = probability
            self._allow(self._present)

    def drop(self) -> None:
        """The caller goes on: what was or will be made for this pause is void."""
        dropped, self._present = self._present, None
        if dropped is not None:
            self.void(dropped)

    def void(self, revision: Revision) -> None:
        """One that was taken, perhaps, and is of no use."""
        attempt, tier = revision.attempt, revision.attempt.tier.name.lower()
        self._allowance.give_back(self._call)
        if revision.recognition is not None:
            revision.recognition.cancel()
        attempt.give_way()
        attempt.cancel()
        if revision.begun_s is not None:
            metrics.REVISIONS.labels(tier, "dropped").inc()
            metrics.REVISION_WASTE.labels(tier).observe(time.monotonic() - revision.begun_s)

    def take(self) -> Revision | None:
        """The turn has ended in this pause: its revision, if one was begun and recognition was not lost since."""
        taken = self._present
        if taken is None or taken.connection != self._stt.num_connections:
            self.drop()
            return None
        self._present = None
        if taken.recognition is not None:
            taken.recognition.cancel()  # of what is asked for in earnest now
        return taken

    def warm(self) -> None:
        """Have the worker compute the KV of the conversation so far. Only time is lost when it fails."""
        self._spawn(self._warm())

    def _allow(self, revision: Revision) -> None:
        for tier, likely in LIKELY.items():
            if revision.probability >= likely and self._allowance.grant(self._call):
                revision.attempt.allow(tier)

    async def _recognise(self, revision: Revision, heard_before: str) -> None:
        try:
            text = await self._stt.speculate(revision.end_sample, DEADLINE_S)
        except WireError as error:
            logger.debug("call %s: no speculation: %s", self._call, error)
            return
        if words := f"{heard_before} {text}".strip():
            revision.begun_s = time.monotonic()
            revision.attempt.begin(words)
            if self._on_words(words):
                await self._expect(words)

    async def _expect(self, words: str) -> None:
        """The turn ends without it when it fails."""
        try:
            context = RequestContext(self._call, deadline_s=time.monotonic() + EXPECTATION_S)
            stop_logprob = await self._llm.stop_logprob(words, context)
        except WireError as error:
            logger.debug("call %s: nothing expected: %s", self._call, error)
            return
        if stop_logprob is not None:
            self._on_expected(stop_logprob)

    async def _warm(self) -> None:
        try:
            context = RequestContext(self._call, deadline_s=time.monotonic() + PREFILL_S)
            await self._llm.prefill(self._history.prompt(), context)
        except WireError as error:
            logger.debug("call %s: no prefill: %s", self._call, error)
