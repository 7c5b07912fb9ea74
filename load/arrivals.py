"""When calls begin: schedules drawn before the run, so that a slow server cannot delay the load that shows it. Pure.

Latency is counted from these times and not from when a call could be placed (no coordinated omission: G. Tene, "How
NOT to Measure Latency"). Every schedule is sorted, in seconds from the start of the run, the same for the same seed.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np

# Share of a day's calls by hour, of a call centre that is open from eight to eight: two peaks, a lunch dip.
DAY_CURVE = (1, 1, 1, 1, 1, 2, 6, 18, 55, 90, 100, 92, 70, 74, 86, 82, 76, 62, 44, 26, 14, 8, 4, 2)


def poisson(rate_hz: float, duration_s: float, seed: int) -> list[float]:
    """Open loop: independent callers, `rate_hz` of them a second on average."""
    return inhomogeneous([(0.0, rate_hz), (duration_s, rate_hz)], seed)


def ramp(from_hz: float, to_hz: float, duration_s: float, seed: int) -> list[float]:
    """Open loop, the rate growing in a straight line."""
    return inhomogeneous([(0.0, from_hz), (duration_s, to_hz)], seed)


def spike(num_calls: int, at_s: float, width_s: float, seed: int) -> list[float]:
    """`num_calls` within `width_s`."""
    rng = np.random.default_rng(seed)
    return [float(t) for t in np.sort(at_s + width_s * rng.random(num_calls))]


def day(num_calls: float, duration_s: float, seed: int, curve: Sequence[float] = DAY_CURVE) -> list[float]:
    """A day in `duration_s`: about `num_calls`, spread as `curve` (24 hours, any unit) has them."""
    mean_hz = num_calls / duration_s
    mean_weight = sum(curve) / len(curve)
    step_s = duration_s / len(curve)
    points = [((i + 0.5) * step_s, mean_hz * weight / mean_weight) for i, weight in enumerate(curve)]
    ends = [(0.0, points[0][1]), (duration_s, points[-1][1])]
    return inhomogeneous([ends[0], *points, ends[1]], seed)


def inhomogeneous(points: Sequence[tuple[float, float]], seed: int) -> list[float]:
    """A Poisson process whose rate runs in straight lines through `points` (seconds, calls per second).

    By thinning (Lewis and Shedler, 1979).
    """
    times = [t for t, _ in points]
    peak_hz = max(rate for _, rate in points)
    rng = np.random.default_rng(seed)
    found: list[float] = []
    now = times[0]
    while peak_hz > 0:
        now += rng.exponential(1 / peak_hz)
        if now >= times[-1]:
            break
        if rng.random() * peak_hz < _rate_at(points, times, now):
            found.append(now)
    return found


def _rate_at(points: Sequence[tuple[float, float]], times: Sequence[float], now: float) -> float:
    i = bisect.bisect_right(times, now) - 1
    (left_s, left_hz), (right_s, right_hz) = points[i], points[min(i + 1, len(points) - 1)]
    if right_s <= left_s:
        return right_hz
    return left_hz + (right_hz - left_hz) * (now - left_s) / (right_s - left_s)
