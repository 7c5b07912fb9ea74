"""Messages of `WS /v1/speak`, streaming synthesis. Binary messages from the server are `wire.pcm.pack_utterance`.

Text of an utterance comes in deltas. What was received is spoken at `flush`, at `end`, and at sentence ends;
utterances of a connection are spoken in the order of their first text. A new utterance has a higher id than all
before it on its connection.

    client                          server
    hello                    ->
                             <-     ready
    text(utterance, delta)   ->
    flush(utterance)         ->
                             <-     words(utterance)   times of the words in the audio that follows
                             <-     (audio)
    end(utterance)           ->
                             <-     done(utterance)
    cancel(utterance)        ->
                             <-     cancelled(utterance)   no audio of it comes after this
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Hello:
    TYPE: ClassVar[str] = "hello"
    version: int
    voice: str | None = None  # default: the profile's first
    call: str = ""
    seed: int = 0
    speed: float = 1.0  # 0.5 to 2


@dataclass(frozen=True)
class Text:
    TYPE: ClassVar[str] = "text"
    utterance: int
    delta: str
    deadline_ms: int | None = None  # for the first audio of this utterance; later deltas may leave it out


@dataclass(frozen=True)
class Flush:
    TYPE: ClassVar[str] = "flush"
    utterance: int


@dataclass(frozen=True)
class End:
    TYPE: ClassVar[str] = "end"
    utterance: int


@dataclass(frozen=True)
class Cancel:
    TYPE: ClassVar[str] = "cancel"
    utterance: int


@dataclass(frozen=True)
class Ready:
    TYPE: ClassVar[str] = "ready"
    version: int
    voice: str
    sample_rate_hz: int


@dataclass(frozen=True)
class Word:
    """Samples count from the start of the utterance; characters index the utterance's whole text."""

    text: str
    start_sample: int
    end_sample: int
    start_char: int
    end_char: int


@dataclass(frozen=True)
class Words:
    TYPE: ClassVar[str] = "words"
    utterance: int
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Done:
    """`ttfa_ms`: first text to be spoken received -> first audible audio sent. None when nothing was speakable."""

    TYPE: ClassVar[str] = "done"
    utterance: int
    samples: int
    compute_ms: float
    ttfa_ms: float | None = None


@dataclass(frozen=True)
class Cancelled:
    TYPE: ClassVar[str] = "cancelled"
    utterance: int


@dataclass(frozen=True)
class Error:
    """`utterance` names the one that failed; without it the connection closes next."""

    TYPE: ClassVar[str] = "error"
    code: str
    message: str
    utterance: int | None = None
    retry_after_ms: int | None = None  # of code `overloaded`


ClientMessage: TypeAlias = Hello | Text | Flush | End | Cancel
ServerMessage: TypeAlias = Ready | Words | Done | Cancelled | Error
CLIENT_MESSAGES = (Hello, Text, Flush, End, Cancel)
SERVER_MESSAGES = (Ready, Words, Done, Cancelled, Error)
