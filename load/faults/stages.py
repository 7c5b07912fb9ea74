"""Faults of a stage, as its own protocol shows them: recognition, LLM and voice that are late, silent, broken. Pure.

Each is put on by a proxy of `load.faults.stage_proxy` that stands where the service is expected. A request is one
`finalize` to recognition (with what is speculated before it), one chat completion that is to say something, or one
utterance of the voice, greeting, fillers and apologies too. `first` and `count` say to which requests it applies,
counted from when it was set (1 is the next; `count: null` is from then on), and `share` with what probability, drawn
from the seed.

What is expected is what a server that keeps its promises lets the caller hear. "Filler" is speech that says it takes
longer, "apology" speech that asks to say it again; times count from the caller's last word. In every case nothing lasts
over 1.5 s without speech or a message, and the next turn without a fault is answered as ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

MAX_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Which requests of a stage a fault applies to."""

    first: int = 1
    count: int | None = 1
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.first < 1:
            raise ValueError(f"first counts from 1, got {self.first}")
        if self.count is not None and self.count < 1:
            raise ValueError(f"count must be at least 1, or null for all, got {self.count}")
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {self.share}")
        for name in ("by_s", "for_s", "after_s"):
            value = vars(self).get(name)
            if value is not None and not 0 <= value <= MAX_S:
                raise ValueError(f"{name} must be 0 to {MAX_S:.0f} s, got {value}")

    def includes(self, number: int) -> bool:
        return number >= self.first and (self.count is None or number < self.first + self.count)


@dataclass(frozen=True)
class SttLate(Requests):
    """Every result of the request comes `by_s` later; one that so misses its deadline is the error that says so.

    Expected: up to 0.3 s only a later answer; above it a filler by 1.5 s and then the answer; above 2.5 s, which is all
    the time a transcript gets, an apology by 5 s.
    """

    KIND: ClassVar[str] = "stt_late"
    by_s: float = 1.0


@dataclass(frozen=True)
class SttEmpty(Requests):
    """The request is answered with no words, and what is speculated or partial before it as well.

    Expected: no answer, because nothing was said; the agent is listening again by 1.5 s, never stuck, and prompts by
    itself after its idle time.
    """

    KIND: ClassVar[str] = "stt_empty"


@dataclass(frozen=True)
class SttNever(Requests):
    """The request is not answered.

    Expected: a filler by 1.5 s, an apology by 5 s.
    """

    KIND: ClassVar[str] = "stt_never"


@dataclass(frozen=True)
class LlmStall(Requests):
    """The stream stops for `for_s` (null: for ever) before text `after_tokens`: 0 is before the first token.

    Expected, before the first token: a filler by 1.5 s, further ones while it lasts, then the answer; an apology by 7 s
    if none came. In the middle: what was said by then is heard to its last word, then the rest, or within 1.5 s of
    silence an apology.
    """

    KIND: ClassVar[str] = "llm_stall"
    after_tokens: int = 0
    for_s: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_count("after_tokens", self.after_tokens)


@dataclass(frozen=True)
class LlmDeath(Requests):
    """The connection is lost before text `after_tokens`.

    Expected: what was said by then is heard to its last word, and within 1.5 s of silence an apology; nothing that was
    not heard is remembered.
    """

    KIND: ClassVar[str] = "llm_death"
    after_tokens: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_count("after_tokens", self.after_tokens)


@dataclass(frozen=True)
class LlmRefusal(Requests):
    """Answered with `status`, and Retry-After if given.

    Expected: an apology by 1.5 s, or the answer of another worker in time; no second request before Retry-After.
    """

    KIND: ClassVar[str] = "llm_refusal"
    status: Literal[429, 500, 503] = 503
    retry_after_s: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retry_after_s is not None:
            _require_count("retry_after_s", self.retry_after_s)


@dataclass(frozen=True)
class TtsStall(Requests):
    """After `after_s` of the utterance's audio nothing comes for `for_s` (null: nothing more of this utterance).

    Expected: what came is heard. Below 1.3 s a gap, then the rest; above it, or for ever, a message and within 1.5 s
    of silence the end of the turn: the agent listens, and the caller has been told if the voice speaks again.
    """

    KIND: ClassVar[str] = "tts_stall"
    after_s: float = 0.0
    for_s: float | None = None


@dataclass(frozen=True)
class TtsDeath(Requests):
    """The connection is lost after `after_s` of the utterance's audio.

    Expected: what came is heard, then a message at once and an apology by 1.5 s of silence through a new connection.
    """

    KIND: ClassVar[str] = "tts_death"
    after_s: float = 0.0


@dataclass(frozen=True)
class TtsSilence(Requests):
    """The utterance's audio is digital silence of the right length.

    Expected: silence is no answer: a message by 1.5 s, and the turn does not count as answered.
    """

    KIND: ClassVar[str] = "tts_silence"


SttFault: TypeAlias = SttLate | SttEmpty | SttNever
LlmFault: TypeAlias = LlmStall | LlmDeath | LlmRefusal
TtsFault: TypeAlias = TtsStall | TtsDeath | TtsSilence
StageFault: TypeAlias = SttFault | LlmFault | TtsFault
STT_FAULTS = (SttLate, SttEmpty, SttNever)
LLM_FAULTS = (LlmStall, LlmDeath, LlmRefusal)
TTS_FAULTS = (TtsStall, TtsDeath, TtsSilence)
STAGE_FAULTS = (*STT_FAULTS, *LLM_FAULTS, *TTS_FAULTS)
Stage: TypeAlias = Literal["stt", "llm", "tts"]
STAGES: dict[Stage, tuple[type[StageFault], ...]] = {"stt": STT_FAULTS, "llm": LLM_FAULTS, "tts": TTS_FAULTS}


class Plan:
    """Which fault meets which request of one stage. The first that was set and applies wins."""

    def __init__(self, stage: Stage, rng: np.random.Generator) -> None:
        self._stage = stage
        self._rng = rng
        self._set: list[_Set] = []
        self.num_requests = 0
        self.num_faults: dict[str, int] = {}  # by kind, those that met a request

    def set(self, faults: Iterable[StageFault]) -> None:
        """From the next request on, beside those that are set already. Raises: ValueError for another stage's."""
        for fault in faults:
            if not isinstance(fault, STAGES[self._stage]):
                raise ValueError(f"{fault.KIND} is no fault of {self._stage}")
            self._set.append(_Set(fault, self.num_requests, self._rng.spawn(1)[0], []))

    def clear(self) -> None:
        """Requests under way keep theirs."""
        self._set.clear()

    def peek(self) -> StageFault | None:
        """What the next request will meet."""
        return next((each.fault for each in self._set if each.meets(self.num_requests + 1)), None)

    def take(self) -> StageFault | None:
        """A request begins: what it meets."""
        fault = self.peek()
        self.num_requests += 1
        if fault is not None:
            self.num_faults[fault.KIND] = self.num_faults.get(fault.KIND, 0) + 1
        return fault


@dataclass(frozen=True)
class _Set:
    """A draw for each request since then, so that the n-th has the same whatever was asked before."""

    fault: StageFault
    num_before: int
    rng: np.random.Generator
    draws: list[float]

    def meets(self, number: int) -> bool:
        place = number - self.num_before
        if len(self.draws) < place:
            self.draws.extend(self.rng.random(place - len(self.draws)).tolist())
        return self.fault.includes(place) and self.draws[place - 1] < self.fault.share


def _require_count(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
