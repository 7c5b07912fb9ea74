"""When the caller's turn is over: a pure function of VAD windows and the turn model's probabilities.

Silence alone decides at `max_wait_s`. The turn model shortens the wait: its probability of "complete" maps
continuously to a time between `min_wait_s` and `max_wait_s`. It is asked at `speculate_after_s` of silence and again
every `ASK_EVERY_S`, because silence itself is evidence; recognition is started with the first question. Time is
audio received, so that a replay decides the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from voice.config import EndpointingConfig

SAMPLE_RATE_HZ = 16000
WINDOW_SAMPLES = 512  # Silero's window at 16 kHz
WINDOW_S = WINDOW_SAMPLES / SAMPLE_RATE_HZ
START_WINDOWS = 2  # 64 ms of speech begin an utterance; one window alone is often a click
ASK_EVERY_S = 0.096


@dataclass(frozen=True)
class SpeechStarted:
    """`sample`: where the first speech window begins."""

    sample: int


@dataclass(frozen=True)
class SpeechGoesOn:
    """Sent for every further window of speech. `speech_s`: speech in this utterance so far."""

    speech_s: float


@dataclass(frozen=True)
class Resumed:
    """Speech after a pause that did not end the turn: what was speculated is void."""


@dataclass(frozen=True)
class AskTurnModel:
    question: int


@dataclass(frozen=True)
class Speculate:
    """Recognise everything up to now: this pause may be the end."""


@dataclass(frozen=True)
class TurnEnded:
    silence_s: float
    probability: float | None


@dataclass(frozen=True)
class NoiseEnded:
    """The utterance held too little speech to be one."""

    silence_s: float


Decision: TypeAlias = SpeechStarted | SpeechGoesOn | Resumed | AskTurnModel | Speculate | TurnEnded | NoiseEnded


class Endpointer:
    """Feed `window` every 512 samples at 16 kHz and `answer` whenever the turn model has answered."""

    def __init__(self, config: EndpointingConfig) -> None:
        self._config = config
        self._num_windows = 0
        self._num_questions = 0
        self._reset()

    def _reset(self) -> None:
        self.in_speech = False
        self._run = 0  # consecutive speech windows before the start
        self._speech_s = 0.0
        self._turn_s = 0.0
        self._begin_pause()

    def _begin_pause(self) -> None:
        self._silence_s = 0.0
        self._next_question_s = self._config.speculate_after_s
        self._first_question = self._num_questions
        self._probability: float | None = None

    def window(self, p_speech: float) -> list[Decision]:
        self._num_windows += 1
        is_speech = p_speech >= self._config.speech_threshold
        if not self.in_speech:
            return self._outside(is_speech)
        self._turn_s += WINDOW_S
        if is_speech:
            decisions: list[Decision] = [Resumed()] if self._num_questions > self._first_question else []
            self._speech_s += WINDOW_S
            self._begin_pause()
            if self._turn_s >= self._config.max_turn_s:
                return [*decisions, self._end()]
            return [*decisions, SpeechGoesOn(self._speech_s)]
        self._silence_s += WINDOW_S
        return self._in_pause()

    def answer(self, question: int, probability: float) -> list[Decision]:
        """The turn model's answer. One about an earlier pause is ignored."""
        if not self.in_speech or question < self._first_question:
            return []
        self._probability = probability
        return self._decide()

    def wait_s(self) -> float:
        """Silence after which the turn ends, for what is known now."""
        low, high = self._config.min_wait_s, self._config.max_wait_s
        if self._probability is None:
            return high
        doubt = max(0.0, 1.0 - 2.0 * self._probability)  # 0 from a probability of 0.5 up, 1 at 0
        return low + (high - low) * doubt

    def _outside(self, is_speech: bool) -> list[Decision]:
        self._run = self._run + 1 if is_speech else 0
        if self._run < START_WINDOWS:
            return []
        self.in_speech = True
        self._speech_s = self._turn_s = self._run * WINDOW_S
        self._begin_pause()
        return [SpeechStarted((self._num_windows - self._run) * WINDOW_SAMPLES)]

    def _in_pause(self) -> list[Decision]:
        decisions: list[Decision] = []
        if self._silence_s >= self._next_question_s - WINDOW_S / 2:
            if self._num_questions == self._first_question:
                decisions.append(Speculate())
            decisions.append(AskTurnModel(self._num_questions))
            self._num_questions += 1
            self._next_question_s += ASK_EVERY_S
        return decisions + self._decide()

    def _decide(self) -> list[Decision]:
        # Half a window of slack: silence comes in steps of 32 ms and the sums are floats.
        if self._silence_s < self.wait_s() - WINDOW_S / 2:
            return []
        return [self._end()]

    def _end(self) -> TurnEnded | NoiseEnded:
        ended: TurnEnded | NoiseEnded = TurnEnded(self._silence_s, self._probability)
        if self._speech_s < self._config.min_speech_s:
            ended = NoiseEnded(self._silence_s)
        self._reset()
        return ended
