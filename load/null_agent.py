"""An agent without a mind: answers every utterance with the same audio, to measure the instrument and not an agent.

It speaks `WS /v1/calls`, hears by loudness alone, and tells of each turn the latency that it has itself: from the
message that ended the caller's speech, as loudness has it, to the first of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from load.speech.resample import resampled
from wire import calls
from wire.errors import PeerError
from wire.messages import PROTOCOL_VERSION, decode, encode
from wire.pcm import AUDIO_FRAME_S, Pcm16, to_float, to_int16

logger = logging.getLogger(__name__)

LOUD = 328  # of 32768: -40 dBFS
ANSWER_HZ = 24000
CLIENT_KINDS: tuple[type[calls.ClientMessage], ...] = calls.CLIENT_MESSAGES


@dataclass(frozen=True)
class NullAgent:
    """`answer` is at 24 kHz and must begin audibly; it starts `answer_after_s` after the caller's last loud message."""

    answer: Pcm16
    answer_after_s: float = 0.5
    text: str = "This is no answer."
    _answers: dict[int, Pcm16] = field(default_factory=dict, init=False, repr=False)  # by rate

    def answer_at(self, rate_hz: int) -> Pcm16:
        if rate_hz not in self._answers:
            self._answers[rate_hz] = to_int16(resampled(to_float(self.answer), ANSWER_HZ, rate_hz))
        return self._answers[rate_hz]

    @contextlib.asynccontextmanager
    async def running(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
        """Yields the address of its calls."""
        async with serve(self._take, host, port, compression=None) as server:
            bound = next(iter(server.sockets)).getsockname()
            yield f"ws://{bound[0]}:{bound[1]}/v1/calls"

    async def _take(self, connection: ServerConnection) -> None:
        try:
            hello = decode(str(await connection.recv()), CLIENT_KINDS)
            if not isinstance(hello, calls.Hello):
                raise PeerError("the first message must be a hello", code="no_hello")
            await _NullCall(self, connection, hello).run()
        except* (ConnectionClosed, PeerError) as group:
            logger.debug("a call was lost: %s", group.exceptions[0])


class _NullCall:
    def __init__(self, agent: NullAgent, connection: ServerConnection, hello: calls.Hello) -> None:
        self._agent = agent
        self._connection = connection
        self._hello = hello
        self._turn = 0

    async def run(self) -> None:
        hello = self._hello
        await self._tell(
            calls.Ready(PROTOCOL_VERSION, "null", hello.sample_rate_hz, hello.output_sample_rate_hz, "null", 0)
        )
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            answering: asyncio.Task[None] | None = None
            spoke_s: float | None = None
            async for data in self._connection:
                now = loop.time()
                if isinstance(data, str):
                    if isinstance(decode(data, CLIENT_KINDS), calls.Hangup):
                        break
                    continue
                if np.abs(np.frombuffer(data, "<i2").astype(np.int32)).max(initial=0) > LOUD:
                    spoke_s = now
                elif spoke_s is not None and now - spoke_s >= self._agent.answer_after_s - 2 * AUDIO_FRAME_S:
                    answering = tasks.create_task(self._answer(spoke_s))
                    spoke_s = None
            if answering is not None:
                answering.cancel()
        await self._tell(calls.Bye("hangup"))

    async def _answer(self, spoke_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._turn += 1
        start_s = spoke_s + self._agent.answer_after_s
        await asyncio.sleep(max(0.0, start_s - loop.time()))
        await self._tell(calls.Final(self._turn, ""))
        await self._tell(calls.Reply(self._turn, self._agent.text))
        rate_hz = self._hello.output_sample_rate_hz
        answer, size = self._agent.answer_at(rate_hz), round(AUDIO_FRAME_S * rate_hz)
        first_s = loop.time()
        for number, begin in enumerate(range(0, answer.size, size)):
            await asyncio.sleep(max(0.0, start_s + number * AUDIO_FRAME_S - loop.time()))
            await self._connection.send(answer[begin : begin + size].astype("<i2").tobytes())
        latency_ms = round(1000 * (first_s - spoke_s), 1)
        turn = calls.Turn(self._turn, "answered", "", self._agent.text, latency_ms, {"playout": latency_ms})
        await self._tell(turn)

    async def _tell(self, message: calls.ServerMessage) -> None:
        await self._connection.send(encode(message))
