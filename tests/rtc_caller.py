"""A caller for tests over WebRTC, with what `tests.caller.Caller` offers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import numpy as np

from load.lines.boundary import Line, LineClosed
from load.lines.webrtc import rtc_line
from tests.caller import MESSAGE_S, Caller
from wire import calls

RATE_HZ = 48000


class RtcCaller(Caller):
    """`audio` holds what was not silent. `closed` says how the line ended, once it has."""

    def __init__(self, line: Line) -> None:
        super().__init__(None, acknowledges=False)  # type: ignore[arg-type]
        self.line = line
        self.closed: str | None = None

    def say(self, pcm: np.ndarray) -> None:
        """`pcm` at 48 kHz."""
        self._say = [pcm[i : i + 960] for i in range(0, pcm.size, 960)]

    async def send(self, message: calls.ClientMessage) -> None:
        await self.line.send(message)

    async def until_gone(self, timeout_s: float = 20.0) -> str:
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self.closed is not None)
        assert self.closed is not None
        return self.closed

    async def _listen(self) -> None:
        while True:
            try:
                at_s, received = await self.line.receive()
            except LineClosed as closed:
                async with self._changed:
                    self.closed = str(closed)
                    self._changed.notify_all()
                return
            async with self._changed:
                if isinstance(received, np.ndarray):
                    self.audio.append((at_s, received))
                else:
                    self.message_times.append(at_s)
                    self.messages.append(received)
                self._changed.notify_all()

    async def _talk(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            piece = self._say.pop(0) if self._say else np.zeros(960, np.int16)
            if not self._say:
                async with self._changed:
                    self._changed.notify_all()
            await self.line.send_audio(piece)
            due_s += MESSAGE_S
            await asyncio.sleep(max(0.0, due_s - loop.time()))


@contextlib.asynccontextmanager
async def rtc_calling(base: str, hello: calls.Hello | None = None, key: str | None = None) -> AsyncIterator[RtcCaller]:
    """A call under way; hung up by closing the connection."""
    async with rtc_line(f"{base}/v1/calls/rtc", hello or calls.Hello(1, 48000, 48000), key) as line:
        caller = RtcCaller(line)
        listening, talking = asyncio.create_task(caller._listen()), asyncio.create_task(caller._talk())
        try:
            yield caller
        finally:
            for task in (listening, talking):
                task.cancel()
            await asyncio.wait([listening, talking])
