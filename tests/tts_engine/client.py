"""A client of `WS /v1/speak` for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from tests.serving import serving
from tests.tts_engine.conftest import config
from tts_engine.engine import Engine
from tts_engine.service import build
from wire import speak
from wire.messages import Message, decode, encode
from wire.pcm import unpack_utterance
from wire.service import Lifecycle

PATIENCE_S = 30.0


@dataclass
class Heard:
    """What came of one utterance. `order`: the kinds of its messages, in order."""

    words: list[speak.Word] = field(default_factory=list)
    pcm: list[np.ndarray] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @property
    def audio(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int16), *self.pcm])


class Client:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.heard: dict[int, Heard] = {}

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self.connection.send(encode(message))

    async def say(self, utterance: int, text: str, deadline_ms: int | None = None) -> None:
        await self.send(speak.Text(utterance, text, deadline_ms), speak.End(utterance))

    async def receive(self) -> speak.ServerMessage | tuple[int, np.ndarray]:
        async with asyncio.timeout(PATIENCE_S):
            data = await self.connection.recv()
        if isinstance(data, bytes):
            utterance, pcm = unpack_utterance(data)
            heard = self._of(utterance)
            heard.pcm.append(pcm)
            heard.order.append("audio")
            return utterance, pcm
        message = decode(data, speak.SERVER_MESSAGES)
        if (
            isinstance(message, speak.Words | speak.Done | speak.Cancelled | speak.Error)
            and message.utterance is not None
        ):
            self._of(message.utterance).order.append(message.TYPE)
            if isinstance(message, speak.Words):
                self._of(message.utterance).words += message.words
        return message

    async def until(self, kind: type[Message], utterance: int | None = None) -> Message:
        """The next message of `kind`, of `utterance` if given; what comes before is heard too."""
        while True:
            message = await self.receive()
            if isinstance(message, kind) and utterance in (None, message.utterance):  # type: ignore[attr-defined]
                return message

    async def until_audio(self, utterance: int) -> np.ndarray:
        while True:
            message = await self.receive()
            if isinstance(message, tuple) and message[0] == utterance:
                return message[1]

    def _of(self, utterance: int) -> Heard:
        return self.heard.setdefault(utterance, Heard())


@asynccontextmanager
async def speaking(engine: Engine, **changes: int) -> AsyncIterator[str]:
    """The service on a free port; yields its base URL."""
    settings, lifecycle = config(**changes), Lifecycle("tts_engine")
    async with serving(build(settings, engine, lifecycle), lifecycle, settings.edge) as base:
        yield base


@asynccontextmanager
async def connected(base: str, hello: speak.Hello | None = None) -> AsyncIterator[Client]:
    async with connect(base.replace("http", "ws") + "/v1/speak", proxy=None, max_size=1 << 20) as connection:
        client = Client(connection)
        await client.send(hello or speak.Hello(version=1))
        assert isinstance(await client.receive(), speak.Ready)
        yield client
