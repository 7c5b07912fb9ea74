"""A caller for tests: speaks recorded audio in real time over `WS /v1/calls` and keeps what it hears."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from voice.media.level import first_audible
from wire import calls
from wire.messages import decode, encode

RATE_HZ = 16000
OUTPUT_HZ = 24000
MESSAGE_S = 0.02
M = TypeVar("M", bound=calls.ServerMessage)
_SIGNALS = calls.Error | calls.Bye


class Caller:
    """Sends silence whenever it has nothing to say, as a telephone does."""

    def __init__(self, connection: ClientConnection, *, acknowledges: bool) -> None:
        self.connection = connection
        self.messages: list[calls.ServerMessage] = []
        self.message_times: list[float] = []  # arrivals of `messages`
        self.audio: list[tuple[float, np.ndarray]] = []  # (arrival, samples)
        self.close_code: int | None = None
        self.closed_s = math.inf
        self.is_dead = False  # nothing comes from the line, which stays open
        self.said_s = math.inf  # when the last of what was to be said was sent
        self._acknowledges = acknowledges
        self.track = np.zeros(0, np.int16)  # what came and was not taken back, until the first `clear`
        self.end_sample = self._played = 0  # on the agent's clock: of what came and was not taken back, and was played
        self._say: list[np.ndarray] = []
        self._changed = asyncio.Condition()

    def say(self, pcm: np.ndarray) -> None:
        self.said_s = math.inf
        self._say = [pcm[i : i + 320] for i in range(0, pcm.size, 320)]

    @property
    def num_samples(self) -> int:
        return sum(pcm.size for _, pcm in self.audio)

    def of(self, kind: type[M]) -> list[M]:
        return [m for m in self.messages if isinstance(m, kind)]

    async def until(self, kind: type[M], holds: Callable[[M], bool] = lambda _: True, timeout_s: float = 20.0) -> M:
        """The first message of `kind` for which `holds`, waiting for it if need be."""
        async with asyncio.timeout(timeout_s), self._changed:
            while True:
                if found := [m for m in self.of(kind) if holds(m)]:
                    return found[0]
                await self._changed.wait()

    async def until_spoken(self, seconds: float, timeout_s: float = 20.0) -> None:
        """So much of what is being said has been said."""
        left = len(self._say) - round(seconds / MESSAGE_S)
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: len(self._say) <= left)

    async def until_audio(self, seconds: float, timeout_s: float = 20.0) -> None:
        """So much of the agent's audio has come."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self.num_samples >= seconds * OUTPUT_HZ)

    async def until_quiet(self, timeout_s: float = 20.0) -> None:
        """All that was to be said has been said."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: not self._say)

    async def until_next(
        self, kind: type[M], holds: Callable[[M], bool] = lambda _: True, timeout_s: float = 20.0
    ) -> M:
        """The first such message from now on."""
        num_known = len(self.messages)
        async with asyncio.timeout(timeout_s), self._changed:
            while True:
                if found := [m for m in self.messages[num_known:] if isinstance(m, kind) and holds(m)]:
                    return found[0]
                await self._changed.wait()

    def silence_s(self, since_s: float, until_s: float) -> float:
        """The longest stretch of that time in which nothing audible was played and no error, bye or close came."""
        marks = [(at, at) for at, m in zip(self.message_times, self.messages, strict=True) if isinstance(m, _SIGNALS)]
        played_s = 0.0
        for at, pcm in self.audio:
            start, played_s = max(at, played_s), max(at, played_s) + pcm.size / OUTPUT_HZ
            if first_audible(pcm) is not None:
                marks.append((start, played_s))
        marks += [(self.closed_s, self.closed_s), (until_s, until_s)]
        longest_s, quiet_since_s = 0.0, since_s
        for start, end in sorted(marks):
            longest_s = max(longest_s, min(start, until_s) - quiet_since_s)
            quiet_since_s = max(quiet_since_s, end)
        return longest_s

    async def until_closed(self, timeout_s: float = 20.0) -> int:
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self.close_code is not None)
        assert self.close_code is not None
        return self.close_code

    async def send(self, message: calls.ClientMessage) -> None:
        await self.connection.send(encode(message))

    async def _listen(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for data in self.connection:
                async with self._changed:
                    if isinstance(data, bytes):
                        pcm = np.frombuffer(data, "<i2")
                        self.audio.append((time.monotonic(), pcm))
                        self.track = np.concatenate([self.track[: self.end_sample], pcm])
                        self.end_sample += pcm.size
                    else:
                        message = decode(data, calls.SERVER_MESSAGES)
                        self.message_times.append(time.monotonic())
                        self.messages.append(message)
                        if isinstance(message, calls.Clear | calls.Rewind):
                            self.end_sample = self._played = message.sample
                    self._changed.notify_all()
        async with self._changed:
            self.close_code, self.closed_s = self.connection.close_code, time.monotonic()
            self._changed.notify_all()

    async def _talk(self) -> None:
        start, sent = time.monotonic(), 0
        with contextlib.suppress(ConnectionClosed):
            while True:
                if self._say:
                    piece, self.said_s = self._say.pop(0), time.monotonic()
                else:
                    piece = np.zeros(320, np.int16)
                async with self._changed:
                    self._changed.notify_all()
                if not self.is_dead:
                    await self.connection.send(piece.tobytes())
                sent += 1
                if self._acknowledges and self.end_sample > self._played:
                    self._played = min(self.end_sample, self._played + round(MESSAGE_S * OUTPUT_HZ))
                    await self.send(calls.Played(self._played))
                await asyncio.sleep(max(0.0, start + sent * MESSAGE_S - time.monotonic()))


@contextlib.asynccontextmanager
async def calling(base: str, hello: calls.Hello | None = None, *, acknowledges: bool = False) -> AsyncIterator[Caller]:
    """A call under way; hung up by closing the connection."""
    async with connect(base.replace("http", "ws") + "/v1/calls", proxy=None) as connection:
        caller = Caller(connection, acknowledges=acknowledges)
        await caller.send(hello or calls.Hello(1, output_sample_rate_hz=OUTPUT_HZ))
        listening, talking = asyncio.create_task(caller._listen()), asyncio.create_task(caller._talk())
        try:
            yield caller
        finally:
            talking.cancel()
            await connection.close()
            await asyncio.wait([listening, talking])
