"""When the caller's turn is over: a pure function of VAD windows, the turn model's probabilities and transcripts.

Every pause may be the end. After `speculate_after_s` of silence the turn model is asked, again until it answers, and
recognition reads what was said; each answer makes the end more or less certain (`voice/completion.py`), and the
certainty maps continuously to a wait between `min_wait_s` and `max_wait_s`. Any answer may be late or missing. A
caller who goes on tells how long he pauses. Time is audio received, so that a replay decides the same.

VAD notices an end late. Where the windows' loudness is told too, recognition reads as soon as `LULL_WINDOWS` were
quiet: what was said until then, and what it makes of it, is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from voice.completion import Evidence, log_odds, wait_s, weights
from voice.config import EndpointingConfig
from voice.endings import Ending, ending
from voice.pauses import Pauses

SAMPLE_RATE_HZ = 16000
WINDOW_SAMPLES = 512  # Silero's window at 16 kHz
WINDOW_S = WINDOW_SAMPLES / SAMPLE_RATE_HZ
START_WINDOWS = 2  # 64 ms of speech begin an utterance; one window alone is often a click
ASK_EVERY_S = 0.096  # while there is no answer
LULL_WINDOWS = 2  # quiet ones: shorter is a stop consonant
LONGEST_LULL_WINDOWS = 5  # VAD notices silence within 115 ms; what it takes for speech after this is soft speech
EXPECTED_WITHIN_S = 0.05  # from the words to a language model's answer about them; on two cores
NOISE_WAIT_S = 0.35  # after speech too short to be any
CUT_IN_S = 0.9  # who speaks so soon after his last word has not heard an answer: his turn was not over


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
    """Speech, or a sound, after a lull or pause that did not end the turn: what was speculated is void."""


@dataclass(frozen=True)
class AskTurnModel:
    question: int


@dataclass(frozen=True)
class Speculate:
    """Recognise everything up to now: this pause may be the end."""


@dataclass(frozen=True)
class TurnEnded:
    """`probability`: of the turn model; `certainty`: of everything together."""

    silence_s: float
    probability: float | None
    certainty: float


@dataclass(frozen=True)
class NoiseEnded:
    """The utterance held too little speech to be one."""

    silence_s: float


Decision: TypeAlias = SpeechStarted | SpeechGoesOn | Resumed | AskTurnModel | Speculate | TurnEnded | NoiseEnded


class Endpointer:
    """Feed `window` every 512 samples at 16 kHz, `answer` whenever the turn model has answered, `read` what was said,
    `expect` what a language model makes of that.

    `is_asked`: the agent's last words were a question, to which few words may be a whole answer.
    """

    def __init__(self, config: EndpointingConfig, language: str = "en") -> None:
        self._config = config
        self._language = language
        self._weights = weights(language)
        self._pauses = Pauses()
        self._num_windows = 0
        self.num_questions = 0  # so far
        self._ended_s: float | None = None  # where the speech of the last turn ended, in audio received
        self._said_s = 0.0  # speech of the turn, with what came before a pause that was taken for its end
        self.is_asked = False
        self._reset()

    def _reset(self) -> None:
        self.in_speech = False
        self._run = 0  # consecutive speech windows before the start
        self._speech_s = 0.0
        self._turn_s = 0.0
        self._num_quiet = 0  # windows, up to now
        self._begin_pause()

    def _begin_pause(self) -> None:
        self._silence_s = 0.0
        self._is_read = False  # recognition reads what was said up to this pause, or the lull before it
        self._next_question_s = self._config.speculate_after_s
        self._first_question = self.num_questions
        self._probability: float | None = None  # the turn model's first in this pause
        self._ending: Ending | None = None
        self._stop_logprob: float | None = None

    def window(self, p_speech: float, *, is_quiet: bool = False, is_eager: bool = True) -> list[Decision]:
        """`is_quiet`: no louder than the line is between words. `is_eager`: recognition may begin in a lull."""
        self._num_windows += 1
        is_speech = p_speech >= self._config.speech_threshold
        if not self.in_speech:
            return self._outside(is_speech)
        self._turn_s += WINDOW_S
        self._num_quiet = self._num_quiet + 1 if is_quiet else 0
        if is_speech:
            return self._in_speech(is_eager=is_eager)
        self._silence_s += WINDOW_S
        return self._in_pause(is_eager=is_eager)

    def answer(self, question: int, probability: float) -> list[Decision]:
        """The turn model's answer. One about an earlier pause is ignored."""
        if not self.in_speech or question < self._first_question:
            return []
        if self._probability is None:
            self._probability = probability
        return self._decide()

    def read(self, text: str) -> list[Decision]:
        """The transcript of the turn up to this pause; empty where nothing was recognised."""
        if not self.in_speech or not self._is_read:
            return []
        self._ending = ending(text, self._language)
        return self._decide()

    @property
    def may_expect(self) -> bool:
        """Whether it may matter what a language model makes of the words last read. A turn about to end is not held."""
        is_weighed = self._config.ask_language_model and self._weights.expected and not self.is_asked
        if not is_weighed or not self.in_speech or self._ending is None or not self._ending.num_words:
            return False
        return self.wait_s() - self._silence_s >= EXPECTED_WITHIN_S

    def expect(self, stop_logprob: float) -> list[Decision]:
        """How likely a full stop follows the words last read, log P. One about an earlier pause is ignored."""
        if not self.in_speech or self._ending is None:
            return []
        self._stop_logprob = stop_logprob
        return self._decide()

    @property
    def evidence(self) -> Evidence:
        return Evidence(self._probability, self._said_s, self._ending, self.is_asked, self._stop_logprob)

    @property
    def certainty(self) -> float:
        """P(the caller has finished), for what is known now."""
        return 1.0 / (1.0 + math.exp(-self._odds))

    @property
    def _odds(self) -> float:
        return log_odds(self.evidence, self._weights)

    def wait_s(self) -> float:
        """Silence after which the turn ends, for what is known now."""
        longest_s = self._config.max_wait_s if self._speech_s >= self._config.min_speech_s else NOISE_WAIT_S
        low_s = self._config.min_wait_s
        return wait_s(self._odds, self._config.patience, self._pauses.usual_s, low_s, max(low_s, longest_s))

    def _outside(self, is_speech: bool) -> list[Decision]:
        self._run = self._run + 1 if is_speech else 0
        if self._run < START_WINDOWS:
            return []
        self.in_speech = True
        self._speech_s = self._turn_s = self._run * WINDOW_S
        self._begin_pause()
        start = self._num_windows - self._run
        pause_s = start * WINDOW_S - self._ended_s if self._ended_s is not None else CUT_IN_S
        if pause_s < CUT_IN_S:
            self._pauses.add(pause_s)
        else:
            self._said_s = 0.0
        self._said_s += self._speech_s
        return [SpeechStarted(start * WINDOW_SAMPLES)]

    def _in_speech(self, *, is_eager: bool) -> list[Decision]:
        self._speech_s += WINDOW_S
        self._said_s += WINDOW_S
        self._pauses.add(self._silence_s)
        decisions: list[Decision] = []
        is_lull = LULL_WINDOWS <= self._num_quiet <= LONGEST_LULL_WINDOWS and self.num_questions == self._first_question
        if is_lull and (is_eager or self._is_read):
            self._silence_s = 0.0
            decisions += self._speculate()
        else:
            if self._is_read:
                decisions.append(Resumed())
            self._begin_pause()
        if self._turn_s >= self._config.max_turn_s:
            return [*decisions, self._end()]
        return [*decisions, SpeechGoesOn(self._speech_s)]

    def _speculate(self) -> list[Decision]:
        if self._is_read:
            return []
        self._is_read = True
        return [Speculate()]

    def _in_pause(self, *, is_eager: bool) -> list[Decision]:
        decisions: list[Decision] = []
        is_asked = self.num_questions > self._first_question
        if self._is_read and not is_asked and not self._num_quiet:  # the end of a word, too soft for VAD
            self._is_read, self._ending, self._stop_logprob = False, None, None
            decisions.append(Resumed())
        if self._num_quiet >= LULL_WINDOWS and is_eager:
            decisions += self._speculate()
        if self._probability is None and self._silence_s >= self._next_question_s - WINDOW_S / 2:
            decisions += self._speculate()
            decisions.append(AskTurnModel(self.num_questions))
            self.num_questions += 1
            self._next_question_s += ASK_EVERY_S
        return decisions + self._decide()

    def _decide(self) -> list[Decision]:
        # Half a window of slack: silence comes in steps of 32 ms and the sums are floats.
        if self._silence_s < self.wait_s() - WINDOW_S / 2:
            return []
        return [self._end()]

    def _end(self) -> TurnEnded | NoiseEnded:
        ended: TurnEnded | NoiseEnded = TurnEnded(self._silence_s, self._probability, self.certainty)
        self._ended_s = self._num_windows * WINDOW_S - self._silence_s
        if self._speech_s < self._config.min_speech_s:
            ended = NoiseEnded(self._silence_s)
            self._ended_s = None
        self._reset()
        return ended
