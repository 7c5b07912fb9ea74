"""Messages of a call: over `WS /v1/calls`, or on the data channel of `POST /v1/calls/rtc`. Reference: docs/protocol.md.

On the WebSocket, binary messages are PCM16 mono in both directions, at the rates agreed in `hello` and `ready`. The
server sends its audio paced, at most `lead_ms` ahead of real time; its samples are counted from the start of the call
and that count is the clock of `words`, `position`, `clear`, `rewind` and `played`.

    client                          server
    hello                    ->
                             <-     ready | error and close 1013
    (audio), played, dtmf    ->
                             <-     (audio), state, partial, final, reply, words, position, clear, turn, error
    hangup                   ->
                             <-     bye
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from wire.strict import Invalid

KEYS = "0123456789*#ABCD"  # of a telephone, in the order of RFC 4733, 3.2
MAX_DIGITS = 32  # of one number that is keyed in; the number of a bank card has 19
SampleRate: TypeAlias = Literal[8000, 16000, 22050, 24000, 44100, 48000]
RTC_HZ: SampleRate = 48000  # RFC 7587, 4.1: the RTP clock of Opus, and the rate of both sides over WebRTC


@dataclass(frozen=True)
class Hello:
    TYPE: ClassVar[str] = "hello"
    version: int
    sample_rate_hz: SampleRate = 16000  # of the caller's audio
    output_sample_rate_hz: SampleRate = 24000
    language: str = "en"
    voice: str | None = None
    greeting: bool = True


@dataclass(frozen=True)
class Played:
    """The client has played the agent's audio up to `sample`; makes "what was heard" exact. Send every 100 ms or so."""

    TYPE: ClassVar[str] = "played"
    sample: int


@dataclass(frozen=True)
class Dtmf:
    """Keys that the caller pressed, in their order: any number of those on the way to one number, or all of it.

    They may be a secret: neither an error nor a log tells them.
    """

    TYPE: ClassVar[str] = "dtmf"
    digits: str = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < len(self.digits) <= MAX_DIGITS or set(self.digits) - set(KEYS):
            raise Invalid("digits", f"must be 1 to {MAX_DIGITS} of {KEYS}")


@dataclass(frozen=True)
class Hangup:
    TYPE: ClassVar[str] = "hangup"


@dataclass(frozen=True)
class Ready:
    TYPE: ClassVar[str] = "ready"
    version: int
    call: str
    sample_rate_hz: int
    output_sample_rate_hz: int
    voice: str
    lead_ms: int


@dataclass(frozen=True)
class State:
    TYPE: ClassVar[str] = "state"
    state: Literal["listening", "hearing", "thinking", "speaking", "closing"]
    turn: int


@dataclass(frozen=True)
class Partial:
    """What the caller has said so far in `turn`; a higher revision replaces a lower one."""

    TYPE: ClassVar[str] = "partial"
    turn: int
    revision: int
    text: str


@dataclass(frozen=True)
class Final:
    TYPE: ClassVar[str] = "final"
    turn: int
    text: str


@dataclass(frozen=True)
class Reply:
    """Text of the answer as it is handed to the voice; joined, the deltas are the whole answer."""

    TYPE: ClassVar[str] = "reply"
    turn: int
    delta: str


@dataclass(frozen=True)
class Word:
    text: str
    start_sample: int
    end_sample: int


@dataclass(frozen=True)
class Words:
    """When the words of audio about to be sent will sound, on the output sample clock.

    What the agent says by himself (greeting, filler, idle prompt, goodbye, apology) has these alone, with the number of
    the turn it stands in, 0 before the first.
    """

    TYPE: ClassVar[str] = "words"
    turn: int
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Position:
    """WebRTC: the packet that leaves now begins with the agent's `sample`. RTP itself counts silence as well."""

    TYPE: ClassVar[str] = "position"
    sample: int


@dataclass(frozen=True)
class Clear:
    """Barge-in: drop unplayed agent audio. `sample` is the count from which the next audio continues."""

    TYPE: ClassVar[str] = "clear"
    turn: int
    sample: int


@dataclass(frozen=True)
class Rewind:
    """A caller speaks over the agent: drop unplayed agent audio, as at `clear`. What follows is the same speech again
    from `sample` on, at once and softer, or later.
    """

    TYPE: ClassVar[str] = "rewind"
    sample: int


@dataclass(frozen=True)
class Turn:
    """The turn is over, or the call ends within it.

    `stages_ms` is its waterfall and sums to `latency_ms`, which is None for an unanswered turn.
    `heard` is the part of the answer that the caller heard, which is what the conversation remembers.
    """

    TYPE: ClassVar[str] = "turn"
    turn: int
    outcome: Literal["answered", "interrupted", "failed", "empty"]
    text: str
    heard: str
    latency_ms: float | None = None
    stages_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Error:
    """A failure within the call. The call goes on unless a close follows."""

    TYPE: ClassVar[str] = "error"
    code: str
    message: str
    retry_after_ms: int | None = None


@dataclass(frozen=True)
class Bye:
    TYPE: ClassVar[str] = "bye"
    reason: Literal["hangup", "idle", "max_length", "drain", "failed"]


ClientMessage: TypeAlias = Hello | Played | Dtmf | Hangup
ServerMessage: TypeAlias = (
    Ready | State | Partial | Final | Reply | Words | Position | Clear | Rewind | Turn | Error | Bye
)
CLIENT_MESSAGES = (Hello, Played, Dtmf, Hangup)
SERVER_MESSAGES = (Ready, State, Partial, Final, Reply, Words, Position, Clear, Rewind, Turn, Error, Bye)
