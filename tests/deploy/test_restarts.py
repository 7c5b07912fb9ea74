from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.restarts import FIRST_WAIT_S, HEALTHY_S, MAX_CRASHES, MAX_WAIT_S, GiveUp, Phase, Restart, Restarts

ROUNDING_S = 1e-9
NEEDS = {"voice": ("stt", "tts_engine", "router"), "stt": (), "tts_engine": (), "router": ("llm",), "llm": ()}


def _up(restarts: Restarts, now: float = 0.0) -> None:
    while due := restarts.due(now):
        for name in due:
            restarts.started(name, now)
            restarts.ready(name, now)


def test_independent_processes_start_together_then_router_then_voice() -> None:
    restarts = Restarts(NEEDS)
    order = []
    while due := restarts.due(0):
        order.append(due)
        for name in due:
            restarts.started(name, 0)
            restarts.ready(name, 0)
    assert order == [["stt", "tts_engine", "llm"], ["router"], ["voice"]]
    assert restarts.all_ready


def test_a_process_waits_for_what_it_needs_to_be_ready_not_only_started() -> None:
    restarts = Restarts({"router": ("llm",), "llm": ()})
    restarts.started("llm", 0)
    assert restarts.due(1) == []


def test_drain_ends_voice_then_router_then_the_rest() -> None:
    assert Restarts(NEEDS).drain_order() == [["voice"], ["router"], ["stt", "tts_engine", "llm"]]


def test_back_off_doubles_up_to_its_limit_and_ends_with_giving_up() -> None:
    restarts = Restarts({"stt": ()})
    _up(restarts)
    now, waits = 0.0, []
    while isinstance(verdict := restarts.ended("stt", now), Restart):
        waits.append(verdict.wait_s)
        now += verdict.wait_s
        assert restarts.due(now) == ["stt"]
        restarts.started("stt", now)
        restarts.ready("stt", now)
    assert waits == [min(MAX_WAIT_S, FIRST_WAIT_S * 2**i) for i in range(MAX_CRASHES - 1)]
    assert verdict == GiveUp(MAX_CRASHES, was_ready=True)


def test_a_healthy_minute_cleans_the_record() -> None:
    restarts = Restarts({"stt": ()})
    _up(restarts)
    now = 0.0
    for _ in range(3 * MAX_CRASHES):
        now += HEALTHY_S
        verdict = restarts.ended("stt", now)
        assert verdict == Restart(FIRST_WAIT_S, 1)
        now += FIRST_WAIT_S
        restarts.started("stt", now)
        restarts.ready("stt", now)


def test_ending_before_ever_being_ready_is_final() -> None:
    restarts = Restarts({"stt": ()})
    restarts.started("stt", 0)
    assert restarts.ended("stt", 1) == GiveUp(1, was_ready=False)
    assert restarts.phase("stt") is Phase.GIVEN_UP
    assert restarts.due(1e9) == []


def test_restart_does_not_wait_for_others() -> None:
    restarts = Restarts({"router": ("llm",), "llm": ()})
    _up(restarts)
    restarts.ended("llm", 1)
    restarts.ended("router", 1)
    assert restarts.due(1 + FIRST_WAIT_S) == ["router", "llm"]


@pytest.mark.parametrize("needs", [{"a": ("b",), "b": ("a",)}, {"a": ("nobody",)}])
def test_circle_or_unknown_need_is_refused(needs: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match="need each other or someone unknown"):
        Restarts(needs)


@given(st.lists(st.tuples(st.sampled_from(sorted(NEEDS)), st.booleans(), st.floats(0, 100)), max_size=80))
def test_any_history_keeps_the_invariants(history: list[tuple[str, bool, float]]) -> None:
    """A due process is idle; what is first started has its needs ready; waits lie within their bounds."""
    restarts = Restarts(NEEDS)
    now, ever_started = 0.0, set()
    for name, succeed, passed_s in history:
        now += passed_s
        for due in restarts.due(now):
            assert restarts.phase(due) in (Phase.WAITING, Phase.BACKING_OFF)
            if due not in ever_started:
                assert all(restarts.phase(other) is Phase.READY for other in NEEDS[due])
            ever_started.add(due)
            restarts.started(due, now)
            assert due not in restarts.due(now)
        if restarts.phase(name) is Phase.STARTING and succeed:
            restarts.ready(name, now)
        elif restarts.phase(name) in (Phase.STARTING, Phase.READY):
            verdict = restarts.ended(name, now)
            if isinstance(verdict, Restart):
                assert FIRST_WAIT_S <= verdict.wait_s <= MAX_WAIT_S
                assert restarts.due(now + verdict.wait_s + ROUNDING_S).count(name) == 1
                wait_s = restarts.next_due_s(now)
                assert wait_s is not None
                assert wait_s <= verdict.wait_s + ROUNDING_S
            else:
                assert not verdict.was_ready or verdict.num_crashes == MAX_CRASHES
