"""How sure it is that a caller has finished, and how long to wait then. Pure.

The evidence is added up as log odds (a logistic model): what the turn model hears, how long he has spoken, how the
transcript ends, whether a language model expects a full stop after it, and whether a short answer was asked for.
Whatever is missing adds nothing. The turn model's first answer in a pause counts: silence itself moves it towards
"complete", and later answers told ends from pauses no better.
`WEIGHTS` is the one table of weights, a row for each language; docs/measurements.md says where those of English come
from, "When a turn is over".

The wait is linear in the log odds. Who waits w more when the caller has finished with probability p pays p w, and saves
(1 - p) times the share of pauses that end meanwhile; pauses of a caller fall off about exponentially, by his usual
pause u, and then what costs least is w = u (patience - log odds).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from voice.endings import Ending

CLIP = 0.02  # of a probability before its logarithm: the turn model is never that sure for good reason
SPEECH_S = 2.0  # at which the length of speech says nothing ...
SPEECH_RANGE_S = (0.5, 8.0)  # ... and where it says no more
STOP_LOGPROB = -2.0  # of a full stop, at which it says nothing: the mean over ends and pauses
TOLD_TWICE = 0.5  # of what a mark or verb that is missing counts, where a language model has judged the same words
ANSWER_WORDS = 4  # so few may be a whole answer


@dataclass(frozen=True)
class Evidence:
    """`probability`: of the turn model, its first in this pause; `answers`: the agent has asked.

    `stop_logprob`: log P of a full stop after the words, by a language model.
    """

    probability: float | None = None
    speech_s: float = SPEECH_S
    ending: Ending | None = None
    answers: bool = False
    stop_logprob: float | None = None


@dataclass(frozen=True)
class Weights:
    """Log odds. `is_calibrated`: fitted to recorded speech in this language."""

    bias: float
    model: float  # for each unit of the turn model's log odds
    speech: float  # for each doubling of the speech so far, unless somebody has asked
    unmarked: float  # the transcript does not end in . ? !
    hanging: float  # its last word cannot end a sentence
    closing: float  # its last word, or the ending of it, closes one
    fragment: float  # it has no verb, and nobody has asked
    answer: float  # it is short, after a question
    expected: float  # for each unit of the log P of a full stop after it, unless somebody has asked
    is_calibrated: bool


WEIGHTS = {
    "en": Weights(-0.2, 0.2, 0.5, -1.8, -1.8, 1.0, -1.4, 1.0, 0.5, is_calibrated=True),
    "ko": Weights(-0.2, 0.2, 0.5, -0.6, -1.8, 1.0, 0.0, 1.0, 0.0, is_calibrated=False),
}
_OTHER = Weights(-0.2, 0.2, 0.5, -0.6, 0.0, 0.0, 0.0, 1.0, 0.0, is_calibrated=False)


def weights(language: str) -> Weights:
    """`language`: an ISO 639-1 code, with or without a region. Without word lists of its own, marks alone count."""
    return WEIGHTS.get(language.split("-")[0].lower(), _OTHER)


def log_odds(evidence: Evidence, weights: Weights) -> float:
    """That the caller has finished."""
    return sum(float(getattr(weights, name)) * value for name, value in weighed(evidence).items())


def weighed(evidence: Evidence) -> dict[str, float]:
    """The fields of `Weights`, each with what it is multiplied by; without those that say nothing."""
    found = {"bias": 1.0}
    if not evidence.answers:
        shortest_s, longest_s = SPEECH_RANGE_S
        found["speech"] = math.log2(min(longest_s, max(shortest_s, evidence.speech_s)) / SPEECH_S)
    if evidence.probability is not None:
        clipped = min(1.0 - CLIP, max(CLIP, evidence.probability))
        found["model"] = math.log(clipped / (1.0 - clipped))
    if evidence.stop_logprob is not None and not evidence.answers:
        found["expected"] = evidence.stop_logprob - STOP_LOGPROB
    if evidence.ending is not None and evidence.ending.num_words:
        found |= dict.fromkeys(_of_words(evidence.ending, answers=evidence.answers), 1.0)
        for name in found.keys() & {"unmarked", "fragment"} if "expected" in found else ():
            found[name] = TOLD_TWICE
    return found


def wait_s(odds: float, patience: float, usual_pause_s: float, low_s: float, high_s: float) -> float:
    """Silence to wait for at such log odds, for a caller with such pauses."""
    return min(high_s, max(low_s, usual_pause_s * (patience - odds)))


def _of_words(ending: Ending, *, answers: bool) -> Iterator[str]:
    if ending.mark != "stop":
        yield "unmarked"
    if ending.last_word != "open":
        yield ending.last_word
    if answers and ending.num_words <= ANSWER_WORDS and ending.last_word != "hanging":
        yield "answer"
    elif ending.is_fragment and not answers:
        yield "fragment"
