"""One connection of `WS /v1/speak`: messages in, `wire.speak` out.

Receiver and sender run side by side. The receiver answers a cancel itself, and from then on the sender drops what it
finds of that utterance, so no audio follows `cancelled`. Utterance ids only grow on a connection; that is how one that
is over is known without remembering all.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import NoReturn

from tts_engine import metrics
from tts_engine.engine import MAX_OPEN_UTTERANCES, Audio, Engine, Event, Failed, Finished, Line, Manner
from tts_engine.segmenter import Segmenter
from wire import speak
from wire.errors import Overloaded, PeerError, WireError
from wire.messages import PROTOCOL_VERSION
from wire.pcm import pack_utterance
from wire.sockets import Disconnected, Socket

MAX_UTTERANCE_CHARACTERS = 200_000  # three hours of speech; what is not spoken yet waits here
MAX_ID = 2**32 - 1  # wire.pcm.pack_utterance has four bytes for it
REMEMBERED_FAILURES = 64  # utterances whose late text is dropped without another error
MIN_SPEED, MAX_SPEED = 0.5, 2.0


@dataclass
class _Spoken:
    """An utterance that is open here. `key` is the engine's name for it."""

    id: int
    key: int
    first_text_s: float
    segmenter: Segmenter = field(default_factory=Segmenter)
    num_characters: int = 0
    ended: bool = False
    ttfa_s: float | None = None


async def serve(socket: Socket[speak.ClientMessage], engine: Engine) -> None:
    """Until the client leaves. Raises: PeerError, Unavailable, Disconnected."""
    manner = await _greet(socket, engine)
    line = engine.line()
    session = _Session(socket, line, manner)
    try:
        await session.run()
    finally:
        line.close()


async def _greet(socket: Socket[speak.ClientMessage], engine: Engine) -> Manner:
    hello = await socket.receive_hello(speak.Hello)
    manner = manner_of(engine, hello.voice, hello.speed, hello.seed)
    await socket.send(speak.Ready(PROTOCOL_VERSION, manner.voice, engine.sample_rate_hz))
    return manner


def manner_of(engine: Engine, voice: str | None, speed: float, seed: int = 0) -> Manner:
    """Raises: PeerError for a voice that is not served, or a speed out of range."""
    if voice is not None and voice not in engine.voices:
        raise PeerError(f"no voice '{voice:.64}'; there is {', '.join(engine.voices)}", code="unknown_voice")
    if not MIN_SPEED <= speed <= MAX_SPEED:
        raise PeerError(f"speed must be {MIN_SPEED} to {MAX_SPEED}, got {speed}", code="bad_speed")
    return Manner(voice or engine.voices[0], seed, speed)


class _Session:
    def __init__(self, socket: Socket[speak.ClientMessage], line: Line, manner: Manner) -> None:
        self._socket = socket
        self._line = line
        self._manner = manner
        self._open: dict[int, _Spoken] = {}  # by id
        self._by_key: dict[int, _Spoken] = {}
        self._failed: deque[int] = deque(maxlen=REMEMBERED_FAILURES)
        self._highest_id = -1

    async def run(self) -> NoReturn:
        """Raises: what ended it, Disconnected or PeerError."""
        ended: BaseException
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send())
                tasks.create_task(self._receive())
        except* Disconnected as gone:
            ended = gone.exceptions[0]
        except* WireError as group:
            ended = group.exceptions[0]
        raise ended

    # Towards the engine.

    async def _receive(self) -> None:
        while True:
            message = await self._socket.receive()
            match message:
                case bytes():
                    raise PeerError("audio is not taken here: send text messages")
                case speak.Hello():
                    raise PeerError("hello was said already", code="bad_message")
                case speak.Cancel():
                    await self._cancel(message.utterance)
                case _:
                    await self._take(message)

    async def _take(self, message: speak.Text | speak.Flush | speak.End) -> None:
        """Text, flush or end. What is wrong with one utterance ends that utterance alone."""
        try:
            spoken = self._find(message)
            if spoken is None:
                return
            self._apply(spoken, message)
        except (PeerError, Overloaded) as error:
            await self._refuse(message.utterance, error)

    def _find(self, message: speak.Text | speak.Flush | speak.End) -> _Spoken | None:
        """None for one that failed here: its client may not know yet. Raises: PeerError."""
        number = message.utterance
        if not 0 <= number <= MAX_ID:
            raise PeerError(f"an utterance id is 0 to {MAX_ID}, got {number}", code="bad_message")
        if number in self._failed:
            return None
        if (spoken := self._open.get(number)) is not None:
            if spoken.ended:
                raise PeerError(f"utterance {number} has ended", code="utterance_closed")
            return spoken
        if number <= self._highest_id:
            raise PeerError(f"utterance {number} is over; a new one takes a higher id", code="utterance_closed")
        if not isinstance(message, speak.Text):
            raise PeerError(f"no utterance {number}: it begins with text", code="unknown_utterance")
        return self._begin(message)

    def _begin(self, message: speak.Text) -> _Spoken:
        self._highest_id = message.utterance
        if len(self._open) >= MAX_OPEN_UTTERANCES:
            self._failed.append(message.utterance)
            raise PeerError(f"{MAX_OPEN_UTTERANCES} utterances are open", code="too_many_utterances")
        now = time.monotonic()
        spoken = _Spoken(message.utterance, self._line.open(self._manner, None), now)
        self._open[spoken.id] = self._by_key[spoken.key] = spoken
        return spoken

    def _apply(self, spoken: _Spoken, message: speak.Text | speak.Flush | speak.End) -> None:
        """Raises: PeerError, Overloaded."""
        match message:
            case speak.Text():
                self._push(spoken, message)
            case speak.Flush():
                self._flush(spoken)
            case speak.End():
                self._flush(spoken)
                spoken.ended = True
                self._line.end(spoken.key)

    def _push(self, spoken: _Spoken, message: speak.Text) -> None:
        now = time.monotonic()
        if message.deadline_ms is not None:
            if message.deadline_ms < 0:
                raise PeerError("deadline_ms must not be negative", code="bad_message")
            self._line.set_deadline(spoken.key, now + message.deadline_ms / 1000)
        spoken.num_characters += len(message.delta)
        if spoken.num_characters > MAX_UTTERANCE_CHARACTERS:
            raise PeerError(f"more than {MAX_UTTERANCE_CHARACTERS} characters in an utterance", code="too_large")
        for unit in spoken.segmenter.push(message.delta):
            self._line.add(spoken.key, unit)

    def _flush(self, spoken: _Spoken) -> None:
        if (unit := spoken.segmenter.flush()) is not None:
            self._line.add(spoken.key, unit)

    async def _refuse(self, utterance: int, error: PeerError | Overloaded) -> None:
        """The error goes to the client; the utterance, if it was open, ends with it."""
        if (spoken := self._open.get(utterance)) is not None:
            self._close(spoken)
            self._failed.append(spoken.id)
            self._line.cancel(spoken.key)
        await self._socket.send(_error(error, utterance))

    async def _cancel(self, utterance: int) -> None:
        """Of one that is over already nothing is cancelled, but the answer holds: no audio comes after it."""
        if utterance > self._highest_id or utterance < 0:
            error = PeerError(f"no utterance {utterance} to cancel", code="unknown_utterance")
            await self._socket.send(_error(error, utterance))
            return
        if (spoken := self._open.get(utterance)) is not None:
            self._close(spoken)
            self._line.cancel(spoken.key)
        await self._socket.send(speak.Cancelled(utterance))

    def _close(self, spoken: _Spoken) -> None:
        del self._open[spoken.id], self._by_key[spoken.key]

    # Towards the client.

    async def _send(self) -> None:
        while True:
            event = await self._line.events.get()
            if (spoken := self._by_key.get(event.key)) is not None:
                await self._tell(spoken, event)
            if isinstance(event, Audio):
                self._line.sent()

    async def _tell(self, spoken: _Spoken, event: Event) -> None:
        match event:
            case Audio():
                await self._send_audio(spoken, event)
            case Finished():
                self._close(spoken)
                ttfa_ms = None if spoken.ttfa_s is None else 1000 * spoken.ttfa_s
                await self._socket.send(speak.Done(spoken.id, event.num_samples, 1000 * event.compute_s, ttfa_ms))
            case Failed():
                self._close(spoken)
                self._failed.append(spoken.id)
                await self._socket.send(_error(event.error, spoken.id))

    async def _send_audio(self, spoken: _Spoken, event: Audio) -> None:
        if event.chunk.words:
            await self._socket.send(speak.Words(spoken.id, event.chunk.words))
            if event.key not in self._by_key:  # cancelled while the words were on their way
                return
        await self._socket.send(pack_utterance(spoken.id, event.chunk.pcm))
        if spoken.ttfa_s is None:
            spoken.ttfa_s = time.monotonic() - spoken.first_text_s
            metrics.TTFA.observe(spoken.ttfa_s)


def _error(error: WireError, utterance: int) -> speak.Error:
    retry_after_ms = round(1000 * error.retry_after_s) if isinstance(error, Overloaded) else None
    return speak.Error(error.code, str(error), utterance, retry_after_ms)
