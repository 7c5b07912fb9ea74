"""The callers of a run: what each plays, how its calls went, and what is made of them once the load is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from load.expectations import Verdict, judge
from load.measure import turns
from load.offered import Offered
from load.offering import offer
from load.performance import Act, Course, Venue, perform
from load.recognition import recognise
from load.record import TurnRecord
from load.rehearsal import NUM_TAKES, Part, is_drawn, rehearse
from load.report.document import ScenarioVerdict, facts
from load.report.recording import Recording
from load.scenario import Scenario
from load.speech.cast import Cast
from load.speech.corpus import Corpus
from load.speech.delivery import varied
from load.target import Target


@dataclass(frozen=True)
class Played:
    """One performance: the callers of a scenario, each with its course."""

    number: int
    scenario: Scenario
    courses: tuple[Course, ...]

    @property
    def acts(self) -> list[Act]:
        return [act for course in self.courses for act in course.acts]


class Callers:
    """Caller n of a run with seed s is the first of a run with seed s + n, so any one can be called again alone."""

    def __init__(
        self, scenarios: Sequence[Scenario], corpus: Corpus, cast: Cast, target: Target, seed: int, *, is_varied: bool
    ) -> None:
        self.played: list[Played] = []
        self._scenarios = scenarios
        self._corpus = corpus
        self._cast = cast
        self._target = target
        self._seed = seed
        self._is_varied = is_varied
        self._parts: dict[tuple[int, int], Part] = {}
        self._numbers = count(1)

    @property
    def acts(self) -> list[Act]:
        return [act for played in self.played for act in played.acts]

    def rehearse(self, num_calls: int | None) -> None:
        """All audio, before the run. Without a number: for as many as there may be."""
        most = len(self._scenarios) * NUM_TAKES
        for number in range(most if num_calls is None else min(num_calls, most)):
            key = self._key(number)
            if key not in self._parts:
                scenario, take = self._scenarios[key[0]], key[1]
                if self._is_varied:
                    scenario = replace(scenario, caller=varied(np.random.default_rng((self._seed, *key))))
                self._parts[key] = rehearse(scenario, self._corpus, self._cast, take)

    async def call(self, offered: Offered, found: Recording) -> None:
        """From now on until the last call has ended; may be asked for again. Raises: LoadError, in a group."""
        first, begun_s = len(self.played), found.now()

        async def begin(number: int, scheduled_s: float) -> None:
            await self._perform(first + number, begun_s + scheduled_s, found)

        await offer(offered, begin, lambda: found.now() - begun_s, self._seed + first)

    async def listen_again(
        self, found: Recording, played: Sequence[Played], on_done: Callable[[], None] = lambda: None
    ) -> list[TurnRecord]:
        """Recognise what was heard, measure with it, and judge what was expected. Raises: LoadError."""
        recogniser = self._target.recogniser
        measured: list[TurnRecord] = []
        for each in played:
            for course in each.courses:
                verdicts = [Verdict(problem.where, "is played", False, problem.what) for problem in course.problems]
                for act in course.acts:
                    words = await recognise(act.record, recogniser) if recogniser is not None else None
                    measured += await asyncio.to_thread(turns, act.record, words)
                    verdicts += judge(act.record, act.checkpoints, words)
                    on_done()
                if not _is_refused(course):
                    found.writer.add_verdicts(_scenario_verdicts(each, course, verdicts))
            found.writer.add_verdicts(_refusal_verdicts(each))
        found.writer.replace_turns(measured)
        return measured

    def _key(self, number: int) -> tuple[int, int]:
        """Which scenario a caller plays, and which take of it."""
        seed = self._seed + number
        index = seed % len(self._scenarios)
        is_other_each_time = self._is_varied or is_drawn(self._scenarios[index])
        return index, seed // len(self._scenarios) % NUM_TAKES if is_other_each_time else 0

    async def _perform(self, number: int, scheduled_s: float, found: Recording) -> None:
        key = self._key(number)
        scenario, part = self._scenarios[key[0]], self._parts[key]
        venue = Venue(
            dial=self._target.dial,
            site=self._target.site,
            clock=found.now,
            next_number=lambda: next(self._numbers),
            on_answer=lambda latency_s: found.tally.observe("first_audible_s", latency_s),
        )
        found.tally.begin()
        async with asyncio.TaskGroup() as tasks:
            seed = self._seed + number
            begun = [
                tasks.create_task(perform(scenario, part, venue, seed=seed, scheduled_s=scheduled_s))
                for _ in range(scenario.num_callers)
            ]
        played = Played(number, scenario, tuple(task.result() for task in begun))
        self._target.site.clear()
        self.played.append(played)
        for act in played.acts:
            found.late_s.extend(act.record.late_s)
            measured = await asyncio.to_thread(turns, act.record)
            found.writer.add_call(facts(act.record), measured, found.now())
        outcomes = [act.record.outcome for act in played.acts]
        found.tally.end(next((outcome for outcome in outcomes if outcome != "completed"), "completed"))


def _is_refused(course: Course) -> bool:
    return course.acts[0].record.outcome == "refused"


def _scenario_verdicts(played: Played, course: Course, verdicts: Sequence[Verdict]) -> list[ScenarioVerdict]:
    return [
        ScenarioVerdict(
            scenario=played.scenario.name, call=course.acts[0].record.number, step=v.step, check=v.check,
            passed=v.passed, found=v.found, line=played.scenario.line_of(v.step),
        )
        for v in verdicts
    ]  # fmt: skip


def _refusal_verdicts(played: Played) -> list[ScenarioVerdict]:
    wanted, num_callers = played.scenario.num_refused, len(played.courses)
    refused = sum(map(_is_refused, played.courses))
    if not wanted and not refused:
        return []
    verdict = Verdict(
        "num_refused", f"{wanted} of {num_callers} callers are refused", refused == wanted, f"{refused} were"
    )
    return _scenario_verdicts(played, played.courses[0], [verdict])
