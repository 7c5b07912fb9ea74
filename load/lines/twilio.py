"""The caller's end of a call as Twilio's Media Streams bring it: we are Twilio, the agent is the server.

JSON text messages, audio as base64 mu-law at 8 kHz; numbers beside audio are strings. A mark comes back when all audio
before it has been played, and at once on `clear`, which is why an echoed mark is no proof of playout.
(Twilio, "Media Streams: WebSocket messages".)
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from load.lines.boundary import Line, LineClosed, NoCall, Received
from load.lines.sockets import line_closed, open_socket, send
from load.speech.g711 import decode, encode
from wire import calls
from wire.errors import PeerError
from wire.messages import read_json_object
from wire.pcm import Pcm16

RATE_HZ = 8000
MAX_MARKS = 50_000  # one for every 20 ms of a quarter of an hour
ACCOUNT = f"AC{'0' * 32}"


class TwilioLine:
    counts_samples = True

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._stream = f"MZ{secrets.token_hex(16)}"
        self._call = f"CA{secrets.token_hex(16)}"
        self._is_ready_told = False
        self._has_hung_up = False
        self._sequence = 0
        self._chunk = 0
        self._num_sent = 0  # samples
        self._num_received = 0
        self._played_until_s = 0.0
        self._marks: deque[tuple[float, str]] = deque()  # when it is due, name

    async def start(self, parameters: dict[str, str]) -> None:
        await self._send({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        start = {
            "accountSid": ACCOUNT,
            "streamSid": self._stream,
            "callSid": self._call,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": RATE_HZ, "channels": 1},
            "customParameters": parameters,
        }
        await self._send_counted({"event": "start", "start": start})

    async def send_audio(self, pcm: Pcm16) -> None:
        await self._echo_due_marks()
        self._chunk += 1
        media = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str(round(1000 * self._num_sent / RATE_HZ)),
            "payload": base64.b64encode(encode(pcm, "mulaw").tobytes()).decode(),
        }
        self._num_sent += pcm.size
        await self._send_counted({"event": "media", "media": media})

    async def send(self, message: calls.ClientMessage) -> None:
        """Hanging up is all that Twilio tells of what a caller of ours would."""
        if isinstance(message, calls.Hangup):
            self._has_hung_up = True
            await self._send_counted({"event": "stop", "stop": {"accountSid": ACCOUNT, "callSid": self._call}})
            await self._connection.close()

    async def vanish(self) -> None:
        self._connection.transport.abort()

    async def receive(self) -> Received:
        if not self._is_ready_told:  # a stream stands as soon as it has started: no server answers it
            self._is_ready_told = True
            return time.monotonic(), calls.Ready(1, self._call, RATE_HZ, RATE_HZ, "", 0)
        while True:
            try:
                data = await self._connection.recv()
            except ConnectionClosed as closed:
                if not self._has_hung_up:
                    raise line_closed(closed) from None
                self._has_hung_up = False
                return time.monotonic(), calls.Bye("hangup")
            now = time.monotonic()
            if isinstance(data, bytes):
                raise PeerError("a binary message; Twilio takes text only (31950)")
            if (received := await self._take(read_json_object(data), now)) is not None:
                return now, received

    async def _take(self, message: dict[str, Any], now: float) -> Pcm16 | calls.ServerMessage | None:
        """Raises: PeerError for what Twilio would not take (31951)."""
        event = message.get("event")
        if message.get("streamSid") != self._stream:
            raise PeerError(f"'{event}' for another stream than ours (31951)")
        try:
            if event == "media":
                payload = base64.b64decode(message["media"]["payload"], validate=True)
                pcm = decode(np.frombuffer(payload, np.uint8), "mulaw")
                self._num_received += pcm.size
                self._played_until_s = max(now, self._played_until_s) + pcm.size / RATE_HZ
                return pcm
            if event == "mark":
                self._marks.append((self._played_until_s, str(message["mark"]["name"])))
                if len(self._marks) > MAX_MARKS:
                    raise PeerError(f"more than {MAX_MARKS} marks wait for what was sent to be played")
                return None
            if event == "clear":
                self._played_until_s = now
                self._marks = deque((now, name) for _, name in self._marks)
                await self._echo_due_marks()
                return calls.Clear(0, self._num_received)
        except (LookupError, TypeError, binascii.Error) as error:
            raise PeerError(f"malformed '{event}' message (31951): {error}") from None
        raise PeerError(f"unknown event {event!r:.40} (31951)")

    async def _echo_due_marks(self) -> None:
        while self._marks and self._marks[0][0] <= time.monotonic():
            _, name = self._marks.popleft()
            await self._send_counted({"event": "mark", "mark": {"name": name}})

    async def _send_counted(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        await self._send({**message, "sequenceNumber": str(self._sequence), "streamSid": self._stream})

    async def _send(self, message: dict[str, Any]) -> None:
        await send(self._connection, json.dumps(message))


@contextlib.asynccontextmanager
async def twilio_line(url: str, parameters: dict[str, str]) -> AsyncIterator[Line]:
    """Both rates are `RATE_HZ`. `parameters`: what `<Parameter>` of the TwiML would hand over. Raises: NoCall."""
    async with open_socket(url, None, "wss://HOST/v1/twilio") as connection:
        line = TwilioLine(connection)
        try:
            await line.start(parameters)
        except LineClosed as closed:
            raise NoCall(f"{url} closed the stream: {closed}") from None
        yield line
