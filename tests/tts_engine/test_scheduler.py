"""The order of the voice's work, without a voice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tts_engine.scheduler import MAX_UNSENT_CHUNKS, Schedule, Step
from tts_engine.segmenter import Unit
from wire.errors import Overloaded

RATE_HZ = 1000
UNIT = Unit("ten chars.", 0)


def schedule(max_waiting: int = 10) -> Schedule:
    return Schedule(max_waiting, RATE_HZ)


def opened(work: Schedule, *keys: int, deadline_s: float | None = None, now: float = 0.0, num_units: int = 1) -> None:
    """Each key on a connection of its own, of the same number."""
    for key in keys:
        work.open(key, key, now, deadline_s)
        for _ in range(num_units):
            work.add(key, UNIT)


def take(work: Schedule, now: float = 0.0) -> Step:
    step = work.next_step(now)
    assert step is not None
    return step


def to_first_audio(work: Schedule, key: int, now: float, num_samples: int) -> None:
    """Encode and one chunk of the utterance whose turn it is, which is `key`."""
    step = take(work, now)
    assert step.utterance.key == key
    work.record(step, now, 0.01, 0)
    step = take(work, now)
    assert step.utterance.key == key
    assert work.record(step, now, 0.01, num_samples)


def test_first_audio_comes_before_more_of_a_long_text():
    work = schedule()
    opened(work, 1, num_units=50)
    to_first_audio(work, 1, 0.0, 100)
    opened(work, 2, now=0.1)

    assert take(work, 0.1).utterance.key == 2


def test_among_those_without_audio_the_nearest_deadline_is_first():
    work = schedule()
    opened(work, 1)
    opened(work, 2, deadline_s=0.5)
    opened(work, 3, deadline_s=0.4)

    assert take(work).utterance.key == 3


def test_with_audio_the_one_that_runs_dry_first_is_next():
    work = schedule()
    opened(work, 1)
    to_first_audio(work, 1, 0.0, 2000)
    opened(work, 2)
    to_first_audio(work, 2, 0.5, 500)

    assert take(work, 0.6).utterance.key == 2


def test_a_connection_that_does_not_read_gets_no_more_steps():
    work = schedule()
    opened(work, 1)
    to_first_audio(work, 1, 0.0, 10)
    for _ in range(MAX_UNSENT_CHUNKS - 1):
        assert work.record(take(work), 0.0, 0.01, 10)

    assert work.next_step(0.0) is None
    work.sent(1)
    assert work.next_step(0.0) is not None


def test_a_connection_speaks_its_utterances_in_order():
    work = schedule()
    work.open(1, 7, 0.0, None)
    work.open(2, 7, 0.0, None)
    work.add(2, UNIT)

    assert work.next_step(0.0) is None
    work.end(1)
    assert [u.key for u in work.take_done()] == [1]
    assert take(work).utterance.key == 2


def test_one_too_many_is_refused_and_told_when_to_come_back():
    work = schedule(max_waiting=2)
    opened(work, 1, 2)
    work.open(3, 3, 0.0, None)

    with pytest.raises(Overloaded) as refused:
        work.add(3, UNIT)
    assert refused.value.retry_after_s > 0
    to_first_audio(work, 1, 0.0, 10)
    opened(work, 4)


def test_what_cannot_come_in_time_fails_before_the_work():
    work = schedule()
    opened(work, 1, deadline_s=1.0)

    assert work.take_late(0.5) == []
    wait_s = work.wait_s(0.5)
    assert wait_s is not None
    assert wait_s < 0.5
    assert [u.key for u in work.take_late(0.9999)] == [1]
    assert work.next_step(0.9999) is None


def test_first_audio_that_came_too_late_is_dropped():
    work = schedule()
    opened(work, 1, deadline_s=1.0)
    work.record(take(work), 0.1, 0.1, 0)

    assert not work.record(take(work, 0.1), 1.1, 1.0, 10)


def test_a_deadline_means_nothing_after_the_first_audio():
    work = schedule()
    opened(work, 1, deadline_s=1.0)
    to_first_audio(work, 1, 0.5, 10)

    assert work.take_late(5.0) == []
    assert work.wait_s(5.0) is None


def test_a_cancelled_utterance_gets_no_step_and_its_step_under_way_is_dropped():
    work = schedule()
    opened(work, 1, num_units=3)
    step = take(work)
    work.remove(1)

    assert not work.record(step, 0.0, 0.01, 10)
    assert work.next_step(0.0) is None


@given(st.lists(st.floats(0, 10), min_size=2, max_size=8))
def test_every_waiting_utterance_is_worked_on_by_deadline(deadlines: list[float]):
    work = schedule()
    for key, deadline_s in enumerate(deadlines):
        opened(work, key, deadline_s=deadline_s)
    order = []
    for _ in deadlines:
        key = take(work).utterance.key
        order.append(deadlines[key])
        work.remove(key)

    assert order == sorted(deadlines)


class AnySequence(RuleBasedStateMachine):
    """Whatever callers do: bounds hold, and nothing of an utterance comes after its end."""

    MAX_WAITING = 3

    def __init__(self) -> None:
        super().__init__()
        self.work = schedule(self.MAX_WAITING)
        self.now = 0.0
        self.next_key = 0
        self.open: dict[int, int] = {}
        self.gone: set[int] = set()
        self.unsent: dict[int, int] = {}

    @rule(connection=st.integers(0, 2), left_s=st.none() | st.floats(0, 2))
    def begin(self, connection: int, left_s: float | None) -> None:
        self.next_key += 1
        self.work.open(self.next_key, connection, self.now, None if left_s is None else self.now + left_s)
        self.open[self.next_key] = connection

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.open)))
        try:
            self.work.add(key, UNIT)
        except Overloaded:
            assert self.work.num_waiting == self.MAX_WAITING
            del self.open[key]
            self.gone.add(key)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), how=st.sampled_from(["end", "cancel"]))
    def stop(self, data: st.DataObject, how: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.open)))
        del self.open[key]
        if how == "end":
            self.work.end(key)
        else:
            self.work.remove(key)
            self.gone.add(key)

    @rule(cost_s=st.floats(0.001, 0.5), size=st.sampled_from([None, 0, 5, 400]))
    def step(self, cost_s: float, size: int | None) -> None:
        for utterance in [*self.work.take_late(self.now), *self.work.take_done()]:
            self.gone.add(utterance.key)
            self.open.pop(utterance.key, None)
        step = self.work.next_step(self.now)
        if step is None:
            return
        utterance = step.utterance
        assert utterance.key not in self.gone
        assert self.unsent.get(utterance.connection, 0) < MAX_UNSENT_CHUNKS
        self.now += cost_s
        if self.work.record(step, self.now, cost_s, size):
            if size:
                assert utterance.deadline_s is None or utterance.first_audio_s is not None
                self.unsent[utterance.connection] = self.unsent.get(utterance.connection, 0) + 1
        else:
            self.work.remove(utterance.key)
            self.gone.add(utterance.key)
            self.open.pop(utterance.key, None)

    @precondition(lambda self: any(self.unsent.values()))
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        connection = data.draw(st.sampled_from([c for c, n in sorted(self.unsent.items()) if n]))
        self.unsent[connection] -= 1
        self.work.sent(connection)

    @rule(seconds=st.floats(0, 1))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def waiting_is_bounded(self) -> None:
        assert self.work.num_waiting <= self.MAX_WAITING


TestAnySequence = pytest.mark.slow(AnySequence.TestCase)
