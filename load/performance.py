"""A scenario as it is played: its steps one after the other, on one call or, after a redial, on several.

A step that cannot be played, such as a barge-in into an answer that is over, is a problem, and the next one is played;
whether what was expected happened is judged afterwards, from the records (`load.expectations`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from load.caller import Caller, Speech
from load.dial import Dial
from load.echo import EchoRoom
from load.expectations import Checkpoint
from load.faults.impairment import NETWORK_FAULTS
from load.faults.parse import Fault
from load.faults.path import CallPath, call_path
from load.faults.site import Site, of_path
from load.lines.boundary import LineClosed, NoCall, Refused
from load.record import CallRecord
from load.rehearsal import Part, PlacedStep, in_order
from load.scenario import Scenario
from load.steps import (
    Backchannel,
    BargeIn,
    Converse,
    Dtmf,
    Expect,
    FaultNow,
    HangUp,
    Key,
    Noise,
    Redial,
    Repeat,
    Say,
    Silence,
    WaitForAnswer,
)
from wire import calls

ANSWER_OVER_S = 1.0  # of silence after an answer, until it counts as over
STOPPED_S = 0.3  # of silence, until it counts as stopped for now
SPEAK_OVER_S = 10.0  # how long an answer is waited for that is to be spoken over
READY_S = 10.0  # a server that has taken a call says so by then


@dataclass
class Act:
    """One call of a performance, and the expectations met in it."""

    record: CallRecord
    checkpoints: list[Checkpoint] = field(default_factory=list)


@dataclass(frozen=True)
class Problem:
    """A step that could not be played."""

    where: str
    what: str


@dataclass
class Course:
    """Where a performance stands, and what came of it so far."""

    steps: list[PlacedStep]
    at: int = 0
    acts: list[Act] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def current(self) -> PlacedStep | None:
        return self.steps[self.at] if self.at < len(self.steps) else None

    def skip(self) -> None:
        """The rest is not played."""
        self.at = len(self.steps)

    def tell(self, what: str) -> None:
        self.problems.append(Problem(self.current.where if self.current is not None else "the end", what))

    def check(self, placed: PlacedStep, from_s: float, at_s: float) -> None:
        assert isinstance(placed.step, Expect)
        act = self.acts[-1]
        act.checkpoints.append(Checkpoint(placed.where, placed.step, len(act.record.said), from_s, at_s))


@dataclass(frozen=True)
class Venue:
    """Where a performance takes place. `clock`: seconds since the start of the run; `next_number` numbers its calls."""

    dial: Dial
    site: Site
    clock: Callable[[], float]
    next_number: Callable[[], int]
    on_answer: Callable[[float], None] = lambda latency_s: None  # about when it is heard, for a person who waits


async def perform(scenario: Scenario, part: Part, venue: Venue, *, seed: int, scheduled_s: float) -> Course:
    """Never fails for what the server does; see the acts and problems of the result.

    Raises: LoadError, in a group, for faults that are impossible here.
    """
    course = Course(in_order(scenario.steps))
    rng = np.random.default_rng((scenario.seed, seed))
    on_path = of_path(scenario.faults)
    changes = any(isinstance(placed.step, FaultNow) and of_path([placed.step.fault]) for placed in course.steps)
    async with (
        call_path(venue.dial.url, on_path, rng, is_open=changes) as path,
        asyncio.TaskGroup() as tasks,
    ):
        faults = _Faults(venue.site, path, tasks, on_path)
        for fault in scenario.faults:
            if fault not in on_path:
                faults.set(fault)
        try:
            async with asyncio.timeout(scenario.limit_ms / 1000):
                await _Performance(scenario, part, venue, course, faults, seed).play(scheduled_s)
        except TimeoutError:
            why = f"not over after {scenario.limit_ms / 1000:g} s"
            course.tell(why)
            record = course.acts[-1].record
            record.outcome, record.reason = "broken", why
            record.ended_s = venue.clock() if record.ended_s is None else record.ended_s
        faults.end()
    return course


class _Faults:
    def __init__(self, site: Site, path: CallPath, tasks: asyncio.TaskGroup, on_path: Sequence[Fault]) -> None:
        self._site = site
        self.path = path
        self._tasks = tasks
        self._on_path = [fault for fault in on_path if isinstance(fault, NETWORK_FAULTS)]
        self._happening: list[asyncio.Task[int]] = []

    def set(self, fault: Fault) -> None:
        """Raises: LoadError."""
        task = self._site.set(fault, self.path, self._on_path, self._tasks)
        if isinstance(fault, NETWORK_FAULTS):
            self._on_path.append(fault)
        if task is not None:
            self._happening.append(task)

    def end(self) -> None:
        for task in self._happening:
            task.cancel()


@dataclass
class _Performance:
    scenario: Scenario
    part: Part
    venue: Venue
    course: Course
    faults: _Faults
    seed: int

    async def play(self, scheduled_s: float) -> None:
        """Call by call."""
        dial = self.venue.dial.at(self.faults.path.url)
        while True:
            await self._call(dial, scheduled_s)
            await self._play_without_a_line()
            placed = self.course.current
            if placed is None:
                return
            assert isinstance(placed.step, Redial)
            await asyncio.sleep(placed.step.after_ms / 1000)
            scheduled_s = self.venue.clock()
            self.course.at += 1

    async def _call(self, dial: Dial, scheduled_s: float) -> None:
        clock = self.venue.clock
        rate_hz, output_rate_hz = dial.rates_hz
        record = CallRecord(
            number=self.venue.next_number(),
            scenario=self.scenario.name,
            transport=dial.transport,
            seed=self.seed,
            sample_rate_hz=rate_hz,
            output_sample_rate_hz=output_rate_hz,
            scheduled_s=scheduled_s,
            placed_s=clock(),
        )
        self.course.acts.append(Act(record))
        echo = self.scenario.echo
        room = EchoRoom(echo.level_db, echo.delay_ms / 1000, rate_hz, output_rate_hz) if echo is not None else None
        try:
            async with dial.line(greeting=self.scenario.greeting) as line:
                caller = Caller(line, record, clock, acknowledges=self.scenario.sends_played, room=room)
                speaker = _Speaker(self, caller)
                await caller.run(speaker.play())
                if speaker.has_heard_out(self.course.current):
                    self.course.at += 1
        except Refused as refused:
            record.outcome, record.reason, record.retry_after_s = "refused", str(refused), refused.retry_after_s
        except NoCall as no_call:
            record.outcome, record.reason = "failed", str(no_call)
        if record.ended_s is None:
            record.ended_s = clock()
        if record.outcome in ("refused", "failed"):
            self.course.tell(f"{record.outcome}: {record.reason}")
            self.course.skip()

    async def _play_without_a_line(self) -> None:
        """What follows when the call is over, until a redial. Of what needs a line only the first is told."""
        is_told = False
        while (placed := self.course.current) is not None:
            match placed.step:
                case Redial():
                    return
                case Silence() as step:
                    await asyncio.sleep(step.for_ms / 1000)
                case FaultNow() as step:
                    self.faults.set(step.fault)
                case Expect():
                    now = self.venue.clock()
                    self.course.check(placed, now, now)
                case HangUp():
                    pass
                case _ if not is_told:
                    is_told = True
                    self.course.tell(f"the call was over: {self.course.acts[-1].record.reason or 'it had ended'}")
            self.course.at += 1


class _Speaker:
    """The part of a performance that has a line: the script of one caller."""

    def __init__(self, performance: _Performance, caller: Caller) -> None:
        self._performance = performance
        self._course = performance.course
        self._clock = performance.venue.clock
        self._caller = caller
        self._since_s = 0.0  # what the agent says after it has not been waited for yet
        self._said_s = 0.0  # when the caller's last utterance that wants an answer ended

    async def play(self) -> None:
        """Raises: LineClosed."""
        if not await self._caller.until_told(calls.Ready, READY_S):
            raise LineClosed(None, f"the server took the call and was not ready within {READY_S:.0f} s")
        while (placed := self._course.current) is not None and not isinstance(placed.step, Redial):
            await self._do(placed)
            self._course.at += 1
            if isinstance(placed.step, HangUp):
                return
        await self._caller.hang_up()

    def has_heard_out(self, placed: PlacedStep | None) -> bool:
        """The call ended while an answer was waited for, and the answer with it, as a goodbye does."""
        is_waiting = placed is not None and isinstance(placed.step, WaitForAnswer)
        return is_waiting and self._caller.audible_since(self._since_s) is not None

    async def _do(self, placed: PlacedStep) -> None:
        caller, part = self._caller, self._performance.part
        match placed.step:
            case Say():
                await self._say(part.speeches[placed.number][0])
            case Converse() as step:
                await self._converse(step, part.speeches[placed.number])
            case WaitForAnswer() as step:
                if not await self._answer(step.until, step.timeout_ms / 1000):
                    self._course.tell(f"no answer that came to its {step.until} within {step.timeout_ms / 1000:g} s")
            case BargeIn() | Backchannel() as step:
                await self._speak_over(step, part.speeches[placed.number][0])
            case Silence() as step:
                caller.is_sending = step.sends
                await asyncio.sleep(step.for_ms / 1000)
                caller.is_sending = True
            case Noise() | Dtmf():
                caller.play(part.sounds[placed.number])
                await caller.until_said()
            case Key() as step:
                for key in step.keys:
                    await caller.press(key)
                    await asyncio.sleep(step.every_ms / 1000)
                self._since_s = self._clock()
            case FaultNow() as step:
                self._performance.faults.set(step.fault)
            case Expect() as step:
                from_s = self._clock()
                await self._expect(step, from_s)
                self._course.check(placed, from_s, max(self._clock(), from_s + (step.within_ms or 0) / 1000))
            case HangUp() as step:
                await (caller.hang_up() if step.how == "message" else caller.vanish())
            case Repeat() | Redial():
                raise AssertionError(f"{placed.where} is no step of one call")
            case _:
                assert_never(placed.step)

    async def _converse(self, step: Converse, speeches: Sequence[Speech]) -> None:
        is_over = True
        for i, speech in enumerate(speeches):
            if i:
                await asyncio.sleep(step.pause_ms / 1000)
            speaks_over = not is_over and not await self._caller.until_quiet(STOPPED_S, 0.0)
            await self._say(speech, is_barge_in=speaks_over)
            is_over = await self._answer("end", step.timeout_ms / 1000)

    async def _say(self, speech: Speech, *, is_barge_in: bool = False, is_backchannel: bool = False) -> None:
        self._caller.say(speech, is_barge_in=is_barge_in, is_backchannel=is_backchannel)
        await self._caller.until_said()
        if not is_backchannel:
            self._since_s = self._said_s = self._caller.record.said[-1].end_s

    async def _answer(self, until: str, timeout_s: float) -> bool:
        """False when none was heard, or its end was not, by then."""
        deadline_s = self._clock() + timeout_s
        if not await self._caller.until_audible(self._since_s, timeout_s):
            return False
        if (heard := self._caller.audible_since(self._since_s)) is not None and self._since_s == self._said_s > 0:
            self._performance.venue.on_answer(heard[0] - self._said_s)
        if until == "start":
            return True
        is_over = await self._caller.until_over(ANSWER_OVER_S, max(0.0, deadline_s - self._clock()))
        self._since_s = self._clock()
        return is_over

    async def _speak_over(self, step: BargeIn | Backchannel, speech: Speech) -> None:
        await self._caller.until_audible(self._said_s, SPEAK_OVER_S)
        begun = self._caller.audible_since(self._said_s)
        if begun is None:
            self._course.tell(f"nothing to speak over within {SPEAK_OVER_S:.0f} s")
        else:
            await asyncio.sleep(max(0.0, begun[0] + step.after_ms / 1000 - self._clock()))
            if not await self._caller.until_speaking(ANSWER_OVER_S):  # not into a pause of the agent's
                start_s, end_s = self._caller.audible_since(self._said_s) or begun
                self._course.tell(f"nothing to speak over: the answer took {1000 * (end_s - start_s):.0f} ms")
        is_barge_in = isinstance(step, BargeIn)
        await self._say(speech, is_barge_in=is_barge_in, is_backchannel=not is_barge_in)

    async def _expect(self, step: Expect, from_s: float) -> None:
        """As long as it takes to tell."""
        if step.within_ms is None:
            return
        within_s = step.within_ms / 1000
        if step.absent or step.what == "end_of_call":  # the end of the line ends this
            await asyncio.sleep(within_s)
        elif step.what in ("stop", "duck"):
            await self._caller.until_quiet(STOPPED_S, within_s)
        else:
            record = self._caller.record
            asked_s = self._said_s if record.said else record.ready_s or from_s  # a greeting counts from the beginning
            await self._caller.until_audible(self._said_s, max(0.0, asked_s + within_s - from_s))
