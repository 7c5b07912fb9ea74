"""A small call server for tests: hears loudness, answers with a tone. Speaks `wire.calls`, knows nothing of speech."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from wire import calls
from wire.messages import decode, encode
from wire.pcm import Pcm16

OUTPUT_HZ = 24000
LOUD = 1000
SILENCE_MESSAGES = 5  # end of turn
KINDS: tuple[type[calls.ClientMessage], ...] = calls.CLIENT_MESSAGES


def tone(seconds: float, rate_hz: int, hz: float = 440.0) -> Pcm16:
    samples: Pcm16 = (8000 * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate_hz)) / rate_hz)).astype(np.int16)
    return samples


@dataclass
class Answering:
    """What it does: `refuse` every call, fall `mute` (no answers), `vanish` at the first answer, `hang_up` instead."""

    refuse: bool = False
    mute: bool = False
    vanish: bool = False
    vanish_after: int = 0  # answers
    hang_up: bool = False
    complaints: tuple[calls.ServerMessage, ...] = ()  # before it vanishes
    lead_in_s: float = 0.05  # silence at the head of each answer
    answer_s: float = 0.3
    hellos: list[calls.Hello] = field(default_factory=list)
    played: list[int] = field(default_factory=list)
    audio_bytes: list[int] = field(default_factory=list)
    hung_up: bool = False
    url: str = ""

    async def serve_call(self, connection: ServerConnection) -> None:
        hello = decode(str(await connection.recv()), KINDS)
        assert isinstance(hello, calls.Hello)
        self.hellos.append(hello)
        if self.refuse:
            await connection.send(encode(calls.Error("overloaded", "all 2 lines are busy", 7000)))
            await connection.close(1013)
            return
        call = _Call(self, connection, hello)
        try:
            async with asyncio.TaskGroup() as tasks:
                await call.run(tasks)
        except* ConnectionClosed:
            pass

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Answering]:
        server: Server
        async with serve(self.serve_call, "127.0.0.1", 0) as server:
            self.url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/v1/calls"
            yield self


class _Call:
    def __init__(self, server: Answering, connection: ServerConnection, hello: calls.Hello) -> None:
        self.server, self.connection, self.hello = server, connection, hello
        self.turn, self.sent_samples = 0, 0
        self.speaking: asyncio.Task[None] | None = None

    async def run(self, tasks: asyncio.TaskGroup) -> None:
        await self.say(calls.Ready(1, "c0ffee", self.hello.sample_rate_hz, OUTPUT_HZ, "tone", 160))
        if self.hello.greeting:
            self.speaking = tasks.create_task(self.speak(turn=0))
        heard, quiet = False, 0
        async for data in self.connection:
            if isinstance(data, str):
                message = decode(data, KINDS)
                if isinstance(message, calls.Played):
                    self.server.played.append(message.sample)
                elif isinstance(message, calls.Hangup):
                    self.server.hung_up = True
                    await self.say(calls.Bye("hangup"))
                    return
                continue
            self.server.audio_bytes.append(len(data))
            loud = bool(np.abs(np.frombuffer(data, "<i2").astype(np.int32)).max() > LOUD)
            if loud and self.speaking is not None and not self.speaking.done():
                await self.interrupt()
            heard, quiet = (True, 0) if loud else (heard, quiet + 1)
            if heard and quiet == SILENCE_MESSAGES:
                heard = False
                await self.answer(tasks)

    async def answer(self, tasks: asyncio.TaskGroup) -> None:
        if self.server.vanish and self.turn >= self.server.vanish_after:
            for complaint in self.server.complaints:
                await self.say(complaint)
            await self.connection.close(1011, "failed")
        elif self.server.hang_up:
            await self.say(calls.Bye("idle"))
            await self.connection.close()
        elif not self.server.mute:
            self.turn += 1
            await self.say(calls.Final(self.turn, f"question {self.turn}"))
            self.speaking = tasks.create_task(self.speak(self.turn))

    async def interrupt(self) -> None:
        assert self.speaking is not None
        self.speaking.cancel()
        await self.say(calls.Clear(self.turn, self.sent_samples))
        await self.say(calls.Turn(self.turn, "interrupted", f"question {self.turn}", "answer"))

    async def speak(self, turn: int) -> None:
        await self.say(calls.State("speaking", turn))
        if turn:
            await self.say(calls.Reply(turn, "answer "))
            await self.say(calls.Reply(turn, str(turn)))
        silence = np.zeros(round(self.server.lead_in_s * OUTPUT_HZ), np.int16)
        pcm = np.concatenate([silence, tone(self.server.answer_s, OUTPUT_HZ)])
        for start in range(0, pcm.size, 480):
            piece = pcm[start : start + 480]
            await self.connection.send(piece.tobytes())
            self.sent_samples += piece.size
            await asyncio.sleep(0.02)
        if turn:
            stages = {"endpointing": 100.0, "llm_first_token": 250.0, "playout": 50.0}
            await self.say(calls.Turn(turn, "answered", f"question {turn}", f"answer {turn}", 400.0, stages))
        await self.say(calls.State("listening", turn))

    async def say(self, message: calls.ServerMessage) -> None:
        await self.connection.send(encode(message))
