"""A test call: speak recorded files in real time, listen, report what was heard and how fast.

The line is never silent in the protocol's sense: like a telephone, the caller's side sends 20 ms of audio every 20 ms,
silence included, paced by a monotonic clock and never in bursts. The agent's audio goes through `deploy.player`, whose
position is acknowledged. Latency is measured here, at the caller: sending of the last speech sample to arrival of the
first audible sample of the answer, which is the project's turn latency.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from deploy.errors import CallError
from deploy.paths import offhook
from deploy.player import Player
from deploy.recording import Speech
from load.errors import first_of
from load.lines.boundary import CONNECT_TIMEOUT_S, Line, LineClosed, NobodyThere, NoCall
from load.lines.webrtc import rtc_line
from load.lines.websocket import websocket_line
from load.record import Placed
from voice.media.level import first_audible
from wire import calls
from wire.errors import PeerError
from wire.pcm import AUDIO_FRAME_S, Pcm16

ACKNOWLEDGE_S = 0.1  # `wire.calls.Played`
GREETING_TIMEOUT_S = 20.0
PATIENCE_S = 30.0  # without a message or audio from the server while an answer is due
BYE_TIMEOUT_S = 5.0
BUSY = 1013  # RFC 6455, 7.4.1: try again later
CLOSE_CODES = {1000: "it is over", 1006: "the connection was lost", 1011: "the server failed", 1012: "it restarts"}
PASSING = frozenset({"delayed", "speech_failed"})  # codes of errors that never end a call
LEAD_IN_S = 0.3  # silence before the caller speaks: people breathe in


@dataclass
class Spoken:
    """One file, and what became of it. Times are monotonic seconds."""

    speech: Speech
    sent_s: float | None = None  # the last speech sample left
    answered_s: float | None = None  # the first audible sample of the answer arrived
    numbers: list[int] = field(default_factory=list)  # the server's turns since the file began; the last is its own
    turn: calls.Turn | None = None
    errors: list[str] = field(default_factory=list)


@dataclass
class Heard:
    """Everything of a call that is reported."""

    ready: calls.Ready
    spoken: list[Spoken]
    finals: dict[int, str]
    replies: dict[int, str]
    turns: dict[int, calls.Turn]
    caller_audio: list[Placed]
    agent_audio: list[Placed]
    start_s: float
    num_slips: int  # messages that left more than a message late: this machine is too busy to measure


class CallBroken(CallError):
    """The call ended before its script did; `heard` is what there was of it."""

    def __init__(self, failure: CallError, heard: Heard) -> None:
        super().__init__(str(failure), failure.hint)
        self.heard = heard


async def call(
    url: str,
    speeches: Sequence[Speech],
    hello: calls.Hello,
    *,
    key: str | None = None,
    barge_in_s: float | None = None,
    patience_s: float = PATIENCE_S,
) -> Heard:
    """Speak `speeches` one after the other, each when the answer to the one before has ended.

    With `barge_in_s` each but the first begins so long after the first audible sample of the answer before.

    `url`: ws:// or wss:// for a call over the WebSocket, http:// or https:// for one over WebRTC.

    Raises: CallError; CallBroken once the call had begun.
    """
    open_line = rtc_line if url.startswith("http") else websocket_line
    try:
        async with open_line(url, hello, key) as line:
            spoken = [Spoken(speech) for speech in speeches]
            return await _Conversation(line, hello, spoken, barge_in_s, patience_s).run()
    except NoCall as error:
        hint = f"start one: {offhook()} up" if isinstance(error, NobodyThere) else error.hint
        raise CallError(str(error), hint) from None


class _Conversation:
    """One call. `changed` wakes the script whenever the server sent something or the pacer finished a file."""

    def __init__(
        self,
        line: Line,
        hello: calls.Hello,
        spoken: list[Spoken],
        barge_in_s: float | None,
        patience_s: float,
    ) -> None:
        self._line = line
        self._hello = hello
        self._spoken = spoken
        self._barge_in_s = barge_in_s
        self._patience_s = patience_s
        self._player = Player(hello.output_sample_rate_hz)
        self._message_samples = round(AUDIO_FRAME_S * hello.sample_rate_hz)
        self._to_say: deque[Pcm16] = deque()
        self._current: Spoken | None = None
        self._num_said = 0  # messages of the current file
        self._armed = False  # the next audible sample begins the answer to the current file
        self._state = "listening"
        self._has_spoken = False
        self._finals: dict[int, str] = {}
        self._replies: dict[int, str] = {}
        self._turns: dict[int, calls.Turn] = {}
        self._caller_audio: list[Placed] = []
        self._num_slips = 0
        self._hung_up = False
        self._ready: calls.Ready | None = None
        self._bye: calls.Bye | None = None
        self._last_error: calls.Error | None = None
        self._unrecovered: calls.Error | None = None  # the call has not gone on since
        self._received_s = 0.0
        self._changed = asyncio.Event()

    async def run(self) -> Heard:
        """Raises: CallError, CallBroken."""
        failure: CallError | None = None
        start_s = time.monotonic()
        try:
            self._ready = await self._open()
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(step()) for step in (self._receive, self._talk, self._acknowledge)]
                await self._converse()
                for task in running:
                    task.cancel()
        except* CallError as group:
            failure = first_of(group)
        except* LineClosed as group:
            failure = failure or self._closed(first_of(group))
        except* PeerError as group:
            failure = failure or CallError(f"the server does not speak this protocol: {first_of(group)}")
        if failure is not None and self._ready is None:
            raise failure
        assert self._ready is not None
        heard = Heard(
            ready=self._ready,
            spoken=self._spoken,
            finals=self._finals,
            replies=self._replies,
            turns=self._turns,
            caller_audio=self._caller_audio,
            agent_audio=self._player.blocks(),
            start_s=start_s,
            num_slips=self._num_slips,
        )
        if failure is not None:
            raise CallBroken(failure, heard)
        return heard

    async def _open(self) -> calls.Ready:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                while True:
                    match await self._line.receive():
                        case (_, calls.Ready() as ready):
                            return ready
                        case (_, calls.Error() as error):
                            self._last_error = self._unrecovered = error
                        case (_, other):
                            raise PeerError(f"expected 'ready', got {other!s:.60}")
        except TimeoutError:
            raise CallError(f"the server did not take the call within {CONNECT_TIMEOUT_S:.0f} s") from None

    # The caller's side

    async def _converse(self) -> None:
        if self._hello.greeting:
            await self._until(self._greeted, GREETING_TIMEOUT_S, "the greeting did not end")
            await self._played_out()
        for index, spoken in enumerate(self._spoken):
            barges_in = self._barge_in_s is not None and index > 0
            await asyncio.sleep(self._barge_in_s if barges_in and self._barge_in_s is not None else LEAD_IN_S)
            self._say(spoken)
            next_barges_in = self._barge_in_s is not None and index + 1 < len(self._spoken)
            done = self._answer_begun if next_barges_in else self._answer_ended
            await self._until(done, self._patience_s, f"no answer to {spoken.speech.name}")
            if not next_barges_in:
                await self._played_out()
        self._hung_up = True
        await self._line.send(calls.Hangup())
        await self._until(lambda: self._bye is not None, BYE_TIMEOUT_S, "no goodbye")

    def _say(self, spoken: Spoken) -> None:
        step = self._message_samples
        self._current, self._num_said, self._armed = spoken, 0, False
        self._to_say.extend(spoken.speech.pcm[i : i + step] for i in range(0, spoken.speech.pcm.size, step))

    async def _talk(self) -> None:
        silence: Pcm16 = np.zeros(self._message_samples, np.int16)
        due_s = time.monotonic()
        while not self._hung_up:
            now = time.monotonic()
            if now > due_s + AUDIO_FRAME_S:  # too late by a message: time is dropped, nothing is sent in a burst
                due_s = now
                self._num_slips += 1
            if self._to_say:
                piece = self._to_say.popleft()
                self._caller_audio.append((now - AUDIO_FRAME_S, piece))
                self._note_sent(now)
                piece = np.concatenate([piece, silence[piece.size :]])
            else:
                piece = silence
            await self._line.send_audio(piece)
            due_s += AUDIO_FRAME_S
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))

    def _note_sent(self, now: float) -> None:
        assert self._current is not None
        self._num_said += 1
        if self._num_said == math.ceil(self._current.speech.end_sample / self._message_samples):
            self._current.sent_s = now
            # An agent that speaks already has taken the turn too early; what it says is no answer to this file.
            self._armed = not self._player.is_playing(now)
            self._changed.set()

    async def _acknowledge(self) -> None:
        acknowledged = 0
        while self._line.counts_samples:
            await asyncio.sleep(ACKNOWLEDGE_S)
            played = self._player.played(time.monotonic())
            if played > acknowledged and not self._hung_up:
                acknowledged = played
                await self._line.send(calls.Played(played))

    # The agent's side

    async def _receive(self) -> None:
        while True:
            try:
                now, received = await self._line.receive()
            except LineClosed:
                if self._bye is not None:
                    return
                raise
            self._received_s = now
            if isinstance(received, np.ndarray):
                self._hear(received, now)
            else:
                self._note(received, now)
            self._changed.set()

    def _hear(self, pcm: Pcm16, now: float) -> None:
        self._player.receive(pcm, now)
        if self._armed and first_audible(pcm) is not None:
            assert self._current is not None
            self._current.answered_s = now
            self._armed = False

    def _note(self, message: calls.ServerMessage, now: float) -> None:
        match message:
            case calls.State():
                self._state, self._unrecovered = message.state, None
                self._has_spoken = self._has_spoken or message.state == "speaking"
            case calls.Final():
                self._finals[message.turn] = message.text
                if self._current is not None and message.turn not in self._current.numbers:
                    self._current.numbers.append(message.turn)
            case calls.Reply():
                self._replies[message.turn] = self._replies.get(message.turn, "") + message.delta
            case calls.Clear():
                self._player.clear(message.sample, now)
                self._rearm()
            case calls.Turn():
                self._turns[message.turn] = message
                if self._current is not None and self._current.sent_s is not None:
                    self._current.turn = message
            case calls.Error():
                self._last_error = message
                if message.code not in PASSING:
                    self._unrecovered = message
                if self._current is not None:
                    self._current.errors.append(f"{message.code}: {message.message}")
            case calls.Bye():
                self._bye = message

    def _rearm(self) -> None:
        """The agent fell silent: what it says from now on is the answer."""
        if self._current is not None and self._current.sent_s is not None and self._current.answered_s is None:
            self._armed = True

    # What the script waits for

    def _greeted(self) -> bool:
        return self._has_spoken and self._state == "listening"

    def _answer_begun(self) -> bool:
        return self._current is not None and self._current.answered_s is not None

    def _answer_ended(self) -> bool:
        turn = self._current.turn if self._current is not None else None
        return turn is not None and turn.outcome != "interrupted"

    async def _until(self, holds: Callable[[], bool], patience_s: float, problem: str) -> None:
        """Raises: CallError when the server says nothing for `patience_s`, or ends the call."""
        self._received_s = time.monotonic()
        while not holds():
            if self._bye is not None:
                raise CallError(f"the server ended the call ({self._bye.reason}): {problem}")
            busy_s = self._message_samples / self._hello.sample_rate_hz * len(self._to_say)
            left_s = self._received_s + patience_s + busy_s - time.monotonic()
            if left_s <= 0:
                why = f"; its last error: {self._last_error.message}" if self._last_error is not None else ""
                raise CallError(f"{problem} within {patience_s:.0f} s{why}", "the server's logs say more")
            self._changed.clear()
            try:
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _played_out(self) -> None:
        await asyncio.sleep(max(0.0, self._player.end_s - time.monotonic()))

    def _closed(self, closed: LineClosed) -> CallError:
        if self._bye is not None:
            return CallError(f"the server ended the call ({self._bye.reason})")
        error = self._unrecovered
        if error is not None and closed.code == BUSY:
            retry = f"try again in {error.retry_after_ms / 1000:.0f} s" if error.retry_after_ms is not None else ""
            return CallError(f"the server refused the call: {error.message}", retry)
        in_words = f"{CLOSE_CODES[closed.code]}, {closed}" if closed.code in CLOSE_CODES else str(closed)
        return CallError(f"the server closed the call: {error.message if error is not None else in_words}")
