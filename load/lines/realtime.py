"""The caller's end of a call over OpenAI's Realtime protocol (GA), WebSocket: `WS /v1/realtime?model=...`.

Audio goes and comes as base64 PCM16 at 24 kHz. What the server tells is put in the terms of `wire.calls`, so far as it
has them, so that one measurement serves all servers. A turn is what the server commits of the caller's audio; a
response answers the turn that was last when it was created, so what the server says unasked before the first has turn
0. On this transport the client owns playout: when the caller barges in it drops what it has not played, and what
comes of those items later, and tells the server by `conversation.item.truncate` how much was heard. The response itself
is cancelled by the server, whose `interrupt_response` is on unless configured otherwise, so no `response.cancel` is
sent. What was heard of an interrupted answer the protocol does not say in words.
(Events as in the openai package for Python, types/realtime; the names of the beta's audio events are taken too.)
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from load.lines.boundary import CONNECT_TIMEOUT_S, Line, LineClosed, NoCall, Received
from load.lines.playout import Playout
from load.lines.sockets import line_closed, open_socket, send
from wire import calls
from wire.errors import PeerError
from wire.messages import read_json_object
from wire.pcm import Pcm16, to_bytes

RATE_HZ = 24000
MAX_EARLY = 64  # events before the session stands: `conversation.created`, the beginning of a greeting
_Outcome: TypeAlias = Literal["answered", "interrupted", "failed"]
_OUTCOMES: Mapping[object, _Outcome] = {"completed": "answered", "cancelled": "interrupted"}


class RealtimeLine:
    counts_samples = False  # nothing is acknowledged here

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._early: deque[tuple[float, dict[str, Any]]] = deque()  # came before the session stood
        self._pending: deque[calls.ServerMessage] = deque()
        self._has_hung_up = False
        self._turn = 0
        self._turn_of: dict[str, int] = {}  # items of the caller's audio, and responses
        self._said: dict[int, str] = {}  # what was understood, by turn
        self._replies: dict[int, str] = {}
        self._playout = Playout(RATE_HZ)
        self._cut_items: set[str] = set()

    async def open(self, hello: calls.Hello, transcription_model: str | None) -> None:
        """Wait for the session, ask for our format. Raises: NoCall, LineClosed, PeerError."""
        await self._until("session.created")
        pcm = {"type": "audio/pcm", "rate": RATE_HZ}
        output: dict[str, Any] = {"format": pcm, **({"voice": hello.voice} if hello.voice is not None else {})}
        transcription = {
            "language": hello.language,
            **({"model": transcription_model} if transcription_model is not None else {}),
        }
        await self._send({"type": "session.update", "session": {
            "type": "realtime", "output_modalities": ["audio"],
            "audio": {"input": {"format": pcm, "transcription": transcription}, "output": output},
        }})  # fmt: skip
        await self._until("session.updated")
        self._pending.append(calls.Ready(1, "", RATE_HZ, RATE_HZ, hello.voice or "", 0))

    async def send_audio(self, pcm: Pcm16) -> None:
        audio = base64.b64encode(to_bytes(pcm)).decode()
        await self._send({"type": "input_audio_buffer.append", "audio": audio})

    async def send(self, message: calls.ClientMessage) -> None:
        """Hanging up is closing; nothing else of a caller's has a counterpart."""
        if isinstance(message, calls.Hangup):
            self._has_hung_up = True
            await self._connection.close()

    async def vanish(self) -> None:
        self._connection.transport.abort()

    async def receive(self) -> Received:
        while True:
            if self._pending:
                return time.monotonic(), self._pending.popleft()
            try:
                now, event = self._early.popleft() if self._early else await self._event()
            except LineClosed:
                if not self._has_hung_up:
                    raise
                self._has_hung_up = False
                return time.monotonic(), calls.Bye("hangup")
            try:
                received = await self._take(event, now)
            except (LookupError, TypeError, AttributeError, binascii.Error) as error:
                raise PeerError(f"malformed {event['type']}: {error!r}"[:200]) from None
            if received is not None:
                return now, received

    async def _take(self, event: dict[str, Any], now: float) -> Pcm16 | calls.ServerMessage | None:
        match event["type"]:
            case "response.output_audio.delta" | "response.audio.delta":  # GA, beta
                return self._hear(event, now)
            case "response.output_audio_transcript.delta" | "response.audio_transcript.delta":
                return self._reply(self._turn_of.get(event["response_id"], self._turn), event["delta"])
            case "input_audio_buffer.speech_started":
                return await self._barge_in(now)
            case "input_audio_buffer.committed":
                self._turn += 1
                self._turn_of[event["item_id"]] = self._turn
                return calls.State("thinking", self._turn)
            case "conversation.item.input_audio_transcription.completed":
                turn = self._turn_of.get(event["item_id"], self._turn)
                self._said[turn] = event["transcript"].strip()
                return calls.Final(turn, self._said[turn])
            case "response.created":
                self._turn_of[event["response"]["id"]] = self._turn
            case "response.done":
                return self._end_response(event["response"])
            case "error" | "conversation.item.input_audio_transcription.failed":
                return calls.Error(str(event["error"].get("code") or event["type"]), _error_text(event))
        return None

    def _hear(self, event: dict[str, Any], now: float) -> Pcm16 | None:
        data = base64.b64decode(event["delta"], validate=True)
        pcm = np.frombuffer(data[: len(data) // 2 * 2], "<i2")
        if event["item_id"] in self._cut_items:
            return None
        self._playout.add(event["item_id"], event["content_index"], pcm.size, now)
        return pcm

    def _reply(self, turn: int, delta: str) -> calls.ServerMessage:
        self._replies[turn] = self._replies.get(turn, "") + delta
        return calls.Reply(turn, delta)

    async def _barge_in(self, now: float) -> calls.ServerMessage:
        cuts = self._playout.cut(now)
        for cut in cuts:
            self._cut_items.add(cut.item)
            await self._send({
                "type": "conversation.item.truncate", "item_id": cut.item, "content_index": cut.content_index,
                "audio_end_ms": cut.audio_end_ms,
            })  # fmt: skip
        hearing = calls.State("hearing", self._turn + 1)
        if not cuts:
            return hearing
        self._pending.append(hearing)
        return calls.Clear(self._turn, 0)

    def _end_response(self, response: dict[str, Any]) -> calls.ServerMessage | None:
        turn = self._turn_of.pop(response["id"], self._turn)
        outcome: _Outcome = _OUTCOMES.get(response["status"], "failed")
        if turn == 0:
            return None
        heard = self._replies.get(turn, "").strip() if outcome == "answered" else ""
        return calls.Turn(turn, outcome, self._said.get(turn, ""), heard)

    async def _until(self, kind: str) -> None:
        """What else comes is kept. Raises: NoCall, LineClosed, PeerError."""
        while True:
            now, event = await self._event()
            if event["type"] == kind:
                return
            if event["type"] == "error":
                raise NoCall(f"the server refused the session: {_error_text(event)}")
            if len(self._early) == MAX_EARLY:
                raise PeerError(f"expected {kind}, got {MAX_EARLY} other events")
            self._early.append((now, event))

    async def _event(self) -> tuple[float, dict[str, Any]]:
        try:
            data = await self._connection.recv()
        except ConnectionClosed as closed:
            raise line_closed(closed) from None
        event = read_json_object(data)
        if not isinstance(event.get("type"), str):
            raise PeerError("an event without a type")
        return time.monotonic(), event

    async def _send(self, event: dict[str, Any]) -> None:
        await send(self._connection, json.dumps(event))


def _error_text(event: dict[str, Any]) -> str:
    error = event.get("error")
    return str(error.get("message", "no reason given")) if isinstance(error, dict) else "no reason given"


@contextlib.asynccontextmanager
async def realtime_line(
    url: str, hello: calls.Hello, key: str | None, *, transcription_model: str | None = None
) -> AsyncIterator[Line]:
    """Both rates of `hello` must be `RATE_HZ`. `transcription_model`: for servers that want one to be named.

    Raises: NoCall.
    """
    assert hello.sample_rate_hz == hello.output_sample_rate_hz == RATE_HZ
    async with open_socket(url, key, "wss://HOST/v1/realtime?model=NAME") as connection:
        line = RealtimeLine(connection)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await line.open(hello, transcription_model)
        except TimeoutError:
            raise NoCall(f"{url} opened no session within {CONNECT_TIMEOUT_S:.0f} s") from None
        except LineClosed as closed:
            raise NoCall(f"{url} closed the session: {closed}") from None
        except PeerError as error:
            raise NoCall(f"{url} speaks another protocol: {error}") from None
        yield line
