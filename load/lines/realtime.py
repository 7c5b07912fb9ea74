"""The caller's end of a call over OpenAI's Realtime protocol (GA), WebSocket: `WS /v1/realtime?model=...`.

Audio goes and comes as base64 PCM16 at 24 kHz. What the server tells is put in the terms of `wire.calls`, so far as it
has them, so that one measurement serves all servers. Turns are counted by their answers: an answer that ends or is
cancelled is a turn. On this transport the client owns playout: when the caller barges in it drops what it has not
played and tells the server by `conversation.item.truncate` how much was heard.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from load.lines.boundary import CONNECT_TIMEOUT_S, Line, LineClosed, NoCall, Received
from load.lines.sockets import line_closed, open_socket
from wire import calls
from wire.errors import PeerError
from wire.messages import read_json_object
from wire.pcm import Pcm16

RATE_HZ = 24000


class RealtimeLine:
    counts_samples = False  # nothing is acknowledged here

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._turn = 0
        self._item = ""  # of the answer that is being received
        self._item_samples = 0
        self._item_start_s = 0.0
        self._played_until_s = 0.0
        self._pending: deque[calls.ServerMessage] = deque()

    async def open(self, hello: calls.Hello) -> None:
        """Wait for the session, ask for our format. Raises: NoCall, LineClosed, PeerError."""
        first = await self._event()
        if first["type"] == "error":
            raise NoCall(f"the server refused the session: {_error_text(first)}")
        if first["type"] != "session.created":
            raise PeerError(f"expected session.created, got {first['type']}")
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        output: dict[str, Any] = {"format": pcm, **({"voice": hello.voice} if hello.voice is not None else {})}
        await self._send({"type": "session.update", "session": {
            "type": "realtime", "output_modalities": ["audio"],
            "audio": {"input": {"format": pcm, "transcription": {"language": hello.language}}, "output": output},
        }})  # fmt: skip
        self._pending.append(calls.Ready(1, "", RATE_HZ, RATE_HZ, hello.voice or "", 0))

    async def send_audio(self, pcm: Pcm16) -> None:
        audio = base64.b64encode(pcm.astype("<i2", copy=False).tobytes()).decode()
        await self._send({"type": "input_audio_buffer.append", "audio": audio})

    async def send(self, message: calls.ClientMessage) -> None:
        if isinstance(message, calls.Hangup):
            await self._connection.close()

    async def receive(self) -> Received:
        while True:
            if self._pending:
                return time.monotonic(), self._pending.popleft()
            event = await self._event()
            now = time.monotonic()
            try:
                received = await self._take(event, now)
            except (LookupError, TypeError, AttributeError, binascii.Error) as error:
                raise PeerError(f"malformed {event['type']}: {error}") from None
            if received is not None:
                return now, received

    async def _take(self, event: dict[str, Any], now: float) -> Pcm16 | calls.ServerMessage | None:
        match event["type"]:
            case "response.output_audio.delta" | "response.audio.delta":  # GA, beta
                return self._hear(event, now)
            case "response.output_audio_transcript.delta" | "response.audio_transcript.delta":
                return calls.Reply(self._turn, event["delta"])
            case "conversation.item.input_audio_transcription.completed":
                return calls.Final(self._turn, event["transcript"].strip())
            case "input_audio_buffer.speech_started":
                return await self._barge_in(now)
            case "input_audio_buffer.committed":
                self._turn += 1
                return calls.State("thinking", self._turn)
            case "response.done":
                status = event["response"]["status"]
                outcome = {"completed": "answered", "cancelled": "interrupted"}.get(status, "failed")
                return calls.Turn(self._turn, outcome, "", "")  # type: ignore[arg-type]
            case "error":
                return calls.Error(str(event["error"].get("code") or "error"), _error_text(event))
        return None

    def _hear(self, event: dict[str, Any], now: float) -> Pcm16:
        data = base64.b64decode(event["delta"], validate=True)
        pcm = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        start_s = max(now, self._played_until_s)
        if event["item_id"] != self._item:
            self._item, self._item_samples, self._item_start_s = event["item_id"], 0, start_s
        self._item_samples += pcm.size
        self._played_until_s = start_s + pcm.size / RATE_HZ
        return pcm

    async def _barge_in(self, now: float) -> calls.ServerMessage:
        if now >= self._played_until_s or not self._item:
            return calls.State("hearing", self._turn + 1)
        played_ms = round(1000 * min(now - self._item_start_s, self._item_samples / RATE_HZ))
        self._played_until_s = now
        await self._send({
            "type": "conversation.item.truncate", "item_id": self._item, "content_index": 0,
            "audio_end_ms": max(0, played_ms),
        })  # fmt: skip
        return calls.Clear(self._turn, 0)

    async def _event(self) -> dict[str, Any]:
        try:
            data = await self._connection.recv()
        except ConnectionClosed as closed:
            raise line_closed(closed) from None
        event = read_json_object(data)
        if not isinstance(event.get("type"), str):
            raise PeerError("an event without a type")
        return event

    async def _send(self, event: dict[str, Any]) -> None:
        try:
            await self._connection.send(json.dumps(event))
        except ConnectionClosed as closed:
            raise line_closed(closed) from None


def _error_text(event: dict[str, Any]) -> str:
    error = event.get("error")
    return str(error.get("message", "no reason given")) if isinstance(error, dict) else "no reason given"


@contextlib.asynccontextmanager
async def realtime_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Both rates of `hello` must be `RATE_HZ`. Raises: NoCall."""
    assert hello.sample_rate_hz == hello.output_sample_rate_hz == RATE_HZ
    async with open_socket(url, key, "wss://HOST/v1/realtime?model=NAME") as connection:
        line = RealtimeLine(connection)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await line.open(hello)
        except TimeoutError:
            raise NoCall(f"{url} opened no session within {CONNECT_TIMEOUT_S:.0f} s") from None
        except LineClosed as closed:
            raise NoCall(f"{url} closed the session: {closed}") from None
        yield line
