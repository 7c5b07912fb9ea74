"""One synthetic caller on one line: speaks in real time, listens, and keeps the record of both.

Like a telephone it sends 20 ms of audio every 20 ms, silence included. The clock is monotonic and set once, when the
line is open: how late each message left stands in the record, and a caller that fell behind by more than a message
skips that time instead of sending a burst. What it does is a script, a coroutine that says things and waits for what
is heard.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from load.echo import EchoRoom
from load.errors import first_of
from load.hearing import audible
from load.lines.boundary import Line, LineClosed
from load.record import CallRecord, Said
from wire import calls
from wire.errors import PeerError
from wire.pcm import AUDIO_FRAME_S, Pcm16

ACKNOWLEDGE_S = 0.1
LISTEN_S = 0.25  # of the newest audio, to tell whether the agent is audible
MAX_AHEAD_S = 600.0  # of audio that waits to be played: what ignores the pace of speech would fill the memory
MAX_MESSAGES = 100_000  # of one call: ten a second, over hours
SAME_ANSWER_S = 1.0  # silence between two audible stretches that still belong to one answer
GOODBYE_S = 5.0  # a server that has been told that the call is over says goodbye by then


@dataclass(frozen=True)
class Speech:
    """Audio to say, at the line's rate; the speech in it lies in `pcm[start:end]`."""

    name: str
    text: str
    pcm: Pcm16
    start: int
    end: int


@dataclass
class _Saying:
    speech: Speech
    is_barge_in: bool = False
    is_backchannel: bool = False
    is_utterance: bool = True
    position: int = 0  # samples that have left
    start_s: float | None = None


class Caller:
    """`clock` gives seconds since the start of the run; the record is filled as the call goes on.

    While `is_sending` is false nothing is sent, silence neither: the line is dead.
    """

    def __init__(
        self,
        line: Line,
        record: CallRecord,
        clock: Callable[[], float],
        *,
        acknowledges: bool = True,
        room: EchoRoom | None = None,
    ) -> None:
        self.record = record
        self.is_sending = True
        self._line = line
        self._clock = clock
        self._acknowledges = acknowledges and line.counts_samples
        self._message_samples = round(AUDIO_FRAME_S * record.sample_rate_hz)
        self._silence: Pcm16 = np.zeros(self._message_samples, np.int16)
        self._room = room
        self.broken_by: LineClosed | PeerError | None = None
        self.received_s = 0.0  # when the last audio or message came
        self.played_until_s = 0.0  # when all that was received will have sounded
        self._has_vanished = False
        self._saying: deque[_Saying] = deque()
        self._received_samples = 0
        self._state: str | None = None  # what the server says it does, if it does
        self._audible: list[tuple[float, float]] = []  # stretches of the agent's answers, as they sound
        self._changed = asyncio.Event()

    async def run(self, script: Awaitable[None]) -> None:
        """Until the script has ended, or the other side has ended the call."""
        try:
            async with asyncio.TaskGroup() as tasks:
                beside = [tasks.create_task(task()) for task in (self._talk, self._listen, self._acknowledge)]
                await script
                for task in beside:
                    task.cancel()
        except* LineClosed as group:
            self.broken_by = first_of(group)
            self._end(f"the line was closed: {self.broken_by}")
        except* PeerError as group:
            self.broken_by = first_of(group)
            self._end(f"the server broke the protocol: {self.broken_by}")
        finally:
            self.record.ended_s = self._clock()

    # What a script does

    def say(self, speech: Speech, *, is_barge_in: bool = False, is_backchannel: bool = False) -> None:
        """From the next message on, or behind what is being said."""
        self._saying.append(_Saying(speech, is_barge_in, is_backchannel))

    def play(self, pcm: Pcm16) -> None:
        """The same for what is no utterance: noise, tones."""
        self._saying.append(_Saying(Speech("", "", pcm, 0, pcm.size), is_utterance=False))

    async def press(self, key: str) -> None:
        """Beside what is being said. Raises: LineClosed."""
        await self._line.send(calls.Dtmf(key))

    async def until_said(self) -> None:
        while self._saying:
            await self._next_change()

    async def until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """False when it did not within `timeout_s`. Looked at whenever something came, or was said."""
        deadline_s = self._clock() + timeout_s
        while not holds():
            if (left_s := deadline_s - self._clock()) <= 0:
                return False
            await self._next_change(min(left_s, LISTEN_S))
        return True

    def audible_since(self, since_s: float) -> tuple[float, float] | None:
        """The first stretch of the agent's speech that was heard, or will be, after that time of the run."""
        for start_s, end_s in self._audible:
            if end_s > since_s:
                return max(start_s, since_s), end_s
        return None

    async def until_audible(self, since_s: float, timeout_s: float) -> bool:
        """The agent was audible after `since_s`, a time of the run. False when it was not within `timeout_s`."""
        return await self.until(lambda: self.audible_since(since_s) is not None, timeout_s)

    async def until_quiet(self, for_s: float, timeout_s: float) -> bool:
        """Nothing of the agent has been audible for so long. False when that was not within `timeout_s`."""
        return await self.until(lambda: self._quiet_s() >= for_s, timeout_s)

    async def until_speaking(self, quiet_s: float) -> bool:
        """The agent is audible, and will be for half a message more. False when nothing of it has been for so long."""
        goes_on_s = -AUDIO_FRAME_S / 2
        await self.until(lambda: self._quiet_s() <= goes_on_s or self._quiet_s() >= quiet_s, quiet_s)
        return self._quiet_s() <= goes_on_s

    async def until_over(self, quiet_s: float, timeout_s: float) -> bool:
        """The same, and the server does not say that it thinks or speaks: more may come after a filler."""
        return await self.until(
            lambda: self._quiet_s() >= quiet_s and self._state not in ("thinking", "speaking"), timeout_s
        )

    async def until_told(self, kind: type[calls.ServerMessage], timeout_s: float) -> bool:
        """The server has sent such a message, now or before."""
        return await self.until(lambda: any(m["type"] == kind.TYPE for _, m in self.record.messages), timeout_s)

    async def hang_up(self) -> None:
        """Say so, and wait for the goodbye. Raises: LineClosed."""
        await self._line.send(calls.Hangup())
        await self.until_told(calls.Bye, GOODBYE_S)

    async def vanish(self) -> None:
        """The line is gone, and nobody is told. Raises: LineClosed."""
        self._has_vanished = True
        await self._line.vanish()
        raise LineClosed(None, "the caller is gone")

    # What goes on beside it

    async def _talk(self) -> None:
        due_s = self._clock()
        while True:
            now = self._clock()
            self.record.late_s.append(now - due_s)
            if now > due_s + AUDIO_FRAME_S:
                due_s = now
            piece = self._next_message(now)
            if self._room is not None:
                piece = self._room.heard(piece, due_s - AUDIO_FRAME_S)  # a microphone does not tick late
            if self.is_sending:
                await self._line.send_audio(piece)
            due_s += AUDIO_FRAME_S
            await asyncio.sleep(max(0.0, due_s - self._clock()))

    def _next_message(self, now: float) -> Pcm16:
        if not self._saying:
            return self._silence
        saying = self._saying[0]
        speech, begin = saying.speech, saying.position
        piece = speech.pcm[begin : begin + self._message_samples]
        saying.position += self._message_samples
        self.record.sent.append((now - AUDIO_FRAME_S, piece))
        if saying.start_s is None and speech.start < saying.position:
            saying.start_s = now
        if saying.is_utterance and begin < speech.end <= saying.position:
            assert saying.start_s is not None
            said = Said(speech.name, speech.text, saying.start_s, now, saying.is_barge_in, saying.is_backchannel)
            self.record.said.append(said)
        if saying.position >= speech.pcm.size:
            self._saying.popleft()
            self._changed.set()
        return piece if piece.size == self._message_samples else np.concatenate([piece, self._silence[piece.size :]])

    async def _listen(self) -> None:
        while True:
            at_s, received = await self._line.receive()
            now = self.received_s = self._clock() - (time.monotonic() - at_s)
            if isinstance(received, np.ndarray):
                self._hear(received, now)
            else:
                self._note(received, now)
            self._changed.set()

    def _hear(self, pcm: Pcm16, now: float) -> None:
        """Raises: PeerError."""
        rate_hz = self.record.output_sample_rate_hz
        start_s = max(now, self.played_until_s)
        self.record.heard.append((now, pcm))
        self._received_samples += pcm.size
        self.played_until_s = start_s + pcm.size / rate_hz
        if self.played_until_s - now > MAX_AHEAD_S:
            raise PeerError(f"it sent more than {MAX_AHEAD_S:.0f} s of audio ahead of real time")
        if self._room is not None:
            self._room.play(pcm, start_s)
        if not audible(pcm, rate_hz):
            return
        if self._audible and start_s - self._audible[-1][1] < SAME_ANSWER_S:
            start_s = self._audible.pop()[0]
        self._audible.append((start_s, self.played_until_s))

    def _note(self, message: calls.ServerMessage, now: float) -> None:
        """Raises: PeerError."""
        if len(self.record.messages) == MAX_MESSAGES:
            raise PeerError(f"it sent more than {MAX_MESSAGES} messages")
        self.record.messages.append((now, {"type": message.TYPE, **dataclasses.asdict(message)}))
        match message:
            case calls.Ready():
                self.record.ready_s = now
            case calls.State():
                self._state = message.state
            case calls.Bye() if message.reason != "hangup":
                self.record.outcome, self.record.reason = "broken", f"the server ended the call: {message.reason}"
            case calls.Clear() | calls.Rewind():
                self._forget_after(now)
                self._received_samples = message.sample
            case calls.Error() if message.retry_after_ms is not None and self.record.ready_s is None:
                self.record.outcome, self.record.reason = "refused", message.message
                self.record.retry_after_s = message.retry_after_ms / 1000

    def _forget_after(self, now: float) -> None:
        """The player drops what it has not played."""
        self.played_until_s = min(self.played_until_s, now)
        self._audible = [(start_s, min(end_s, now)) for start_s, end_s in self._audible if start_s < now]
        if self._room is not None:
            self._room.clear(now)

    async def _acknowledge(self) -> None:
        acknowledged = 0
        while self._acknowledges:
            await asyncio.sleep(ACKNOWLEDGE_S)
            left_s = max(0.0, self.played_until_s - self._clock())
            played = self._received_samples - round(left_s * self.record.output_sample_rate_hz)
            if played > acknowledged:
                acknowledged = played
                await self._line.send(calls.Played(played))

    def _end(self, reason: str) -> None:
        """Refusals keep their own outcome; a call that said goodbye has not broken, nor one that its caller left."""
        if (
            self._has_vanished
            or self.record.outcome != "completed"
            or any(m["type"] == "bye" for _, m in self.record.messages)
        ):
            return
        self.record.outcome = "failed" if self.record.ready_s is None else "broken"
        self.record.reason = reason

    def _quiet_s(self) -> float:
        return self._clock() - (self._audible[-1][1] if self._audible else 0.0)

    async def _next_change(self, timeout_s: float = LISTEN_S) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return
