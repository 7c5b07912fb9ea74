"""Work done while a pause may still turn out to be the end of the turn: recognition, and warming the LLM.

Nothing of it is observable. What belongs to an earlier pause is void: the caller went on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from voice.clients.llm import LlmClient
from voice.clients.stt import SttClient
from voice.history import History, Message
from wire.errors import WireError
from wire.request import RequestContext

logger = logging.getLogger(__name__)

DEADLINE_S = 1.0  # no wait for the end of a turn is longer


@dataclass
class Speculation:
    """A transcript up to `end_sample` of the recognition stream, and the task that warms the LLM with it."""

    text: str
    end_sample: int
    prefill: asyncio.Task[None] | None


class Speculator:
    def __init__(
        self,
        call: str,
        stt: SttClient,
        llm: LlmClient,
        history: History,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._call = call
        self._stt = stt
        self._llm = llm
        self._history = history
        self._spawn = spawn
        self._num_pauses = 0
        self._made: Speculation | None = None

    def begin(self, heard_before: str) -> None:
        """The caller pauses; `heard_before` are words of this turn that recognition is done with."""
        self._spawn(self._recognise(self._num_pauses, heard_before))

    def drop(self) -> None:
        """The caller goes on, or the turn is over: what was or will be made for this pause is void."""
        self._num_pauses += 1
        if self._made is not None and self._made.prefill is not None:
            self._made.prefill.cancel()
        self._made = None

    def take(self) -> Speculation | None:
        """The speculation for the present pause, if it is there; the caller of this owns it from here."""
        made, self._made = self._made, None
        self._num_pauses += 1
        return made

    def warm(self, user_text: str = "") -> asyncio.Task[None]:
        """Have the worker compute the KV of the conversation so far. Only time is lost when it fails."""
        return self._spawn(self._prefill(self._history.prompt(user_text)))

    async def _recognise(self, pause: int, heard_before: str) -> None:
        try:
            text, end_sample = await self._stt.speculate(DEADLINE_S)
        except WireError as error:
            logger.debug("call %s: no speculation: %s", self._call, error)
            return
        if pause == self._num_pauses:
            words = f"{heard_before} {text}".strip()
            self._made = Speculation(text, end_sample, self.warm(words) if words else None)

    async def _prefill(self, messages: list[Message]) -> None:
        try:
            await self._llm.prefill(messages, RequestContext(self._call))
        except WireError as error:
            logger.debug("call %s: no prefill: %s", self._call, error)
