"""The caller's side of a call: audio in, decisions about it out, speech on its way to recognition.

Only speech goes to recognition, with `PREROLL_S` before it, because VAD notices a first consonant late.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator

import numpy as np

from voice.clients.stt import SttClient
from voice.config import EndpointingConfig
from voice.endpointing import (
    SAMPLE_RATE_HZ,
    START_WINDOWS,
    WINDOW_SAMPLES,
    Decision,
    Endpointer,
    NoiseEnded,
    Resumed,
    SpeechStarted,
    TurnEnded,
)
from voice.media.echo import EchoGuard
from voice.media.level import Loudness, rms, speech_end
from voice.media.resample import Resampler
from voice.media.vad import VadStream, is_silent
from wire.errors import Unavailable
from wire.pcm import Pcm16

logger = logging.getLogger(__name__)

PREROLL_S = 0.3
PAUSE_SAMPLES = 3 * WINDOW_SAMPLES  # of the pause tell how loud the line is without speech
ARRIVALS_KEPT_S = 2.0  # longer than any wait for the end of a turn


class Ears:
    """`hear` in the order of arrival; `utterance` is the audio of the present or last one, preroll included.

    `is_eager`: recognition is wanted in lulls, before VAD tells a pause.
    """

    def __init__(
        self,
        config: EndpointingConfig,
        language: str,
        vad: VadStream,
        stt: SttClient,
        echo: EchoGuard,
        from_hz: int,
    ) -> None:
        self._threshold = config.speech_threshold
        self._endpointer = Endpointer(config, language)
        self._echo = echo
        self._vad = vad
        self._stt = stt
        self._resampler = Resampler(from_hz, SAMPLE_RATE_HZ)
        self._window: Pcm16 = np.zeros(0, np.int16)
        self._is_window_silent = True  # False: it may be
        self._num_heard = 0
        self._arrivals: deque[tuple[int, float]] = deque()  # (samples heard, when)
        self._utterance: list[Pcm16] = []
        self._utterance_end = 0  # sample count at the end of what `_utterance` holds
        self._fed_connection: int | None = None  # of recognition: the one that has the utterance so far
        self._loudness = Loudness(())
        self.speech_end_s = 0.0
        self.is_eager = False

    @property
    def in_speech(self) -> bool:
        return self._endpointer.in_speech

    def utterance(self) -> Pcm16:
        return np.concatenate(self._utterance) if self._utterance else np.zeros(0, np.int16)

    def answer(self, question: int, probability: float) -> list[Decision]:
        """The turn model's answer to a question that `hear` asked."""
        return self._noting_end(self._endpointer.answer(question, probability))

    @property
    def certainty(self) -> float:
        """P(the caller has finished), for what is known in the present pause."""
        return self._endpointer.certainty

    def read(self, text: str) -> list[Decision]:
        """What recognition makes of the turn up to the present pause."""
        return self._noting_end(self._endpointer.read(text))

    @property
    def may_expect(self) -> bool:
        """Whether a language model is to be asked about the words last read."""
        return self._endpointer.may_expect

    def expect(self, stop_logprob: float) -> list[Decision]:
        """How likely it takes a full stop to come after them, log P."""
        return self._noting_end(self._endpointer.expect(stop_logprob))

    def asked(self, agent: str) -> None:
        """`agent` was said last: after a question few words are a whole answer."""
        self._endpointer.is_asked = agent.rstrip().endswith(("?", "？"))

    async def hear(self, pcm: Pcm16, now: float) -> AsyncIterator[Decision]:
        """`pcm` arrived at `now`. Each decision is to be carried out before the next is asked for."""
        self._is_window_silent = False
        for window, at_s in self._windows(pcm, now):
            for decision in await self._hear_window(window, at_s):
                yield decision

    def pass_over(self, pcm: Pcm16, now: float) -> bool:
        """Audio of a line that has long been silent, and still is, without waiting; False: it is to be heard."""
        if self.in_speech or not (self._vad.is_resting and is_silent(pcm)):
            return False
        if not (self._is_window_silent or is_silent(self._window)):
            return False
        self._is_window_silent = True
        for window, at_s in self._windows(pcm, now):
            self._vad.rest(window)
            self._decide(window, at_s, 0.0)
            self._keep_preroll(window)
        return True

    def _windows(self, pcm: Pcm16, now: float) -> Iterator[tuple[Pcm16, float]]:
        """Those that `pcm` completes, and when they had come."""
        audio = self._resampler.push(pcm)
        self._num_heard += audio.size
        self._arrivals.append((self._num_heard, now))
        while len(self._arrivals) > 1 and self._arrivals[0][1] < now - ARRIVALS_KEPT_S:
            self._arrivals.popleft()
        self._window = np.concatenate([self._window, audio])
        while self._window.size >= WINDOW_SAMPLES:
            window, self._window = self._window[:WINDOW_SAMPLES], self._window[WINDOW_SAMPLES:]
            yield window, now - self._window.size / SAMPLE_RATE_HZ

    async def forget(self, end_sample: int) -> None:
        """What was sent to recognition up to `end_sample` will not be asked for."""
        try:
            await self._stt.discard(end_sample)
        except Unavailable as error:
            logger.debug("nothing to discard: %s", error)

    def _decide(self, window: Pcm16, now: float, p_speech: float) -> list[Decision]:
        if self._echo.hears(window, now) and p_speech >= self._threshold and self._echo.is_echo():
            p_speech = 0.0
        self._utterance_end += WINDOW_SAMPLES
        is_quiet = self.in_speech and self._loudness.is_quiet(window)
        return self._endpointer.window(p_speech, is_quiet=is_quiet, is_eager=self.is_eager)

    async def _hear_window(self, window: Pcm16, now: float) -> list[Decision]:
        was_in_speech = self._endpointer.in_speech
        decisions = self._decide(window, now, self._vad.probability(window))
        if not was_in_speech and not self._endpointer.in_speech:
            self._keep_preroll(window)
            return decisions
        self._utterance.append(window)
        if any(isinstance(d, SpeechStarted) for d in decisions):
            self._fed_connection = None
            self._loudness = Loudness(self._utterance[:-START_WINDOWS])
        await self._feed(window)
        return self._noting_end(decisions)

    def _keep_preroll(self, window: Pcm16) -> None:
        keep = int(PREROLL_S * SAMPLE_RATE_HZ) // WINDOW_SAMPLES
        self._utterance = [*self._utterance[-keep + 1 :], window]

    async def _feed(self, window: Pcm16) -> None:
        """A connection that is new has nothing of the utterance: it gets all of it."""
        connection, known = self._stt.num_connections, self._fed_connection
        self._fed_connection = None
        try:
            await self._stt.feed(window if connection == known else self.utterance())
            self._fed_connection = connection
        except Unavailable as error:
            logger.debug("not heard by recognition: %s", error)

    def _noting_end(self, decisions: list[Decision]) -> list[Decision]:
        for decision in decisions:
            if isinstance(decision, TurnEnded | NoiseEnded):
                audio = self.utterance()
                pause = min(PAUSE_SAMPLES, int(decision.silence_s * SAMPLE_RATE_HZ))
                noise = rms(audio[audio.size - pause :])
                silent = audio.size - speech_end(audio, SAMPLE_RATE_HZ, noise)
                self.speech_end_s = self._arrival_s(self._utterance_end - silent)
                self._utterance = []
            elif isinstance(decision, Resumed):
                logger.debug("the caller goes on")
        return decisions

    def _arrival_s(self, sample: int) -> float:
        """When `sample` arrived."""
        for heard, at_s in self._arrivals:
            if heard >= sample:
                return at_s
        return self._arrivals[-1][1]
