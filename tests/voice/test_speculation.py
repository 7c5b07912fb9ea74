from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.speculation import Allowance

steps = st.lists(st.tuples(st.sampled_from(["grant", "wait", "give_back"]), st.sampled_from("abcd")), max_size=40)


@given(st.integers(0, 3), steps)
def test_answers_made_ahead_leave_the_capacity_to_callers_who_wait(limit: int, moves: list[tuple[str, str]]) -> None:
    allowance = Allowance(limit)
    ahead: set[str] = set()
    waiting: set[str] = set()
    for move, call in moves:
        if move == "grant":
            may = call in ahead or len(ahead) + len(waiting) < limit
            assert allowance.grant(call) == may
            if may:
                ahead.add(call)
        elif move == "wait":
            allowance.note_waiting(call)
            ahead.discard(call)
            waiting.add(call)
        else:
            allowance.give_back(call)
            ahead.discard(call)
            waiting.discard(call)
    assert allowance.num_ahead <= limit


def test_no_capacity_means_no_answer_ahead() -> None:
    assert not Allowance(0).grant("a")
