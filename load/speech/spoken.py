"""A voice that tells the times of its words: a client of `WS /v1/speak`, by which synthetic callers get speech."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from load.errors import LoadError
from load.lines.boundary import CONNECT_TIMEOUT_S, is_here
from wire import speak
from wire.errors import PeerError
from wire.messages import PROTOCOL_VERSION, decode, encode
from wire.pcm import Pcm16, unpack_utterance

UTTERANCE_TIMEOUT_S = 60.0  # ten seconds of speech on a slow machine take a fifth of that
_KINDS: tuple[type[speak.ServerMessage], ...] = speak.SERVER_MESSAGES


class Speaker:
    """One connection; an utterance at a time."""

    def __init__(self, url: str, connection: ClientConnection, sample_rate_hz: int) -> None:
        self.sample_rate_hz = sample_rate_hz
        self._url = url
        self._connection = connection
        self._numbers = itertools.count(1)

    async def say(self, text: str) -> tuple[Pcm16, list[int]]:
        """The audio, and the samples at which its words meet.

        Raises: LoadError.
        """
        number = next(self._numbers)
        try:
            async with asyncio.timeout(UTTERANCE_TIMEOUT_S):
                await self._connection.send(encode(speak.Text(number, text)))
                await self._connection.send(encode(speak.End(number)))
                return await self._receive()
        except (ConnectionClosed, PeerError) as error:
            raise LoadError(f"{self._url} broke off while it spoke: {error}") from None
        except TimeoutError:
            raise LoadError(f"{self._url} did not speak within {UTTERANCE_TIMEOUT_S:.0f} s") from None

    async def _receive(self) -> tuple[Pcm16, list[int]]:
        parts: list[Pcm16] = [np.zeros(0, np.int16)]
        words: list[speak.Word] = []
        while True:
            data = await self._connection.recv()
            if isinstance(data, bytes):
                parts.append(unpack_utterance(data)[1])
                continue
            match decode(data, _KINDS):
                case speak.Words(words=more):
                    words += more
                case speak.Error(message=message):
                    raise LoadError(f"{self._url} does not speak: {message}")
                case speak.Done():
                    return np.concatenate(parts), borders_of(words)


def borders_of(words: list[speak.Word]) -> list[int]:
    """In the middle between the end of a word and the beginning of the next."""
    return [(before.end_sample + after.start_sample) // 2 for before, after in itertools.pairwise(words)]


@contextlib.asynccontextmanager
async def speaker_at(url: str, hello: speak.Hello, key: str | None) -> AsyncIterator[Speaker]:
    """`url` is the service's base address. Raises: LoadError."""
    try:
        connection = await connect(
            url.replace("http", "ws", 1) + "/v1/speak",
            additional_headers={"Authorization": f"Bearer {key}"} if key is not None else {},
            proxy=None if is_here(url) else True,
            compression=None,
            open_timeout=CONNECT_TIMEOUT_S,
            close_timeout=1.0,
        )
    except (OSError, TimeoutError, InvalidHandshake, InvalidStatus, InvalidURI) as error:
        raise LoadError(f"no voice service at {url}: {error or 'no answer'}", "start one: offhook up") from None
    async with connection:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await connection.send(encode(hello))
                ready = decode(str(await connection.recv()), _KINDS)
        except (ConnectionClosed, PeerError, TimeoutError) as error:
            raise LoadError(f"{url} does not take a request to speak: {error or 'no answer'}") from None
        if not isinstance(ready, speak.Ready):
            problem = ready.message if isinstance(ready, speak.Error) else f"answered with {ready.TYPE}"
            raise LoadError(f"{url} does not speak: {problem}")
        yield Speaker(url, connection, ready.sample_rate_hz)


def hello_of(voice: str, speed: float, seed: int) -> speak.Hello:
    return speak.Hello(PROTOCOL_VERSION, voice=voice, seed=seed, speed=speed)
