from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load.capacity import REPEATS, CallTurns, Capacity, Search, in_words, observed
from load.errors import LoadError
from load.record import TurnRecord
from load.report.document import CallFacts, CapacityStep
from load.report.measures import BUDGET_S

Server = Callable[[int], Sequence[CallTurns]]
MAX = 32


def found_by(server: Server, max_concurrent: int = MAX) -> tuple[Capacity, list[CapacityStep]]:
    search = Search(max_concurrent)
    steps: list[CapacityStep] = []
    while (number := search.next()) is not None:
        assert len(steps) < REPEATS * max_concurrent
        steps.append(search.add(number, server(number)))
    return search.result(), steps


def exact(capacity: int, slow_s: float = 0.9, num_lost: int = 0) -> Server:
    """Up to `capacity` calls every turn takes 0.5 s; above, `slow_s`, and each call loses `num_lost` turns."""

    def serve(num_concurrent: int) -> list[CallTurns]:
        is_over = num_concurrent > capacity
        call = CallTurns((slow_s if is_over else 0.5,) * 4, num_lost if is_over else 0)
        return [call] * max(5, num_concurrent)

    return serve


def noisy(capacity: float, slope: float, seed: int, spread: float = 0.15) -> Server:
    """The true p95 meets the budget at `capacity` calls, and grows with the `slope`-th power of their number."""
    rng = np.random.default_rng(seed)
    p95_of_noise = np.exp(spread * 1.645)

    def serve(num_concurrent: int) -> list[CallTurns]:
        scale_s = BUDGET_S * (num_concurrent / capacity) ** slope / p95_of_noise
        num_calls = max(5, num_concurrent)
        return [CallTurns(tuple(scale_s * np.exp(spread * rng.standard_normal(6)))) for _ in range(num_calls)]

    return serve


@pytest.mark.slow
@settings(deadline=None)  # resampling is all that takes time
@given(st.integers(0, MAX), st.integers(1, MAX), st.sampled_from([(0.9, 0), (0.5, 1), (0.9, 1)]))
def test_a_capacity_without_noise_is_found_exactly(capacity: int, limit: int, over: tuple[float, int]) -> None:
    found, steps = found_by(exact(capacity, *over), limit)
    assert found.num_concurrent == min(capacity, limit)
    assert (found.low, found.high) == (found.num_concurrent, found.num_concurrent)
    assert found.is_at_least == (capacity >= limit)
    assert found.is_finished
    assert found.limited_by == ("nothing" if capacity >= limit else "latency" if over[0] > BUDGET_S else "losses")
    assert len(steps) <= 2 * 6 + 2 * REPEATS
    for number in (found.num_concurrent, found.num_concurrent + 1):
        if 1 <= number <= limit:
            assert [step.repeat for step in steps if step.num_concurrent == number] == list(range(REPEATS))


@pytest.mark.slow
@settings(deadline=None)  # resampling is all that takes time
@given(st.data())
def test_whatever_a_server_does_the_search_ends_and_holds_its_own_estimate(data: st.DataObject) -> None:
    calls = st.builds(CallTurns, st.lists(st.floats(0.1, 2), max_size=3).map(tuple), st.sampled_from([0, 0, 0, 1]))
    some = st.lists(calls, min_size=1, max_size=7).filter(lambda many: any(c.latencies_s or c.num_lost for c in many))
    limit = data.draw(st.integers(1, 12))
    found, steps = found_by(lambda _: data.draw(some), limit)
    assert found.num_concurrent is not None
    assert 0 <= found.num_concurrent <= limit
    assert max(step.repeat for step in steps) < REPEATS
    if found.low is not None:
        assert 0 <= found.low <= found.num_concurrent <= found.high <= limit
    if found.num_concurrent:
        assert found.p95.value <= BUDGET_S
        assert found.lost.value == 0
        of_level = [step for step in steps if step.num_concurrent == found.num_concurrent]
        assert sum(step.num_lost for step in of_level) == 0
    assert in_words(found)


@pytest.mark.slow
def test_an_interval_holds_the_true_capacity_about_as_often_as_it_says() -> None:
    hits = 0
    for seed in range(60):
        found, _ = found_by(noisy(11.5, 1.0, seed))
        hits += found.low <= 11 <= found.high
    assert hits / 60 >= 0.85


@pytest.mark.slow
def test_noise_near_the_border_widens_the_interval() -> None:
    widths = {}
    for slope in (4.0, 0.5):
        found = [found_by(noisy(11.5, slope, seed))[0] for seed in range(10)]
        widths[slope] = np.mean([one.high - one.low for one in found])
    assert widths[0.5] > 2 * widths[4.0]


def test_a_repeat_overturns_what_chance_has_shown() -> None:
    truth = exact(10)
    tries: dict[int, int] = {}

    def unlucky_once(num_concurrent: int) -> Sequence[CallTurns]:
        tries[num_concurrent] = tries.get(num_concurrent, 0) + 1
        if num_concurrent == 8 and tries[8] == 1:
            return [CallTurns((0.5, 0.5, 0.5, 1.5))] * 2 + [CallTurns((0.5,) * 4)] * 6
        return truth(num_concurrent)

    found, _ = found_by(unlucky_once)
    assert tries[8] > 1
    assert found.num_concurrent == 10


def test_one_lost_turn_of_many_fails_a_level_but_the_interval_says_that_it_may_be_chance() -> None:
    tries: list[int] = []

    def loses_once(num_concurrent: int) -> Sequence[CallTurns]:
        calls = exact(MAX)(num_concurrent)
        tries.append(num_concurrent)
        is_loss = num_concurrent == 6 and tries.count(6) == 1
        return [replace(calls[0], num_lost=int(is_loss)), *calls[1:]]

    found, _ = found_by(loses_once, 6)
    assert (found.num_concurrent, found.low, found.high) == (5, 5, 6)
    assert found.limited_by == "losses"
    assert in_words(found).endswith("one more loses turns")


def test_one_call_that_is_too_much_is_a_capacity_of_none() -> None:
    found, steps = found_by(exact(0))
    assert found == Capacity(0, 0, 0, False, True, "latency", None, None)
    assert [step.num_concurrent for step in steps] == [1] * REPEATS
    assert in_words(found) == "not one call within the budget (95% interval 0 .. 0); one more is too slow"


def test_a_limit_that_was_never_reached_is_said() -> None:
    found, _ = found_by(exact(100), 6)
    assert (
        in_words(found) == "at least 6 calls at once (95% interval 6 .. 6): p95 500 ms, 0 of 72 turns lost (below 5.1%)"
    )


def test_few_calls_give_a_capacity_and_no_interval() -> None:
    found, _ = found_by(lambda n: [CallTurns((0.5 if n <= 2 else 0.9,))] * 1)
    assert (found.num_concurrent, found.low, found.high) == (2, None, None)
    assert "too few calls for an interval" in in_words(found)


def test_a_search_that_is_broken_off_tells_what_it_knows() -> None:
    search = Search(MAX)
    assert in_words(search.result()) == "nothing was measured"
    search.add(1, exact(4)(1))
    assert search.result().num_concurrent == 1
    assert in_words(search.result()).endswith("the search was not finished")


def test_a_step_holds_what_one_repeat_brought() -> None:
    search = Search(MAX)
    calls = [CallTurns((0.2, 0.4)), CallTurns((), 1), CallTurns(()), *[CallTurns((0.3,))] * 4]
    step = search.add(3, calls)
    assert replace(step, p95_low_s=None, p95_high_s=None) == CapacityStep(3, 0, 7, 1, pytest.approx(0.375), None, None)
    assert step.p95_low_s <= step.p95_s <= step.p95_high_s
    assert search.add(3, [CallTurns((), 2)]) == CapacityStep(3, 1, 2, 2, None, None, None)


def test_calls_that_ask_for_nothing_cannot_be_judged() -> None:
    with pytest.raises(LoadError, match="no turn of 2 calls at once can be judged"):
        Search(MAX).add(2, [CallTurns(())])


def test_lost_turns_and_lost_calls_are_counted_with_their_call() -> None:
    call = CallFacts(0, "s", "websocket", 0, 0.0, 0.0, 0.1, 9.0, "completed", "", None)
    turn = TurnRecord(0, 1, "s", "websocket", "hello", "answered", latency_s=0.5)
    calls = [call, replace(call, number=1, outcome="broken"), replace(call, number=2, outcome="refused")]
    turns = [
        turn,
        replace(turn, turn=2, outcome="interrupted", latency_s=0.6),
        replace(turn, turn=3, outcome="unasked", latency_s=None),
        replace(turn, turn=4, outcome="cut_in", latency_s=-0.1),
        replace(turn, call=1, latency_s=0.7),
        replace(turn, call=1, turn=2, outcome="missed", latency_s=None),
    ]
    assert observed(calls, turns) == [CallTurns((0.5, 0.6)), CallTurns((0.7,), 2), CallTurns((), 1)]
