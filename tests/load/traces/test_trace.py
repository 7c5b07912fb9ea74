from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.errors import LoadError
from load.traces.trace import Part, Trace, TraceRequest, faster, first, in_order, reuse_bound, within

parts = st.lists(
    st.builds(Part, st.sampled_from(["system", "user"]), st.sampled_from("abc"), st.integers(1, 50)),
    min_size=1,
    max_size=5,
).map(tuple)
requests = st.lists(
    st.builds(TraceRequest, at_s=st.floats(0, 1000), parts=parts, output_tokens=st.integers(1, 100)),
    min_size=1,
    max_size=20,
)


def request(at_s: float, *names: str, tokens: int = 10) -> TraceRequest:
    return TraceRequest(at_s, tuple(Part("user", name, tokens) for name in names), 5)


@pytest.mark.slow
@given(requests)
def test_a_trace_is_in_order_of_time(found: list[TraceRequest]) -> None:
    times = [r.at_s for r in in_order("t", found).requests]
    assert times == sorted(r.at_s for r in found)


@pytest.mark.slow
@given(requests, st.integers(1, 120), st.integers(1, 60))
def test_cutting_keeps_the_beginning_of_prompts_and_counts_what_was_cut(
    found: list[TraceRequest], max_input: int, max_output: int
) -> None:
    trace = in_order("t", found)
    cut, num_cut = within(trace, max_input, max_output)
    for old, new in zip(trace.requests, cut.requests, strict=True):
        assert new.input_tokens == min(old.input_tokens, max_input)
        assert new.output_tokens == min(old.output_tokens, max_output)
        assert [p.name for p in new.parts] == [p.name for p in old.parts][: len(new.parts)]
    assert num_cut == sum(old != new for old, new in zip(trace.requests, cut.requests, strict=True))


@pytest.mark.slow
@given(requests)
def test_what_can_be_reused_equals_brute_force(found: list[TraceRequest]) -> None:
    trace = in_order("t", found)
    shared = 0
    for i, later in enumerate(trace.requests):
        best = 0
        for earlier in trace.requests[:i]:
            common = 0
            for a, b in zip(later.parts, earlier.parts, strict=False):
                if a != b:
                    break
                common += a.num_tokens
            best = max(best, common)
        shared += best
    assert reuse_bound(trace) == pytest.approx(shared / sum(r.input_tokens for r in trace.requests))


def test_a_faster_trace_has_the_same_requests_closer_together() -> None:
    trace = Trace("t", (request(0, "a"), request(10, "b")))
    assert [r.at_s for r in faster(trace, 4).requests] == [0, 2.5]


def test_the_beginning_of_a_trace_starts_at_once() -> None:
    trace = Trace("t", tuple(request(100 + i, "a") for i in range(10)))
    assert [r.at_s for r in first(trace, 3).requests] == [0, 1, 2]
    assert len(first(trace, duration_s=4).requests) == 4


def test_a_trace_without_requests_is_an_error() -> None:
    with pytest.raises(LoadError, match="no requests"):
        in_order("empty.csv", [])
