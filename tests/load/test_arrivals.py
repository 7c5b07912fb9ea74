from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.arrivals import DAY_CURVE, day, poisson, ramp, spike


@given(st.floats(0.1, 5), st.floats(1, 60), st.integers(0, 1000))
def test_schedules_are_sorted_within_the_run_and_repeat_with_their_seed(
    rate_hz: float, duration_s: float, seed: int
) -> None:
    for schedule in (poisson, lambda r, d, s: ramp(0, r, d, s), lambda r, d, s: day(r * d, d, s)):
        times = schedule(rate_hz, duration_s, seed)
        assert times == sorted(times)
        assert all(0 <= t < duration_s for t in times)
        assert times == schedule(rate_hz, duration_s, seed)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_their_process() -> None:
    times = poisson(2.0, 5000, seed=1)
    gaps = np.diff(times)
    assert len(times) == pytest.approx(10_000, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.05)


def test_a_ramp_ends_with_the_rate_it_goes_to() -> None:
    times = np.array(ramp(0.0, 4.0, 2000, seed=2))
    assert np.sum(times < 1000) / times.size == pytest.approx(0.25, abs=0.02)  # the area under the line
    assert np.sum(times > 1900) / 100 == pytest.approx(3.9, rel=0.1)


def test_a_spike_is_all_there_within_its_width() -> None:
    times = spike(10, at_s=5.0, width_s=1.0, seed=3)
    assert len(times) == 10
    assert 5.0 <= times[0] <= times[-1] < 6.0


def test_a_day_peaks_where_its_curve_does() -> None:
    times = np.array(day(20_000, 2400, seed=4))
    hours = np.histogram(times, bins=24, range=(0, 2400))[0]
    assert times.size == pytest.approx(20_000, rel=0.05)
    assert abs(int(hours.argmax()) - int(np.argmax(DAY_CURVE))) <= 1
    assert hours[2] < hours.max() / 20


def test_no_rate_is_no_call() -> None:
    assert poisson(0.0, 100, seed=0) == []
