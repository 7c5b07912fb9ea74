from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.faults.stages import (
    STAGE_FAULTS,
    LlmDeath,
    LlmRefusal,
    LlmStall,
    Plan,
    SttEmpty,
    SttLate,
    SttNever,
    TtsStall,
)


def plan(seed: int = 1) -> Plan:
    return Plan("stt", np.random.default_rng(seed))


def taken(plan: Plan, num: int) -> list[str | None]:
    faults = (plan.take() for _ in range(num))
    return [None if fault is None else fault.KIND for fault in faults]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SttNever(first=0), "first counts from 1"),
        (lambda: SttNever(count=0), "count must be at least 1"),
        (lambda: SttNever(share=0), "share must be above 0"),
        (lambda: SttLate(by_s=-1), "by_s must be"),
        (lambda: TtsStall(after_s=float("nan")), "after_s must be"),
        (lambda: LlmStall(for_s=-1), "for_s must be"),
        (lambda: LlmDeath(after_tokens=-1), "after_tokens"),
        (lambda: LlmRefusal(retry_after_s=-1), "retry_after_s"),
    ],
)
def test_a_value_out_of_range_says_which(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("kind", STAGE_FAULTS)
def test_every_fault_says_what_is_expected(kind: type) -> None:
    assert "Expected" in (kind.__doc__ or "")


def test_a_fault_meets_the_next_request_the_nth_or_all() -> None:
    there = plan()
    there.take()
    there.set([SttLate(), SttEmpty(first=3), SttNever(first=5, count=None)])
    assert taken(there, 7) == ["stt_late", None, "stt_empty", None, "stt_never", "stt_never", "stt_never"]
    assert there.num_faults == {"stt_late": 1, "stt_empty": 1, "stt_never": 3}
    there.clear()
    assert taken(there, 2) == [None, None]


def test_peeking_takes_nothing() -> None:
    there = plan()
    there.set([SttLate()])
    assert [there.peek(), there.peek(), there.take(), there.peek()] == [SttLate(), SttLate(), SttLate(), None]


def test_a_plan_refuses_the_faults_of_another_stage() -> None:
    with pytest.raises(ValueError, match="llm_stall is no fault of stt"):
        plan().set([LlmStall()])


def test_a_share_is_met_and_the_same_seed_meets_the_same() -> None:
    def met(seed: int) -> list[str | None]:
        there = plan(seed)
        there.set([SttNever(count=None, share=0.3)])
        return taken(there, 1000)

    assert met(1) == met(1) != met(2)
    assert met(1).count("stt_never") == pytest.approx(300, abs=60)


@given(st.lists(st.booleans(), max_size=50))
def test_what_a_request_meets_does_not_depend_on_who_asked_before(peeks: list[bool]) -> None:
    def met(*, peeking: bool) -> list[object]:
        there = plan()
        there.set([SttLate(count=None, share=0.5), SttEmpty(count=None, share=0.5)])
        found = []
        for peek in peeks:
            if peek and peeking:
                there.peek()
            found.append(there.take())
        return found

    assert met(peeking=True) == met(peeking=False)
