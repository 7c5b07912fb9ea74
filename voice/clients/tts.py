"""The call's line to the voice: one connection; utterances are numbered by us and never reused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from voice.clients.socket import Link
from wire import speak
from wire.messages import PROTOCOL_VERSION
from wire.pcm import Pcm16, unpack_utterance

RECONNECT_S = 0.4  # twice what a voice that is alive needs to take a lost connection up again


@dataclass(frozen=True)
class Audio:
    utterance: int
    pcm: Pcm16


@dataclass(frozen=True)
class Lost:
    """The connection is gone, and with it every utterance under way."""


SpeechEvent: TypeAlias = Audio | speak.Words | speak.Done | speak.Cancelled | speak.Error | Lost


class TtsClient:
    """`on_event` may wait: the service then stops sending, which bounds what is queued here."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        call: str,
        voice: str | None,
        on_event: Callable[[SpeechEvent], Awaitable[None]],
        on_lost: Callable[[], None],
    ) -> None:
        hello = speak.Hello(version=PROTOCOL_VERSION, voice=voice, call=call)
        self.link: Link[speak.ServerMessage] = Link(
            f"{url}/v1/speak", hello, speak.SERVER_MESSAGES, key=key, on_message=self._on_message, on_lost=on_lost
        )
        self._on_event = on_event
        self.sample_rate_hz = 0
        self.voice = ""

    async def say(self, utterance: int, text: str, deadline_s: float | None = None) -> None:
        """Hand over one unit of text and have it spoken now. Raises: Unavailable."""
        await self.link.wait_back(RECONNECT_S)
        deadline_ms = None if deadline_s is None else max(1, round(1000 * deadline_s))
        await self.link.send(speak.Text(utterance, text, deadline_ms))
        await self.link.send(speak.Flush(utterance))

    async def end(self, utterance: int) -> None:
        """Raises: Unavailable."""
        await self.link.send(speak.End(utterance))

    async def cancel(self, utterance: int) -> None:
        """Raises: Unavailable."""
        await self.link.send(speak.Cancel(utterance))

    async def _on_message(self, message: speak.ServerMessage | bytes) -> None:
        match message:
            case bytes():
                utterance, pcm = unpack_utterance(message)
                await self._on_event(Audio(utterance, pcm))
            case speak.Ready():
                self.sample_rate_hz, self.voice = message.sample_rate_hz, message.voice
                self.link.ready()
            case speak.Error(utterance=None):
                self.link.refuse(message.code, message.message)
            case _:
                await self._on_event(message)
