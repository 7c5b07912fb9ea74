"""Messages of `WS /v1/listen`, streaming recognition. Binary messages from the client are PCM16 mono, 16 kHz.

One connection recognises utterance after utterance. Samples are counted from the start of the connection;
`end_sample` says up to where, so that audio sent meanwhile does not change what was asked.

    client                          server
    hello                    ->
                             <-     ready
    (audio)                  ->
                             <-     partial            now and then, while nothing more urgent waits
    speculate(id, end)       ->
                             <-     speculation(id)    full quality; keeps the audio
    finalize(id, end)        ->
                             <-     final(id)          the same text without work when `end` was speculated; drops
                                                       the audio up to `end`
    discard(end)             ->                        drops audio, no answer

Every speculate and finalize is answered once, by its result or by an error with its id: `deadline_exceeded`,
`overloaded` (a finalize refused so keeps the audio), `bad_range`, or `discarded` when the audio was finalized or
discarded meanwhile. At most 60 s of audio are kept: more without finalize or discard is the error `too_long`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

SAMPLE_RATE_HZ = 16000


@dataclass(frozen=True)
class Hello:
    TYPE: ClassVar[str] = "hello"
    version: int
    language: str = "en"  # ISO 639-1
    call: str = ""
    partials: bool = True
    words: bool = False  # word times on finals; costs an alignment pass


@dataclass(frozen=True)
class Speculate:
    TYPE: ClassVar[str] = "speculate"
    id: int
    end_sample: int | None = None  # default: all audio received so far
    deadline_ms: int | None = None


@dataclass(frozen=True)
class Finalize:
    TYPE: ClassVar[str] = "finalize"
    id: int
    end_sample: int | None = None
    deadline_ms: int | None = None


@dataclass(frozen=True)
class Discard:
    TYPE: ClassVar[str] = "discard"
    end_sample: int | None = None


@dataclass(frozen=True)
class Ready:
    TYPE: ClassVar[str] = "ready"
    version: int
    model: str
    sample_rate_hz: int = SAMPLE_RATE_HZ


@dataclass(frozen=True)
class Word:
    text: str
    start_sample: int
    end_sample: int


@dataclass(frozen=True)
class Partial:
    """`revision` grows with every result of a connection; the highest is the newest."""

    TYPE: ClassVar[str] = "partial"
    revision: int
    text: str
    end_sample: int


@dataclass(frozen=True)
class Speculation:
    TYPE: ClassVar[str] = "speculation"
    id: int
    revision: int
    text: str
    end_sample: int
    compute_ms: float


@dataclass(frozen=True)
class Final:
    """`words` is None when times were not asked for, or the model has no alignment heads: never an estimate."""

    TYPE: ClassVar[str] = "final"
    id: int
    revision: int
    text: str
    start_sample: int
    end_sample: int
    compute_ms: float  # 0 when a speculation was reused
    words: tuple[Word, ...] | None = None


@dataclass(frozen=True)
class Error:
    """`id` names the request that failed; without it the connection closes next."""

    TYPE: ClassVar[str] = "error"
    code: str
    message: str
    id: int | None = None


ClientMessage: TypeAlias = Hello | Speculate | Finalize | Discard
ServerMessage: TypeAlias = Ready | Partial | Speculation | Final | Error
CLIENT_MESSAGES = (Hello, Speculate, Finalize, Discard)
SERVER_MESSAGES = (Ready, Partial, Speculation, Final, Error)
