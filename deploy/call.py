"""A test call: speak recorded files in real time, listen, report what was heard and how fast.

`load.caller` speaks, plays and acknowledges; here is what it says when, and in words why a call broke. Latency is
measured at the caller: sending of the last speech sample to arrival of the first audible sample of the answer, which is
the project's turn latency.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from deploy.errors import CallError
from deploy.paths import offhook
from load.caller import GOODBYE_S, Caller, Speech
from load.errors import first_of
from load.lines.boundary import CONNECT_TIMEOUT_S, LineClosed, NobodyThere, NoCall
from load.lines.pipecat import PATH as PIPECAT_PATH
from load.lines.pipecat import pipecat_line
from load.lines.webrtc import rtc_line
from load.lines.websocket import websocket_line
from load.record import CallRecord
from load.told import Message
from load.track import clears_s, track_of
from wire import calls
from wire.pcm import AUDIO_FRAME_S

GREETING_TIMEOUT_S = 20.0
PATIENCE_S = 30.0  # without a message or audio from the server while an answer is due
BUSY = 1013  # RFC 6455, 7.4.1: try again later
CLOSE_CODES = {1000: "it is over", 1006: "the connection was lost", 1011: "the server failed", 1012: "it restarts"}
PASSING = frozenset({"delayed", "speech_failed"})  # codes of errors that never end a call
LOGS = "the server's logs say more"
LEAD_IN_S = 0.3  # silence before the caller speaks: people breathe in


@dataclass(frozen=True)
class Spoken:
    """One file, and what became of it. Times are monotonic seconds."""

    speech: Speech
    sent_s: float | None  # the last speech sample left
    answered_s: float | None  # the first audible sample of the answer arrived
    numbers: tuple[int, ...]  # the server's turns since the file began; the last is its own
    turn: int | None  # that was reported last, once the file was said
    errors: tuple[str, ...]


@dataclass(frozen=True)
class Heard:
    """Everything of a call that is reported."""

    record: CallRecord
    spoken: tuple[Spoken, ...]

    @property
    def ready(self) -> Message:
        return next(message for _, message in self.record.messages if message["type"] == "ready")

    @property
    def num_slips(self) -> int:
        """Messages that left more than a message late: this machine is too busy to measure."""
        return sum(late_s > AUDIO_FRAME_S for late_s in self.record.late_s)

    def turn(self, number: int) -> Message | None:
        return self._last("turn", number)

    def final(self, number: int) -> Message | None:
        return self._last("final", number)

    def _last(self, kind: str, number: int) -> Message | None:
        told = [m for _, m in self.record.messages if m["type"] == kind and m["turn"] == number]
        return told[-1] if told else None


class CallBroken(CallError):
    """The call ended before its script did; `heard` is what there was of it."""

    def __init__(self, failure: CallError, heard: Heard) -> None:
        super().__init__(str(failure), failure.hint)
        self.heard = heard


LINES = {"websocket": websocket_line, "webrtc": rtc_line, "pipecat": pipecat_line}


def transport_of(url: str) -> str:
    """ws:// or wss:// stands for a call over the WebSocket, http:// or https:// for one over WebRTC, or, where the path
    is /api/offer, for one to a Pipecat agent.
    """
    if not url.startswith("http"):
        return "websocket"
    return "pipecat" if url.endswith(PIPECAT_PATH) else "webrtc"


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

    `url`: see `transport_of`.

    Raises: CallError; CallBroken once the call had begun.
    """
    transport = transport_of(url)
    try:
        async with LINES[transport](url, hello, key) as line:
            now = time.monotonic()
            record = CallRecord(1, "", transport, 0, hello.sample_rate_hz, hello.output_sample_rate_hz, now, now)
            conversation = _Conversation(Caller(line, record, time.monotonic), barge_in_s, patience_s)
            failure = await conversation.hold(speeches, greeting=hello.greeting)
    except NoCall as error:
        hint = f"start one: {offhook()} up" if isinstance(error, NobodyThere) else error.hint
        raise CallError(str(error), hint) from None
    if failure is not None and record.ready_s is None:
        raise failure
    begun_s = conversation.begun_s
    heard = Heard(record, tuple(_spoken(record, speeches[i], i, begun_s) for i in range(len(begun_s))))
    if failure is not None:
        raise CallBroken(failure, heard)
    return heard


class _Conversation:
    def __init__(self, caller: Caller, barge_in_s: float | None, patience_s: float) -> None:
        self.begun_s: list[float] = []  # when each file began
        self._caller = caller
        self._record = caller.record
        self._barge_in_s = barge_in_s
        self._patience_s = patience_s

    async def hold(self, speeches: Sequence[Speech], *, greeting: bool) -> CallError | None:
        """What it broke off for."""
        failure: CallError | None = None
        try:
            await self._caller.run(self._script(speeches, greeting=greeting))
        except* CallError as group:
            failure = first_of(group)
        broken_by = self._caller.broken_by
        if failure is not None or broken_by is None or self._bye == "hangup":
            return failure
        if isinstance(broken_by, LineClosed):
            return _closed(self._record, self._bye, broken_by)
        return CallError(f"the server does not speak this protocol: {broken_by}")

    async def _script(self, speeches: Sequence[Speech], *, greeting: bool) -> None:
        record, caller = self._record, self._caller
        await self._until(lambda: record.ready_s is not None, CONNECT_TIMEOUT_S, "the server did not take the call")
        if greeting:
            await self._until(self._is_greeted, GREETING_TIMEOUT_S, "the greeting did not end")
            await self._played_out()
        for index, speech in enumerate(speeches):
            is_interrupted = self._barge_in_s is not None and index + 1 < len(speeches)
            await asyncio.sleep(LEAD_IN_S if self._barge_in_s is None or index == 0 else self._barge_in_s)
            self.begun_s.append(time.monotonic())
            caller.say(speech)
            busy_s = speech.pcm.size / record.sample_rate_hz
            done = self._is_being_answered if is_interrupted else self._is_answered
            await self._until(done, self._patience_s, f"no answer to {speech.name}", busy_s)
            if not is_interrupted:
                await self._played_out()
        await caller.hang_up()
        if self._bye is None:
            raise CallError(f"no goodbye within {GOODBYE_S:.0f} s", LOGS)

    def _is_greeted(self) -> bool:
        states = [message["state"] for _, message in self._record.messages if message["type"] == "state"]
        return "speaking" in states and states[-1] == "listening"

    def _is_being_answered(self) -> bool:
        said = self._record.said
        return len(said) == len(self.begun_s) and self._caller.audible_since(said[-1].end_s) is not None

    def _is_answered(self) -> bool:
        said = self._record.said
        if len(said) < len(self.begun_s):
            return False
        since = takewhile(lambda told: told[0] >= said[-1].end_s, reversed(self._record.messages))
        turn = next((message for _, message in since if message["type"] == "turn"), None)
        return turn is not None and turn["outcome"] != "interrupted"

    async def _until(self, holds: Callable[[], bool], patience_s: float, problem: str, busy_s: float = 0.0) -> None:
        """Raises: CallError when the server says nothing for `patience_s`, or ends the call."""
        deadline_s = time.monotonic() + busy_s + patience_s
        while (left_s := max(deadline_s, self._caller.received_s + patience_s) - time.monotonic()) > 0:
            if await self._caller.until(lambda: holds() or self._bye is not None, left_s):
                break
        if self._bye is not None:
            raise CallError(f"the server ended the call ({self._bye}): {problem}")
        if not holds():
            errors = [message["message"] for _, message in self._record.messages if message["type"] == "error"]
            why = f"; its last error: {errors[-1]}" if errors else ""
            raise CallError(f"{problem} within {patience_s:.0f} s{why}", LOGS)

    async def _played_out(self) -> None:
        await asyncio.sleep(max(0.0, self._caller.played_until_s - time.monotonic()))

    @property
    def _bye(self) -> str | None:
        return next((message["reason"] for _, message in self._record.messages if message["type"] == "bye"), None)


def _closed(record: CallRecord, bye: str | None, closed: LineClosed) -> CallError:
    if bye is not None:
        return CallError(f"the server ended the call ({bye})")
    error: Message | None = None  # that the call has not outlived
    for _, message in record.messages:
        if message["type"] == "state":
            error = None
        elif message["type"] == "error" and message["code"] not in PASSING:
            error = message
    if error is not None and closed.code == BUSY:
        after_ms = error["retry_after_ms"]
        retry = f"try again in {after_ms / 1000:.0f} s" if after_ms is not None else ""
        return CallError(f"the server refused the call: {error['message']}", retry)
    in_words = f"{CLOSE_CODES[closed.code]}, {closed}" if closed.code in CLOSE_CODES else str(closed)
    return CallError(f"the server closed the call: {error['message'] if error is not None else in_words}")


def _spoken(record: CallRecord, speech: Speech, index: int, begun_s: Sequence[float]) -> Spoken:
    from_s, until_s = begun_s[index], begun_s[index + 1] if index + 1 < len(begun_s) else math.inf
    sent_s = record.said[index].end_s if index < len(record.said) else None
    within = [(at_s, message) for at_s, message in record.messages if from_s <= at_s < until_s]
    reported = [m["turn"] for at_s, m in within if m["type"] == "turn" and sent_s is not None and at_s >= sent_s]
    return Spoken(
        speech,
        sent_s,
        _answered_s(record, from_s, sent_s, until_s) if sent_s is not None else None,
        tuple(dict.fromkeys(message["turn"] for _, message in within if message["type"] == "final")),
        reported[-1] if reported else None,
        tuple(f"{m['code']}: {m['message']}" for _, m in within if m["type"] == "error"),
    )


def _answered_s(record: CallRecord, begun_s: float, sent_s: float, until_s: float) -> float | None:
    """An agent that speaks already has taken the turn too early; what it says until it falls silent is no answer."""
    track = track_of(record)
    from_s, until_s = sent_s, min(until_s, track.end_s)
    if any(heard.end_s > sent_s for heard in track.audible(begun_s, sent_s + AUDIO_FRAME_S) if heard.start_s < sent_s):
        from_s = min((at_s for at_s in clears_s(record) if at_s >= sent_s), default=math.inf)
    heard = track.audible(from_s, until_s) if from_s < until_s else []
    return heard[0].arrived_s if heard else None
