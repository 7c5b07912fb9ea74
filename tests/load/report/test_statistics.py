from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.report.statistics import (
    cumulative,
    difference,
    drawn_percentiles,
    estimate,
    isotonic,
    percentile,
    rate_difference,
    resampled,
    summarise,
    wilson,
)

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


def singles(numbers: list[float]) -> list[list[float]]:
    return [[number] for number in numbers]


@given(values, st.floats(0, 100))
def test_a_percentile_lies_between_order_statistics_as_defined(numbers: list[float], percent: float) -> None:
    ordered = sorted(numbers)
    position = (len(ordered) - 1) * percent / 100
    left = math.floor(position)
    right = min(left + 1, len(ordered) - 1)
    expected = ordered[left] + (ordered[right] - ordered[left]) * (position - left)
    assert percentile(numbers, percent) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(values)
def test_percentiles_grow_and_stay_within_the_values(numbers: list[float]) -> None:
    found = [percentile(numbers, percent) for percent in (0, 25, 50, 90, 95, 99, 100)]
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(found))
    assert found[0] == min(numbers)
    assert found[-1] == max(numbers)


@pytest.mark.slow
@given(st.lists(st.floats(0, 10), min_size=5, max_size=30), st.integers(0, 99))
def test_the_same_seed_gives_the_same_interval_within_the_values(numbers: list[float], seed: int) -> None:
    first = estimate(singles(numbers), 95, np.random.default_rng(seed))
    assert first == estimate(singles(numbers), 95, np.random.default_rng(seed))
    assert first.low is not None
    assert first.high is not None
    assert min(numbers) <= first.low <= first.high <= max(numbers)


@pytest.mark.slow
def test_an_interval_holds_the_true_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(150):
        found = estimate(singles(rng.exponential(1.0, 60).tolist()), 50, rng)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= math.log(2) <= found.high
    assert 0.88 <= hits / 150 <= 0.99


def test_calls_are_resampled_whole_so_that_alike_turns_do_not_feign_certainty() -> None:
    rng = np.random.default_rng(1)
    per_call = rng.normal(0.6, 0.1, 12)
    calls = [[float(base)] * 10 for base in per_call]
    turns = [[float(base)] for base in per_call for _ in range(10)]
    by_call = estimate(calls, 50, np.random.default_rng(2))
    by_turn = estimate(turns, 50, np.random.default_rng(2))
    assert by_call.value == by_turn.value
    assert by_call.low is not None
    assert by_call.high is not None
    assert by_turn.low is not None
    assert by_turn.high is not None
    assert by_call.high - by_call.low > 1.5 * (by_turn.high - by_turn.low)


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(0, 10), max_size=4), min_size=8, max_size=12), st.floats(0, 100), st.integers(0, 9))
def test_a_resample_is_the_percentile_of_the_groups_that_were_drawn(
    groups: list[list[float]], percent: float, seed: int
) -> None:
    kept = [group for group in groups if group]
    found = resampled(groups, percent, np.random.default_rng(seed))
    assert (found is None) == (len(kept) < 5)
    if found is not None:
        picks = np.random.default_rng(seed).integers(len(kept), size=(2000, len(kept)))
        drawn = [[value for i in row for value in kept[i]] for row in picks[:3]]
        assert found[:3] == pytest.approx([percentile(values, percent) for values in drawn], abs=1e-9)


def test_too_few_values_have_a_percentile_and_no_interval() -> None:
    found = estimate([[1.0, 2.0], [3.0]], 50, np.random.default_rng(0))
    assert (found.value, found.low, found.high, found.n) == (2.0, None, None, 3)
    assert resampled([[1.0]], 50, np.random.default_rng(0)) is None


def test_a_difference_has_the_sign_of_the_second_run_and_an_interval_around_it() -> None:
    rng = np.random.default_rng(3)
    a, b = singles(rng.normal(0.60, 0.02, 80).tolist()), singles(rng.normal(0.65, 0.02, 80).tolist())
    found = difference(a, b, 50, rng)
    assert found.value == pytest.approx(0.05, abs=0.01)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high
    same = difference(a, a, 50, np.random.default_rng(4))
    assert same.value == 0
    assert same.low is not None
    assert same.high is not None
    assert same.low <= 0 <= same.high


def test_a_summary_counts_values_and_groups() -> None:
    found = summarise([[0.1, 0.2], [], [0.3]], np.random.default_rng(0))
    assert found is not None
    assert (found.n, found.num_groups, found.p50, found.maximum) == (3, 2, 0.2, 0.3)
    assert found.mean == pytest.approx(0.2)
    assert summarise([[], []], np.random.default_rng(0)) is None


def test_wilson_agrees_with_published_values() -> None:
    found = wilson(81, 263)  # Newcombe, 1998, table I, method 3
    assert found.low == pytest.approx(0.2553, abs=1e-4)
    assert found.high == pytest.approx(0.3662, abs=1e-4)
    none = wilson(0, 20)
    assert none.low == 0
    assert none.high == pytest.approx(0.1611, abs=1e-4)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_holds_the_share_and_stays_a_share(hits: int, trials: int) -> None:
    found = wilson(min(hits, trials), trials)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_difference_of_rates_agrees_with_the_published_value() -> None:
    found = rate_difference(48, 80, 56, 70)  # Newcombe, 1998 (paper 2), table II, case a, method 10, sign turned
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=1e-4)
    assert found.high == pytest.approx(0.3339, abs=1e-4)


def test_nothing_tried_is_nothing_known() -> None:
    assert math.isnan(wilson(0, 0).value)
    assert rate_difference(0, 0, 1, 2).low is None


@given(values)
def test_a_distribution_ends_at_one_and_counts_each_value(numbers: list[float]) -> None:
    xs, shares = cumulative(numbers)
    assert xs == sorted(numbers)
    assert shares[-1] == 1
    assert all(share == sum(1 for x in xs[: i + 1]) / len(xs) for i, share in enumerate(shares))


levels = st.lists(st.tuples(st.floats(0, 10), st.integers(1, 50)), min_size=1, max_size=8)


@given(levels)
def test_isotonic_regression_pools_neighbours_that_fall(pairs: list[tuple[float, int]]) -> None:
    blocks: list[tuple[float, int, int]] = []  # mean, weight, members: pool adjacent violators
    for value, weight in pairs:
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, wa, na), (b, wb, nb) = blocks[-2:]
            blocks[-2:] = [((a * wa + b * wb) / (wa + wb), wa + wb, na + nb)]
    expected = [mean for mean, _, members in blocks for _ in range(members)]
    found = isotonic(np.array([[value, value] for value, _ in pairs]), [weight for _, weight in pairs])
    assert found[:, 0] == pytest.approx(expected, abs=1e-9)
    assert found[:, 1] == pytest.approx(expected, abs=1e-9)


def test_what_is_infinite_once_is_infinite_from_there_on() -> None:
    found = isotonic(np.array([[1.0], [math.inf], [2.0], [3.0]]), [1, 1, 5, 5])
    assert found[:, 0].tolist() == [1.0, math.inf, math.inf, math.inf]


def test_a_resample_without_any_value_has_no_percentile() -> None:
    found = drawn_percentiles([[], [2.0]], 95, np.array([[2, 0], [1, 1]]))
    assert math.isnan(found[0])
    assert found[1] == 2.0
