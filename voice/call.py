"""One call: feeds the turn machine with what ears, mouth and services report, and carries out its actions.

Everything runs on one event loop, so a transition and its action are never interleaved with another. An attempt at an
answer is a task; withdrawing it is cancelling the task, and whatever it still had under way is closed by that.

Above 400 lines because the actions of one table read best side by side.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from voice import metrics
from voice.answer import Answering, Outcome
from voice.backchannel import Backchannels
from voice.budget import Waterfall
from voice.clients.llm import LlmClient
from voice.clients.stt import SttClient
from voice.clients.tts import Lost, TtsClient
from voice.config import VoiceConfig
from voice.ears import Ears
from voice.endpointing import (
    SAMPLE_RATE_HZ,
    AskTurnModel,
    Decision,
    NoiseEnded,
    Resumed,
    Speculate,
    SpeechGoesOn,
    SpeechStarted,
    TurnEnded,
)
from voice.history import History
from voice.keypad import Keypad, told
from voice.media.echo import EchoGuard
from voice.media.turn_model import SmartTurn
from voice.media.vad import Silero
from voice.mouth import Kind, Mouth, Utterance
from voice.outbox import Outbox, Payload, Written
from voice.overlap import Overlap
from voice.patience import Due, Patience
from voice.playout import Playout
from voice.said import Said
from voice.speculation import Allowance, Revision, Speculator
from voice.transports.boundary import Transport
from voice.turn import Action, Event, State, Turn
from wire import calls
from wire.errors import DeadlineExceeded, Unavailable, WireError
from wire.log import about
from wire.messages import PROTOCOL_VERSION
from wire.pcm import Pcm16
from wire.request import RequestContext
from wire.sockets import Disconnected

logger = logging.getLogger(__name__)

SERVICES_READY_S = 1.4  # a call whose recognition or voice does not answer by then is refused: no line stays dead
RESTART_S = 5.0  # until a service that was lost is back, told to the refused: docs/measurements.md
FILLER_AFTER_S = 0.25  # ... over a filler, which may be its own echo, that takes the turn
HOLD_AFTER_S = 1.2  # since a sound of either side; with a busy voice's 0.3 s 1.5 s in silence
ANSWER_AFTER_S = 0.5  # a turn whose end was long in doubt has this to be answered in, before anything else is said
TRANSCRIPT_S = 2.5  # for a final transcript: 30 times its share of the budget, and one filler long
TICK_S = 0.25
LINE_DEAD_S = 0.7  # without audio in the middle of speech; most of what TCP repeats comes sooner
LATE_S = 0.05

T = TypeVar("T")
Goodbye: TypeAlias = Literal["hangup", "idle", "max_length", "drain"]
EndReason: TypeAlias = Goodbye | Literal["failed", "unavailable"]
_GOODBYES: dict[Due, Goodbye] = {
    Due.IDLE_GOODBYE: "idle",
    Due.LENGTH_GOODBYE: "max_length",
    Due.LENGTH_END: "max_length",
    Due.DRAIN_GOODBYE: "drain",
    Due.DRAIN_END: "drain",
}


@dataclass(frozen=True)
class Shared:
    """What all calls of a process share."""

    config: VoiceConfig
    vad: Silero
    turn_model: SmartTurn
    llm: LlmClient
    service_key: str | None
    is_draining: Callable[[], bool]
    allowance: Allowance


class CallEnded(Exception):
    """Unwinds the call's tasks."""

    def __init__(self, reason: Goodbye) -> None:
        super().__init__(reason)
        self.reason = reason


class Call:
    def __init__(self, call_id: str, shared: Shared, transport: Transport, hello: calls.Hello) -> None:
        config, self._shared = shared.config, shared
        self._config = config
        self._hello = hello
        self.id = call_id
        self._log = about(logger, f"call {call_id}")
        self._transport = transport
        self._outbox = Outbox(transport)
        self._stt = SttClient(
            config.stt_url,
            key=shared.service_key,
            call=call_id,
            language=hello.language,
            on_partial=self._on_partial,
        )
        self._playout = Playout(transport.output_sample_rate_hz, transport.lead_s)
        self._echo = EchoGuard(transport.output_sample_rate_hz, SAMPLE_RATE_HZ, time.monotonic())
        self._tts = TtsClient(
            config.tts_url,
            key=shared.service_key,
            call=call_id,
            voice=hello.voice,
            on_event=lambda event: self._mouth.on_event(event),
            on_lost=self._on_voice_lost,
        )
        self._mouth = Mouth(
            self._tts,
            self._playout,
            post=self._post_speech,
            on_audio=self._on_audio,
            on_audible=self._on_audible,
            on_said=self._on_said,
            language=hello.language,
        )
        self._ears = Ears(
            config.endpointing, hello.language, shared.vad.start(), self._stt, self._echo, transport.sample_rate_hz
        )
        self._turn = Turn()
        self._history = History(config.agent.instructions, config.agent.max_history_turns)
        self._speculator = Speculator(
            call_id,
            stt=self._stt,
            llm=shared.llm,
            history=self._history,
            allowance=shared.allowance,
            spawn=self._spawn,
            on_words=self._on_words,
            on_expected=self._on_expected,
        )
        self._overlap = Overlap(
            backchannels=Backchannels(hello.language, config.backchannels),
            duck_db=config.duck_db,
            mouth=self._mouth,
            playout=self._playout,
            echo=self._echo,
            ears=self._ears,
            stt=self._stt,
            rewind=self._outbox.post if transport.takes_back else None,
            on_take=self._take_turn,
            spawn=self._spawn,
        )
        self._is_known = False  # all that he said until his present pause: no more is to be recognised
        self._hearing = asyncio.Lock()
        self._covered_s = self._quiet_since_s = time.monotonic()  # when the next audio is due; when a side spoke last
        self._prompt = ""
        self._end_after_prompt: Goodbye | None = None
        self._said = self._new_turn()
        self._ahead: Revision | None = None  # what ran ahead in the pause that ended the turn
        self._keypad = Keypad()
        self._keyed_s = 0.0  # when keys last became a part of the turn
        self._attempt: Answering | None = None
        self._num_attempts = 0
        self._actions = self._table()

    def _table(self) -> dict[Action, Callable[[], None]]:
        """What each action of the turn machine comes to."""
        return {
            Action.OPEN: self._open,
            Action.GO_ON: self._speculator.drop,
            Action.REOPEN: self._reopen,
            Action.DROP: self._drop,
            Action.ANSWER: self._answer,
            Action.PLAY: lambda: None,
            Action.CLOSE: self._close,
            Action.INTERRUPT: self._interrupt,
            Action.SAY: lambda: self._say_alone("prompt", self._prompt),
            Action.APOLOGISE: self._apologise,
            Action.END: self._end,
        }

    async def run(self) -> EndReason:
        """Until either side ends it; every way out but a bug of ours passes here and is told to the caller."""
        reason: Goodbye = "hangup"
        refusal: calls.Error | None = None
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for coroutine in (self._stt.link.run(), self._tts.link.run(), self._outbox.run()):
                    self._spawn(coroutine)
                await self._wait_for_services()
                self._begin()
                self._transport.take = self._pass_over
                # `_receive` is a task, because its every step would go through all that stands around a request
                for coroutine in (self._mouth.run(), self._keep_time(), self._receive()):
                    self._spawn(coroutine)
        except* CallEnded as group:
            reason = _first(group).reason
        except* Unavailable as missing:
            self._log.warning("refused: %s", missing.exceptions[0])
            refusal = calls.Error(Unavailable.code, str(missing.exceptions[0]), round(1000 * RESTART_S))
        except* Disconnected as group:
            self._log.info("the caller is gone: %s", group.exceptions[0])
        finally:
            with contextlib.suppress(Disconnected):  # a caller who does not read; log and metrics have it
                self._report_unfinished()
            self._transport.take = None
            self._shared.allowance.give_back(self.id)
            metrics.UNDERRUNS.inc(self._playout.num_underruns)
        if refusal is not None:
            await self._outbox.flush(refusal)
            return "unavailable"
        await self._outbox.flush(calls.Bye(reason))
        return reason

    async def _wait_for_services(self) -> None:
        """Raises: PeerError for a language or voice that is not served, Unavailable when a service is not there."""
        until_s = time.monotonic() + SERVICES_READY_S
        await self._stt.link.wait_ready(until_s)
        await self._tts.link.wait_ready(until_s)

    def _begin(self) -> None:
        self._outbox.post(
            calls.Ready(
                PROTOCOL_VERSION,
                self.id,
                self._hello.sample_rate_hz,
                self._hello.output_sample_rate_hz,
                self._tts.voice,
                round(1000 * self._playout.max_lead_s),
            )
        )
        self._speculator.warm()
        if self._hello.greeting and self._config.agent.greeting:
            self._say_prompt(self._config.agent.greeting)

    # The caller's side

    async def _receive(self) -> None:
        while True:
            received = await self._transport.receive()
            now = time.monotonic()
            match received:
                case calls.Hangup():
                    self._fire(Event.HANG_UP)
                    raise CallEnded("hangup")
                case calls.Played():
                    if not self._mouth.acknowledge(received.sample, now):
                        self._log.debug("implausible acknowledgement of sample %d", received.sample)
                case calls.Dtmf():
                    self._press(received.digits, now)
                case _ if received.size:  # a message without audio tells nothing of the line
                    self._covered_s = now + received.size / self._transport.sample_rate_hz
                    await self._hear(received, now)

    def _pass_over(self, pcm: Pcm16) -> bool:
        """Most of a call is silence of the caller's; it wakes nobody."""
        now = time.monotonic()
        if self._hearing.locked() or not self._ears.pass_over(pcm, now):
            return False
        self._covered_s = now + pcm.size / self._transport.sample_rate_hz
        return True

    async def _hear(self, pcm: Pcm16, now: float) -> None:
        async with self._hearing:
            is_heard = self._turn.state is State.HEARING and not self._keypad.is_open
            self._ears.is_eager = is_heard and self._shared.allowance.has_room(self.id)
            async for decision in self._ears.hear(pcm, now):
                self._decide(decision)

    async def _bridge(self) -> None:
        """A line that has gone dead in the middle of a word is silent: the turn must end, and nothing else tells."""
        now = time.monotonic()
        if now - self._covered_s > LINE_DEAD_S and not self._hearing.locked():
            silence = np.zeros(round((now - self._covered_s) * self._transport.sample_rate_hz), np.int16)
            self._covered_s = now
            await self._hear(silence, now)

    def _decide(self, decision: Decision) -> None:
        match decision:
            case SpeechStarted():
                self._is_known = False
                self._speculator.drop()
                if self._turn.state is State.LISTENING:
                    self._fire(Event.SPEECH)
                elif self._mouth.is_audible:
                    self._overlap.begin()
            case SpeechGoesOn(speech_s):
                self._is_known = False
                self._on_speech_length(speech_s)
            case Resumed():
                self._speculator.drop()
                self._overlap.stop_judging()
            case Speculate():
                if self._turn.state is State.HEARING and self._keypad.is_open:
                    pass  # the turn goes on with keys
                elif self._turn.state is State.HEARING:
                    self._speculator.begin(self._new_attempt(), self._said.known)
                else:
                    self._overlap.pause()
            case AskTurnModel(question):
                self._spawn(self._ask_turn_model(question))
            case TurnEnded() | NoiseEnded():
                self._on_speech_end(is_noise=isinstance(decision, NoiseEnded))

    def _on_speech_length(self, speech_s: float) -> None:
        """Speech must last before it takes the turn from someone: shorter is a cough or a backchannel."""
        match self._turn.state:
            case State.LISTENING:
                self._fire(Event.SPEECH)
            case State.THINKING if self._mouth.is_audible and speech_s < FILLER_AFTER_S:
                pass
            case State.THINKING if speech_s >= self._config.endpointing.min_speech_s:
                self._fire(Event.SPEECH)
            case State.SPEAKING if speech_s >= self._config.barge_in_after_s:
                self._fire(Event.BARGE_IN)
            case State.SPEAKING:
                self._overlap.go_on(speech_s)

    def _take_turn(self, judged: int | None) -> None:
        """Words over the agent's take the turn: those up to the sample that was judged, or under way."""
        if self._turn.state is not State.SPEAKING:
            return
        self._fire(Event.BARGE_IN)
        if judged is not None:
            self._said.add(judged, min(TRANSCRIPT_S, self._config.answer_deadline_s))
            self._is_known = True
        if not self._ears.in_speech:
            self._on_speech_end(is_noise=True)  # there are no more

    def _on_speech_end(self, *, is_noise: bool) -> None:
        self._quiet_since_s = time.monotonic()
        if self._turn.state is not State.HEARING:
            self._overlap.end()
            return
        revision = self._speculator.take()
        is_noise = is_noise or self._is_known
        if not is_noise:
            end = revision.end_sample if revision is not None else self._stt.position
            self._said.add(end, min(TRANSCRIPT_S, self._config.answer_deadline_s))
        if self._said and not self._keypad.is_open:
            if is_noise:
                self._spawn(self._ears.forget(self._stt.position))
            self._ahead = revision
            self._fire(Event.END_OF_TURN)
            return
        if revision is not None:
            self._speculator.void(revision)
        if not self._keypad.is_open:
            self._fire(Event.NOISE)
        elif is_noise:
            self._spawn(self._ears.forget(self._stt.position))

    def _press(self, digits: str, now: float) -> None:
        """The first key silences the agent. A turn with keys and words is over when both are."""
        if not self._keypad.is_open:
            self._fire(Event.KEY)
        self._keypad.press(digits, now)
        self._take_keys(now)

    def _take_keys(self, now: float) -> None:
        if self._hearing.locked() or not (entries := self._keypad.take(now)):
            return
        self._said.add_known(told(entries))
        self._keyed_s = self._quiet_since_s = now
        if not self._ears.in_speech:
            self._ahead = None
            self._fire(Event.END_OF_TURN)

    async def _ask_turn_model(self, question: int) -> None:
        probability = await self._shared.turn_model.ask(self._ears.utterance())
        if probability is not None:
            self._log.debug("turn model: %.2f", probability)
            self._weigh(self._ears.answer(question, probability))

    def _on_words(self, text: str) -> bool:
        self._weigh(self._ears.read(text))
        return self._ears.may_expect

    def _on_expected(self, stop_logprob: float) -> None:
        self._log.debug("a full stop: %.1f", stop_logprob)
        self._weigh(self._ears.expect(stop_logprob))

    def _weigh(self, decisions: list[Decision]) -> None:
        """More is known of the pause: it is the end of the turn, or more or less likely so."""
        if not decisions and self._ears.in_speech:
            self._speculator.note(self._ears.certainty)
        for decision in decisions:
            self._decide(decision)

    def _on_partial(self, revision: int, text: str) -> None:
        self._overlap.read(text)
        if self._turn.state is State.HEARING:
            self._outbox.post(calls.Partial(self._turn.number, revision, f"{self._said.known} {text}".strip()))

    # The agent's side

    def _post_speech(self, payload: Payload, written: Written | None) -> None:
        if isinstance(payload, np.ndarray):
            self._echo.said(payload, time.monotonic())
        self._outbox.post(payload, written)

    def _on_voice_lost(self) -> None:
        self._spawn(self._mouth.on_event(Lost()))

    def _on_audio(self, utterance: Utterance) -> None:
        if self._attempt is not None and utterance is self._attempt.utterance:
            self._shared.allowance.give_back(self.id)
            self._attempt.mark("tts", time.monotonic())
        if self._turn.state is State.THINKING and utterance.kind != "filler":
            self._fire(Event.AUDIO)

    def _on_audible(self, utterance: Utterance, now: float) -> None:
        if self._attempt is not None and utterance is self._attempt.utterance:
            self._attempt.mark("playout", now)

    def _on_said(self, utterance: Utterance, heard: str) -> None:
        self._quiet_since_s = time.monotonic()
        if utterance.failure is not None:
            self._log.warning("speech failed: %s", utterance.failure)
            self._outbox.post(calls.Error("speech_failed", utterance.failure))
            self._spawn(self._mouth.hush(utterance))
        if utterance.kind == "filler":
            return
        is_broken = self._turn.state is State.THINKING or utterance.failure is not None  # THINKING: not a sample came
        if self._attempt is not None and is_broken:
            self._attempt.heard = heard
            self._fire(Event.FAILED)
            return
        self._ears.asked(heard)
        self._history.add(self._attempt.user_text if self._attempt is not None else "", heard)
        self._report("answered", heard)
        self._fire(Event.SAID)
        if self._end_after_prompt is not None:
            raise CallEnded(self._end_after_prompt)

    def _say_prompt(self, text: str) -> None:
        self._prompt = text
        self._fire(Event.PROMPT)

    def _say_alone(self, kind: Kind, text: str) -> None:
        """Something that is not an answer."""
        utterance = self._mouth.begin(kind, self._turn.number)

        async def say() -> None:
            try:
                await self._mouth.say(utterance, text)
                await self._mouth.finish(utterance)
            except WireError as error:
                self._mouth.fail(utterance, str(error))

        self._spawn(say())

    async def _keep_time(self) -> None:
        config = self._config
        patience = Patience(
            time.monotonic(),
            idle_after_s=config.idle_after_s,
            max_call_s=config.max_call_s,
            drain_timeout_s=config.edge.drain_timeout_s,
        )
        while True:
            due_s = time.monotonic() + TICK_S
            await asyncio.sleep(TICK_S)
            if self._ears.in_speech and time.monotonic() - due_s < LATE_S:  # else audio may wait, and not we for it
                self._spawn(self._bridge())
            self._take_keys(time.monotonic())
            self._playout.listener_delay_s = self._transport.listener_delay_s
            self._playout.way_s = self._transport.way_s
            is_quiet = self._turn.state is State.LISTENING and not self._ears.in_speech
            if self._turn.state is State.HEARING:
                patience.heard_caller()
            match patience.due(
                time.monotonic(),
                quiet_since_s=self._quiet_since_s if is_quiet else None,
                draining=self._shared.is_draining(),
            ):
                case Due.IDLE_PROMPT:
                    self._say_prompt(config.agent.idle_prompt)
                case Due.LENGTH_END | Due.DRAIN_END as due:
                    raise CallEnded(_GOODBYES[due])
                case Due() as due:
                    self._end_after_prompt = _GOODBYES[due]
                    self._say_prompt(config.agent.goodbye)

    # What the turn machine asks for

    def _fire(self, event: Event) -> None:
        action = self._turn.step(event)
        if action is None:
            return
        self._log.debug("= %s -> %s", event.name, self._turn.state.name)
        self._actions[action]()
        self._outbox.post(calls.State(self._turn.state.value, self._turn.number))

    def _open(self) -> None:
        self._said = self._new_turn()
        self._speculator.warm()

    def _drop(self) -> None:
        self._speculator.drop()
        self._report("empty", "")
        self._withdraw()
        if not self._ears.in_speech:
            self._spawn(self._ears.forget(self._stt.position))

    def _answer(self) -> None:
        now = time.monotonic()
        waterfall = Waterfall(self._turn_end_s)
        waterfall.mark("endpointing", now)
        revision, self._ahead = self._ahead, None
        deadline_s = now + self._config.answer_deadline_s
        self._attempt = attempt = revision.attempt if revision is not None else self._new_attempt()
        attempt.commit(waterfall, deadline_s)
        self._shared.allowance.note_waiting(self.id)
        work = self._run_attempt(attempt, revision, now)
        attempt.tasks = (self._spawn(work), self._spawn(self._hold_line(attempt, deadline_s)))

    def _new_attempt(self) -> Answering:
        self._num_attempts += 1
        deadline_s = time.monotonic() + self._config.answer_deadline_s
        return Answering(
            self._turn.number,
            llm=self._shared.llm,
            mouth=self._mouth,
            history=self._history,
            context=RequestContext(self.id, self._turn.number, self._num_attempts, deadline_s),
            spawn=self._spawn,
        )

    @property
    def _turn_end_s(self) -> float:
        """When the caller had nothing more to say: the last of his words came, or what he keyed in was over."""
        return max(self._ears.speech_end_s, self._keyed_s)

    async def _run_attempt(self, attempt: Answering, revision: Revision | None, over_s: float) -> None:
        """`over_s`: when the turn was."""
        try:
            text = await self._said.words()
            attempt.mark("stt", time.monotonic())
            if not text:
                self._fire(Event.NO_WORDS)
                return
            self._outbox.post(calls.Final(self._turn.number, text))
            is_of_use = await attempt.confirm(text)
            if revision is not None:
                revision.note_use(over_s, is_of_use=is_of_use)
            await attempt.finish()
        except WireError as error:
            await self._on_failure(attempt, error)

    async def _hold_line(self, attempt: Answering, deadline_s: float) -> None:
        """While nothing of the answer is heard: no silence without a word, and an end to the wait."""
        due_s = max(self._turn_end_s + HOLD_AFTER_S, time.monotonic() + ANSWER_AFTER_S)
        while (now := time.monotonic()) < deadline_s:
            await asyncio.sleep(min(deadline_s, due_s) - now)
            if self._turn.state is not State.THINKING:
                return
            if time.monotonic() < deadline_s:
                self._fill()
                await self._mouth.wait_free()
                due_s = time.monotonic() + HOLD_AFTER_S
        if attempt.utterance is None:  # else the voice has it, and a voice that hangs is noticed where it is spoken
            await self._on_failure(attempt, DeadlineExceeded("the answer took too long"))

    def _fill(self) -> None:
        """The message comes through also when the voice is what everybody waits for."""
        self._outbox.post(calls.Error("delayed", "the answer takes longer than it should"))
        metrics.FILLERS.inc()
        if self._attempt is not None:
            self._attempt.give_way()
        if self._mouth.is_free and self._config.agent.filler:
            self._say_alone("filler", self._config.agent.filler)

    async def _on_failure(self, attempt: Answering, error: WireError) -> None:
        """What was handed to the voice by then is still said."""
        self._log.warning("answer failed: %s", error)
        self._outbox.post(calls.Error(error.code, str(error)))
        attempt.give_way()
        if attempt.utterance is not None and attempt.utterance.text.strip():
            await self._mouth.cut_short(attempt.utterance, str(error))
            return
        await self._mouth.wait_free()  # a filler is heard to its end
        if self._turn.state is State.THINKING:
            self._fire(Event.FAILED)

    def _close(self) -> None:
        self._end_attempt()

    def _end_attempt(self) -> None:
        if self._attempt is not None:
            self._attempt.cancel()
            self._attempt = None
        self._shared.allowance.give_back(self.id)

    def _reopen(self) -> None:
        """What was said stays said: the turn goes on."""
        is_audible = self._mouth.is_audible
        self._withdraw()
        if is_audible:
            self._outbox.post(calls.Clear(self._turn.number, self._playout.sent))

    def _interrupt(self) -> None:
        heard, attempt = self._mouth.heard(time.monotonic()), self._attempt
        user_text = attempt.user_text if attempt is not None else ""
        interrupted = self._turn.number - 1
        if heard or attempt is None:
            self._history.add(user_text, heard, is_interrupted=True)
            self._said = self._new_turn()
        if heard:
            self._ears.asked("?" if self._mouth.has_asked(time.monotonic()) else heard)
        if self._overlap.is_judging and not self._ears.in_speech:
            self._said.add(self._stt.position, min(TRANSCRIPT_S, self._config.answer_deadline_s))
        self._overlap.stop_judging()
        self._report("interrupted", heard, turn=interrupted)
        self._withdraw()
        self._outbox.post(calls.Clear(interrupted, self._playout.sent))

    def _apologise(self) -> None:
        assert self._attempt is not None
        self._history.add(self._attempt.user_text, self._attempt.heard)
        self._report("failed", self._attempt.heard)
        self._withdraw()
        self._say_alone("apology", self._config.agent.apology)

    def _end(self) -> None:
        self._report_unfinished()
        self._withdraw()

    def _report_unfinished(self) -> None:
        """The call ends within a turn: what is known of it is told before the bye."""
        if self._attempt is not None:
            is_said = self._attempt.utterance is not None  # else it may be a filler that is heard
            self._report("interrupted", self._mouth.heard(time.monotonic()) if is_said else "")
            self._end_attempt()

    def _withdraw(self) -> None:
        """Stop whatever the agent is doing; nothing of it will be heard from here on."""
        if (stopped := self._mouth.stop(time.monotonic())) is not None and stopped.text:
            self._spawn(self._mouth.hush(stopped))
        self._end_attempt()

    def _report(self, outcome: Outcome, heard: str, *, turn: int | None = None) -> None:
        if self._attempt is None:
            return
        record = self._attempt.record(self._turn.number if turn is None else turn, outcome, heard)
        self._log.info("turn %d %s, %s ms %s", record.turn, outcome, record.latency_ms, dict(record.stages_ms))
        self._outbox.post(record)

    def _new_turn(self) -> Said:
        return Said(self._stt, self._spawn)

    def _spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self._tasks.create_task(coroutine)


def _first(group: BaseExceptionGroup[CallEnded]) -> CallEnded:
    first = group.exceptions[0]
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, CallEnded)
    return first
