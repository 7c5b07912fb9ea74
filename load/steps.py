"""The steps of a scenario: what a caller does, and what must be heard. Plain values; times are milliseconds.

Each has the `NAME` it is written under and, in `SHORT`, the field that it takes bare: `say: doctor/1`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal, TypeAlias

from load.faults.parse import Fault
from load.record import TurnOutcome
from load.speech.delivery import Delivery
from load.speech.dtmf import KEYS
from load.speech.noise import NoiseKind
from wire import calls
from wire.strict import Invalid

MAX_MS = 3_600_000.0


@dataclass(frozen=True)
class Say:
    """An utterance of the corpus. `cut_ms`: the line goes dead after so much of it, in the middle of a word."""

    NAME: ClassVar[str] = "say"
    SHORT: ClassVar[str] = "utterance"
    utterance: str
    delivery: Delivery | None = None  # instead of the scenario's `caller`
    cut_ms: float | None = None

    def __post_init__(self) -> None:
        require_positive(cut_ms=self.cut_ms)


@dataclass(frozen=True)
class Converse:
    """Every turn of a dialogue of the corpus, each answered to its end; the caller thinks for `pause_ms` between."""

    NAME: ClassVar[str] = "converse"
    SHORT: ClassVar[str] = "dialogue"
    dialogue: str
    pause_ms: float = 700.0
    timeout_ms: float = 30_000.0  # of one answer; who is not answered to the end by then speaks over it
    delivery: Delivery | None = None

    def __post_init__(self) -> None:
        require_positive(pause_ms=self.pause_ms, timeout_ms=self.timeout_ms)


@dataclass(frozen=True)
class WaitForAnswer:
    """Until the agent is first audible, or has been silent for a second after it was and does not say that it thinks or
    speaks; at most `timeout_ms`."""

    NAME: ClassVar[str] = "wait_for_answer"
    SHORT: ClassVar[str] = "until"
    until: Literal["start", "end"] = "end"
    timeout_ms: float = 30_000.0

    def __post_init__(self) -> None:
        require_positive(timeout_ms=self.timeout_ms)


@dataclass(frozen=True)
class BargeIn:
    """Speech over the agent's that is to take the turn, once `after_ms` of the answer (or greeting) have been heard.

    A pause of the agent's there is waited out: who speaks into it speaks over nothing, and stops nothing. An answer
    that is over by then fails the step: there was nothing to interrupt.
    """

    NAME: ClassVar[str] = "barge_in"
    SHORT: ClassVar[str] = "utterance"
    utterance: str
    after_ms: float = 1000.0
    delivery: Delivery | None = None

    def __post_init__(self) -> None:
        require_positive(after_ms=self.after_ms)


@dataclass(frozen=True)
class Backchannel:
    """The same, but not meant to take the turn."""

    NAME: ClassVar[str] = "backchannel"
    SHORT: ClassVar[str] = "utterance"
    utterance: str = "mm-hm"
    after_ms: float = 1000.0
    delivery: Delivery | None = None

    def __post_init__(self) -> None:
        require_positive(after_ms=self.after_ms)


@dataclass(frozen=True)
class Silence:
    """The caller says nothing. With `sends: false` nothing comes over the line at all, which stays open."""

    NAME: ClassVar[str] = "silence"
    SHORT: ClassVar[str] = "for_ms"
    for_ms: float
    sends: bool = True

    def __post_init__(self) -> None:
        require_positive(for_ms=self.for_ms)


@dataclass(frozen=True)
class Noise:
    """Noise and no speech, at `level_dbfs` RMS."""

    NAME: ClassVar[str] = "noise"
    SHORT: ClassVar[str] = "for_ms"
    for_ms: float
    kind: NoiseKind = "white"
    level_dbfs: float = -30.0

    def __post_init__(self) -> None:
        require_positive(for_ms=self.for_ms)
        if not -80 <= self.level_dbfs <= -5:
            raise Invalid("level_dbfs", f"must be -80 to -5, got {self.level_dbfs}")


@dataclass(frozen=True)
class Dtmf:
    """Keys of a telephone, as tones in the audio alone: what a gateway lets through that does not tell of them."""

    NAME: ClassVar[str] = "dtmf"
    SHORT: ClassVar[str] = "keys"
    keys: str
    tone_ms: float = 100.0
    gap_ms: float = 100.0

    def __post_init__(self) -> None:
        require_positive(tone_ms=self.tone_ms, gap_ms=self.gap_ms)
        if len(self.keys) * (self.tone_ms + self.gap_ms) > MAX_MS:
            raise ValueError("all keys together must take at most an hour")
        if not self.keys or set(self.keys) - set("".join(KEYS)):
            raise Invalid("keys", f"takes keys of {' '.join(''.join(KEYS))}, got '{self.keys}'")


@dataclass(frozen=True)
class Key:
    """Keys of a telephone, told as such: by telephone events (RFC 4733) over WebRTC, by messages over the WebSocket."""

    NAME: ClassVar[str] = "key"
    SHORT: ClassVar[str] = "keys"
    keys: str
    every_ms: float = 250.0

    def __post_init__(self) -> None:
        require_positive(every_ms=self.every_ms)
        if not self.keys or set(self.keys) - set(calls.KEYS):
            raise Invalid("keys", f"takes keys of {' '.join(calls.KEYS)}, got '{self.keys}'")
        if len(self.keys) * self.every_ms > MAX_MS:
            raise ValueError("all keys together must take at most an hour")


@dataclass(frozen=True)
class HangUp:
    """Says so, or only lets the connection go without a close, as a caller who drives into a tunnel."""

    NAME: ClassVar[str] = "hang_up"
    SHORT: ClassVar[str] = "how"
    how: Literal["message", "vanish"] = "message"


@dataclass(frozen=True)
class Redial:
    """A new call after a hang-up; fails the scenario when it is refused."""

    NAME: ClassVar[str] = "redial"
    SHORT: ClassVar[str] = "after_ms"
    after_ms: float = 1000.0

    def __post_init__(self) -> None:
        require_positive(after_ms=self.after_ms)


@dataclass(frozen=True)
class FaultNow:
    """A fault from now on; those of the scenario's `faults` are there from the start."""

    NAME: ClassVar[str] = "fault"
    SHORT: ClassVar[str] = ""
    fault: Fault


@dataclass(frozen=True)
class Expect:
    """What must be true, of the caller's last utterance and what was heard since. Every key that is given must hold.

    `within_ms` bounds `what`: `answer` and `speech` (any, fillers too) count from the caller's last speech sample to
    the first audible one, `stop` from the onset of a barge-in to the agent's last audible sample, `duck` to where it is
    at least 6 dB softer, `end_of_call` from now. With `absent`, `what` must not happen in that time from now on.
    After a barge-in `stop`, `duck`, `max_stale_ms`, `heard_word_errors` are about the answer that it interrupted. A
    backchannel wants no answer: after it all but `stop` and `duck` are about the answer to the utterance before it.
    """

    NAME: ClassVar[str] = "expect"
    SHORT: ClassVar[str] = "outcome"
    what: Literal["answer", "speech", "stop", "duck", "end_of_call"] = "answer"
    within_ms: float | None = None
    absent: bool = False
    outcome: TurnOutcome | None = None
    contains: str | None = None  # some words in a row of what was heard, by our own recognition ...
    word_errors: float = 0.34  # ... with at most this share of them wrong
    num_answers: int | None = None  # replies that became audible since the caller's last utterance
    state: Literal["listening", "hearing", "thinking", "speaking", "closing"] | None = None  # by the server, now
    understood_word_errors: float | None = None  # of the server's transcript of the caller's last utterance
    heard_word_errors: float | None = None  # of what the server says was heard, against what was
    max_gap_ms: float | None = None  # the longest silence inside the answer where the player ran dry
    max_stale_ms: float | None = None  # audible audio of an interrupted answer after the server's `clear`
    max_lost_ms: float | None = None  # of an answer that went on after a false interruption
    max_repeated_ms: float | None = None
    max_lead_ms: float | None = None  # audio received ahead of real time
    max_clicks: int | None = None
    max_misreport_ms: float | None = None  # between the server's turn latency and the caller's

    def __post_init__(self) -> None:
        if self.within_ms is None and (self.absent or self.what != "answer"):
            raise Invalid("within_ms", "missing: how long?")
        if self.within_ms is not None and self.within_ms > MAX_MS:
            raise Invalid("within_ms", f"must be at most an hour, got {self.within_ms:g}")
        given = {name: value for name, value in vars(self).items() if value is not None}
        checks = given.keys() - {"what", "absent", "word_errors"}
        if not checks:
            raise ValueError(f"expects nothing; give at least one of {', '.join(sorted(CHECKS))}")
        for name in checks - {"contains", "outcome", "state"}:
            if given[name] < 0:
                raise Invalid(name, f"must not be negative, got {given[name]}")
        if not 0 <= self.word_errors <= 1:
            raise Invalid("word_errors", f"must be 0 to 1, got {self.word_errors}")
        if self.contains is not None and not self.contains.strip():
            raise Invalid("contains", "must not be empty")


CHECKS = frozenset(each.name for each in fields(Expect)) - {"what", "absent", "word_errors"}


@dataclass(frozen=True)
class Repeat:
    NAME: ClassVar[str] = "repeat"
    SHORT: ClassVar[str] = ""
    times: int
    steps: tuple[Step, ...]


Step: TypeAlias = (
    Say
    | Converse
    | WaitForAnswer
    | BargeIn
    | Backchannel
    | Silence
    | Noise
    | Dtmf
    | Key
    | HangUp
    | Redial
    | FaultNow
    | Expect
    | Repeat
)
STEPS = (
    Say,
    Converse,
    WaitForAnswer,
    BargeIn,
    Backchannel,
    Silence,
    Noise,
    Dtmf,
    Key,
    HangUp,
    Redial,
    FaultNow,
    Expect,
    Repeat,
)


def require_positive(**values_ms: float | None) -> None:
    """Raises: Invalid, naming the first that is not."""
    for name, value in values_ms.items():
        if value is not None and not 0 < value <= MAX_MS:
            raise Invalid(name, f"must be above 0 and at most an hour, got {value:g}")
