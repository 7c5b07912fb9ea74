"""Percentiles, rates, and how far each can be trusted. Pure; every percentile that `load` reports is computed here.

A percentile is interpolated in a straight line between order statistics: of n sorted values the p-th lies at position
(n - 1) p / 100, counted from 0 (type 7 of Hyndman and Fan, 1996; numpy's default).

Intervals of percentiles are bootstrap percentile intervals (Efron and Tibshirani, 1993, chapter 13). What is resampled
are groups: the turns of one call share its network, its speech and its moment, so calls are drawn and not turns. A
p95 of fewer than about 60 values has no upper bound worth the name: it is the largest value in half of all resamples.

Rates get Wilson's score interval (1927), which holds for 0 of n too; differences of rates Newcombe's (1998, method 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
NUM_RESAMPLES = 2000  # Efron and Tibshirani, 14.2: at least 1000 for the ends of a 95 % interval
MIN_GROUPS = 5  # below, a resample is nearly always one of a handful: an interval would only look exact
MAX_CELLS = 4_000_000  # of a table of resamples at one time: 32 MB

Groups: TypeAlias = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Estimate:
    """`low` and `high` are None where there are too few values to tell."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Summary:
    """Of `n` values in `num_groups` calls or requests; same unit as the values."""

    n: int
    num_groups: int
    mean: float
    p50: float
    p50_low: float | None
    p50_high: float | None
    p90: float
    p95: float
    p95_low: float | None
    p95_high: float | None
    p99: float
    maximum: float


def percentile(values: Sequence[float], percent: float) -> float:
    """`values` need no order but at least one member; `percent` is 0 to 100."""
    assert len(values), "no values, no percentile"
    return float(np.percentile(np.asarray(values, np.float64), percent))


def summarise(groups: Groups, rng: np.random.Generator) -> Summary | None:
    """None where there is no value."""
    values = _flat(groups)
    if not values.size:
        return None
    median, tail = estimate(groups, 50, rng), estimate(groups, 95, rng)
    return Summary(
        n=values.size,
        num_groups=sum(1 for group in groups if len(group)),
        mean=float(values.mean()),
        p50=median.value,
        p50_low=median.low,
        p50_high=median.high,
        p90=float(np.percentile(values, 90)),
        p95=tail.value,
        p95_low=tail.low,
        p95_high=tail.high,
        p99=float(np.percentile(values, 99)),
        maximum=float(values.max()),
    )


def estimate(groups: Groups, percent: float, rng: np.random.Generator) -> Estimate:
    """A percentile of all values with its bootstrap interval."""
    values = _flat(groups)
    point = percentile(values.tolist(), percent)
    drawn = resampled(groups, percent, rng)
    if drawn is None:
        return Estimate(point, None, None, values.size)
    low, high = _interval(drawn)
    return Estimate(point, low, high, values.size)


def difference(a: Groups, b: Groups, percent: float, rng: np.random.Generator) -> Estimate:
    """How much higher the percentile of `b` is than that of `a`, two independent runs; `n` is the smaller of both."""
    values_a, values_b = _flat(a), _flat(b)
    point = percentile(values_b.tolist(), percent) - percentile(values_a.tolist(), percent)
    n = min(values_a.size, values_b.size)
    drawn_a, drawn_b = resampled(a, percent, rng), resampled(b, percent, rng)
    if drawn_a is None or drawn_b is None:
        return Estimate(point, None, None, n)
    low, high = _interval(drawn_b - drawn_a)
    return Estimate(point, low, high, n)


def resampled(groups: Groups, percent: float, rng: np.random.Generator) -> NDArray[np.float64] | None:
    """The percentile in each of `NUM_RESAMPLES` resamples of whole groups; None below `MIN_GROUPS`."""
    kept = [group for group in groups if len(group)]
    return drawn_percentiles(kept, percent, draws(len(kept), rng)) if len(kept) >= MIN_GROUPS else None


def draws(num_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How often each group is drawn in each resample: `[NUM_RESAMPLES, num_groups]`, every row sums to `num_groups`."""
    picks = rng.integers(num_groups, size=(NUM_RESAMPLES, num_groups)) + num_groups * np.arange(NUM_RESAMPLES)[:, None]
    counts = np.bincount(picks.ravel(), minlength=NUM_RESAMPLES * num_groups)
    return counts.reshape(NUM_RESAMPLES, num_groups).astype(np.int64)


def drawn_percentiles(groups: Groups, percent: float, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """The percentile in each resample, `times` as from `draws`; NaN in those that hold no value.

    How often a group was drawn weighs its values: nothing is copied or sorted twice.
    """
    values = _flat(groups)
    if not values.size:
        return np.full(len(times), np.nan)
    group_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    order = np.argsort(values, kind="stable")
    values, group_of = values[order], group_of[order]
    rows = max(1, MAX_CELLS // values.size)
    parts = [
        _weighted(values, times[start : start + rows][:, group_of], percent) for start in range(0, len(times), rows)
    ]
    return np.concatenate(parts)


def _weighted(values: NDArray[np.float64], times: NDArray[np.int64], percent: float) -> NDArray[np.float64]:
    """The percentile of `values` (sorted), each taken `times[row]` times, for every row."""
    until = np.cumsum(times, axis=1)
    position = (until[:, -1] - 1) * percent / 100
    left = np.floor(position).astype(np.int64)
    right = np.minimum(left + 1, until[:, -1] - 1)
    low, high = (values[np.sum(until <= rank[:, None], axis=1)] for rank in (left, right))
    found: NDArray[np.float64] = low + (high - low) * (position - left)
    found[until[:, -1] == 0] = np.nan
    return found


def wilson(num_hits: int, num_trials: int) -> Estimate:
    """The share of hits. Without trials nothing is known."""
    assert 0 <= num_hits <= num_trials
    if not num_trials:
        return Estimate(math.nan, None, None, 0)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    share = num_hits / num_trials
    centre = share + z * z / (2 * num_trials)
    spread = z * math.sqrt(share * (1 - share) / num_trials + z * z / (4 * num_trials**2))
    scale = 1 + z * z / num_trials
    low = 0.0 if num_hits == 0 else (centre - spread) / scale
    high = 1.0 if num_hits == num_trials else (centre + spread) / scale
    return Estimate(share, low, high, num_trials)


def rate_difference(hits_a: int, trials_a: int, hits_b: int, trials_b: int) -> Estimate:
    """How much higher the share is in `b` than in `a`."""
    a, b = wilson(hits_a, trials_a), wilson(hits_b, trials_b)
    n = min(trials_a, trials_b)
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return Estimate(math.nan, None, None, n)
    point = b.value - a.value
    low = point - math.hypot(b.value - b.low, a.high - a.value)
    high = point + math.hypot(b.high - b.value, a.value - a.low)
    return Estimate(point, low, high, n)


def isotonic(values: NDArray[np.float64], weights: Sequence[float]) -> NDArray[np.float64]:
    """The nondecreasing series nearest to each column of `values` `[levels, columns]`, in weighted least squares.

    By the max-min formula of isotonic regression (Robertson, Wright and Dykstra, Order Restricted Statistical
    Inference, 1988, section 1.4). What is infinite makes everything behind it infinite.
    """
    fitted = np.full(values.shape, -math.inf)
    for first in range(len(weights)):
        scale = np.cumsum(weights[first:])
        means = np.cumsum(values[first:] * np.asarray(weights)[first:, None], axis=0) / scale[:, None]
        least = np.minimum.accumulate(means[::-1], axis=0)[::-1]
        fitted[first:] = np.maximum(fitted[first:], least)
    return fitted


def cumulative(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The empirical distribution: sorted values, and the share of values up to and with each."""
    ordered = sorted(values)
    return ordered, [(i + 1) / len(ordered) for i in range(len(ordered))]


def _flat(groups: Groups) -> NDArray[np.float64]:
    return np.array([value for group in groups for value in group], np.float64)


def _interval(drawn: NDArray[np.float64]) -> tuple[float, float]:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, (tail, 100 - tail))
    return float(low), float(high)
