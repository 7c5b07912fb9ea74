"""Work done while a pause may still turn out to be the end of the turn: recognition, and warming the LLM.

Nothing of it is observable. What belongs to an earlier pause is void: the caller went on.
"""

from __future__ import annotations

import asyncio
import logging
import time
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
PREFILL_S = 2.0  # a prompt of a long call takes a second on a CPU; what takes longer comes too late


@dataclass
class Speculation:
    """Recognition up to `end_sample` of a connection, under way or done, and the task that warms the LLM with it."""

    connection: int
    end_sample: int
    prefill: asyncio.Task[None] | None = None


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
        self._present: Speculation | None = None

    def begin(self, heard_before: str) -> None:
        """The caller pauses; `heard_before` are words of this turn that recognition is done with."""
        self._present = Speculation(self._stt.num_connections, self._stt.position)
        self._spawn(self._recognise(self._present, heard_before))

    def drop(self) -> None:
        """The caller goes on: what was or will be made for this pause is void."""
        dropped, self._present = self._present, None
        if dropped is not None and dropped.prefill is not None:
            dropped.prefill.cancel()

    def take(self) -> Speculation | None:
        """The turn has ended in this pause: its speculation, if one was begun and recognition was not lost since."""
        taken, self._present = self._present, None
        return taken if taken is not None and taken.connection == self._stt.num_connections else None

    def warm(self, user_text: str = "") -> asyncio.Task[None]:
        """Have the worker compute the KV of the conversation so far. Only time is lost when it fails."""
        return self._spawn(self._prefill(self._history.prompt(user_text)))

    async def _recognise(self, speculation: Speculation, heard_before: str) -> None:
        try:
            text = await self._stt.speculate(speculation.end_sample, DEADLINE_S)
        except WireError as error:
            logger.debug("call %s: no speculation: %s", self._call, error)
            return
        if speculation is self._present and (words := f"{heard_before} {text}".strip()):
            speculation.prefill = self.warm(words)

    async def _prefill(self, messages: list[Message]) -> None:
        try:
            deadline_s = time.monotonic() + PREFILL_S
            await self._llm.prefill(messages, RequestContext(self._call, deadline_s=deadline_s))
        except WireError as error:
            logger.debug("call %s: no prefill: %s", self._call, error)
