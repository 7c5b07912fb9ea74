from hypothesis import given
from hypothesis import strategies as st

from router.choice import STICKY_SLACK, Load, Sessions, order

loads = st.lists(
    st.builds(Load, st.text("abcdef", min_size=1), st.booleans(), st.integers(0, 9)), unique_by=lambda w: w.worker
)


def test_the_least_busy_healthy_worker_comes_first():
    assert order([Load("a", True, 2), Load("b", True, 1), Load("c", False, 0)], None) == ["b", "a", "c"]


def test_a_conversation_stays_until_its_worker_is_clearly_busier():
    assert order([Load("a", True, STICKY_SLACK), Load("b", True, 0)], "a")[0] == "a"
    assert order([Load("a", True, STICKY_SLACK + 1), Load("b", True, 0)], "a")[0] == "b"
    assert order([Load("a", False, 0), Load("b", True, 5)], "a")[0] == "b"


@given(loads, st.text("abcdef", min_size=1) | st.none())
def test_every_worker_is_tried_once_and_healthy_ones_first(workers: list[Load], sticky: str | None):
    names = order(workers, sticky)
    healthy = {w.worker: w.is_healthy for w in workers}

    assert sorted(names) == sorted(healthy)
    assert [healthy[n] for n in names] == sorted((healthy[n] for n in names), reverse=True)


@given(st.lists(st.tuples(st.text("abcdefgh", max_size=2), st.sampled_from(["w1", "w2"])), max_size=50))
def test_sessions_are_bounded_and_remember_the_newest(notes: list[tuple[str, str]]):
    sessions, last = Sessions(max_sessions=3), {}
    for session, worker in notes:
        sessions.note(session, worker)
        if session:
            last.pop(session, None)
            last[session] = worker
    kept = list(last)[-3:]

    assert {s: sessions.get(s) for s in last} == {s: last[s] if s in kept else None for s in last}
    assert sessions.get("") is None
