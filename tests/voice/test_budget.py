import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.budget import STAGES, Waterfall


@given(st.floats(0, 1e6), st.lists(st.floats(-1, 10), min_size=len(STAGES), max_size=len(STAGES)))
def test_stages_sum_to_the_latency_even_when_a_clock_reads_earlier(start: float, steps: list[float]):
    waterfall, now = Waterfall(start), start
    for stage, step in zip(STAGES, steps, strict=True):
        now += step
        waterfall.mark(stage, now)

    assert waterfall.complete
    assert sum(waterfall.stages_s.values()) == pytest.approx(waterfall.latency_s, abs=1e-6)
    assert min(waterfall.stages_s.values()) >= 0


def test_a_stage_ends_once():
    waterfall = Waterfall(0.0)
    waterfall.mark("endpointing", 0.2)
    waterfall.mark("endpointing", 0.9)

    assert waterfall.stages_s == {"endpointing": 0.2}


def test_a_stage_out_of_order_is_a_bug():
    with pytest.raises(AssertionError, match="tts"):
        Waterfall(0.0).mark("tts", 1.0)
