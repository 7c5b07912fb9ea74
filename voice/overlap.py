"""A caller who speaks over the agent: does he want the turn?

The agent is softer at once, silent soon after, and goes on from the very sample if it was nothing: a cough, an echo, a
word that only tells that somebody listens. Other words take the turn. Speech that goes on takes it whatever the words
are; that is for the call to see.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from voice.backchannel import Backchannels
from voice.clients.stt import SttClient
from voice.ears import Ears
from voice.media.echo import EchoGuard
from voice.mouth import Mouth
from voice.playout import Playout
from wire import calls
from wire.errors import WireError

logger = logging.getLogger(__name__)

PAUSE_AFTER_S = 0.096  # speech over the agent's that silences it, to go on if it was nothing
JUDGE_S = 1.0  # for the words: so long the agent is silent


class Overlap:
    """`rewind` tells the caller to drop what he has not heard; None where he cannot. `on_take` with the sample up to
    which the words that take the turn are known; None while they are under way.
    """

    def __init__(
        self,
        *,
        backchannels: Backchannels,
        duck_db: float,
        mouth: Mouth,
        playout: Playout,
        echo: EchoGuard,
        ears: Ears,
        stt: SttClient,
        rewind: Callable[[calls.Rewind], None] | None,
        on_take: Callable[[int | None], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._backchannels = backchannels
        self._soft = 10 ** (-duck_db / 20)
        self._mouth, self._playout, self._echo = mouth, playout, echo
        self._ears, self._stt = ears, stt
        self._rewind, self._on_take = rewind, on_take
        self._spawn = spawn
        self._judging: asyncio.Task[None] | None = None
        self._num_utterances = 0

    @property
    def is_judging(self) -> bool:
        return self._judging is not None

    def begin(self) -> None:
        """Somebody speaks."""
        self._num_utterances += 1
        self._playout.duck(self._soft)
        self._take_back()

    def go_on(self, speech_s: float) -> None:
        """He has spoken for so long."""
        if speech_s >= PAUSE_AFTER_S and self._mouth.is_audible and not self._mouth.is_paused:
            self._take_back()
            self._mouth.pause()

    def pause(self) -> None:
        """He pauses: were these words that take the turn?"""
        if self._mouth.is_paused:
            self.stop_judging()
            self._judging = self._spawn(self._judge(self._stt.position, self._num_utterances))

    def stop_judging(self) -> None:
        if self._judging is not None:
            self._judging.cancel()
            self._judging = None

    def read(self, text: str) -> None:
        """What he has said so far."""
        if self._mouth.is_paused and not self._backchannels.match(text):
            self._on_take(None)

    def end(self) -> None:
        """He is silent."""
        if self._judging is None:
            self._give_back()

    def _take_back(self) -> None:
        if self._rewind is not None:
            sent = self._playout.sent
            sample = self._playout.take_back(time.monotonic())
            self._echo.take_back(sent - sample)
            self._rewind(calls.Rewind(sample))

    def _give_back(self) -> None:
        """It was nothing."""
        self._playout.duck(1.0)
        if self._mouth.is_paused:
            self._mouth.resume(time.monotonic())
        if not self._ears.in_speech:
            self._spawn(self._ears.forget(self._stt.position))

    async def _judge(self, end_sample: int, utterance: int) -> None:
        try:
            text = await self._stt.speculate(end_sample, JUDGE_S)
        except WireError as error:
            logger.debug("what was said over the agent is not known: %s", error)
            text = ""
        self._judging = None
        is_answer = bool(text) and self._mouth.has_asked(time.monotonic())
        if not self._backchannels.match(text) or is_answer:
            self._on_take(end_sample)
        elif self._num_utterances == utterance:
            self._give_back()
        else:  # he has begun again, and is judged by that
            self._spawn(self._ears.forget(end_sample))
