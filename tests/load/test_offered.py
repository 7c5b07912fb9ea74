from __future__ import annotations

import argparse
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.errors import LoadError
from load.offered import Fixed, Offered, Open, add_arrival_flags, offered
from load.report.document import Plan


def of(*flags: str, seed: int = 1) -> tuple[Offered, Plan]:
    parser = argparse.ArgumentParser()
    add_arrival_flags(parser)
    arguments = parser.parse_args(flags)
    arguments.seed = seed
    return offered(arguments)


@pytest.mark.parametrize(
    ("flags", "num_concurrent", "num_calls", "duration_s"),
    [
        ([], 1, 1, None),
        (["--calls", "5"], 1, 5, None),
        (["--at-once", "4"], 4, 4, None),
        (["--calls", "9", "--at-once", "4"], 4, 9, None),
        (["--at-once", "4", "--for", "60"], 4, None, 60.0),
        (["--calls", "9", "--at-once", "4", "--for", "60"], 4, 9, 60.0),
    ],
)
def test_a_fixed_load_is_one_call_unless_more_are_asked_for(
    flags: list[str], num_concurrent: int, num_calls: int | None, duration_s: float | None
) -> None:
    found, plan = of(*flags)
    assert found == Fixed(num_concurrent, num_calls, duration_s)
    assert (plan.arrivals, plan.num_planned) == ("fixed", num_calls or 0)
    assert plan.parameters["num_concurrent"] == num_concurrent
    assert plan.parameters.get("num_calls") == num_calls
    assert plan.parameters.get("duration_s") == duration_s


@pytest.mark.parametrize(
    ("flags", "arrivals", "parameters", "expected_calls"),
    [
        (["--poisson", "30", "--for", "600"], "poisson", {"calls_per_minute": 30.0, "duration_s": 600.0}, 300),
        (
            ["--ramp", "0:60", "--for", "600"],
            "ramp",
            {"from_calls_per_minute": 0.0, "to_calls_per_minute": 60.0, "duration_s": 600.0},
            300,
        ),
        (["--spike", "300", "--within", "5"], "spike", {"num_calls": 300.0, "width_s": 5.0}, 300),
        (["--day", "300", "--for", "240"], "day", {"mean_calls": 300.0, "duration_s": 240.0}, 300),
    ],
)
def test_an_open_load_is_drawn_by_its_seed_and_described_with_units(
    flags: list[str], arrivals: str, parameters: dict[str, float], expected_calls: int
) -> None:
    found, plan = of(*flags, seed=3)
    assert isinstance(found, Open)
    assert (found, plan) == of(*flags, seed=3)
    assert found != of(*flags, seed=4)[0]
    assert len(found.times_s) == pytest.approx(expected_calls, rel=0.2)
    assert plan == Plan(arrivals, parameters, len(found.times_s))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--poisson", "3", "--ramp", "0:2", "--for", "9"], "--poisson and --ramp are two loads"),
        (["--calls", "3", "--poisson", "3", "--for", "9"], "--calls does not go with --poisson"),
        (["--at-once", "3", "--spike", "3", "--within", "9"], "--at-once does not go with --spike"),
        (["--calls", "0"], "--calls must be 1 to 100000, got 0"),
        (["--calls", "-1"], "--calls must be 1 to"),
        (["--at-once", "0"], "--at-once must be 1 to 1000, got 0"),
        (["--at-once", "2000"], "--at-once must be 1 to 1000"),
        (["--at-once", "3", "--calls", "2"], "--at-once 3 is more than --calls 2"),
        (["--at-once", "3", "--for", "0"], "--for must be above 0"),
        (["--at-once", "3", "--for", "nan"], "--for must be above 0 and at most 86400 seconds, got nan"),
        (["--within", "3"], "--within does not go with a fixed load"),
        (["--poisson", "3"], "--poisson needs --for"),
        (["--poisson", "-3", "--for", "9"], "--poisson must be 0 or more"),
        (["--poisson", "inf", "--for", "9"], "--poisson must be 0 or more"),
        (["--poisson", "1e9", "--for", "9"], "is more than 100000 calls"),
        (["--poisson", "3", "--for", "9", "--within", "2"], "--within does not go with --poisson"),
        (["--poisson", "0", "--for", "9"], "--poisson: not one call begins"),
        (["--ramp", "3", "--for", "9"], "--ramp must be FROM:TO in calls a minute, got '3'"),
        (["--ramp", "1:2:3", "--for", "9"], "--ramp must be FROM:TO"),
        (["--ramp", "a:b", "--for", "9"], "--ramp must be FROM:TO"),
        (["--ramp", "1:nan", "--for", "9"], "--ramp must be 0 or more"),
        (["--ramp", "0:20"], "--ramp needs --for"),
        (["--spike", "3"], "--spike needs --within"),
        (["--spike", "3", "--for", "9"], "--for does not go with --spike"),
        (["--spike", "0", "--within", "9"], "--spike must be 1 to"),
        (["--day", "3"], "--day needs --for"),
        (["--day", "0", "--for", "9"], "--day must be 1 to"),
    ],
)
def test_a_wrong_load_is_one_clear_line(flags: list[str], says: str) -> None:
    with pytest.raises(LoadError) as error:
        of(*flags)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@given(st.integers(1, 200), st.integers(0, 99))
def test_the_first_calls_begin_apart_and_unevenly_and_repeat_with_their_seed(num_concurrent: int, seed: int) -> None:
    fixed = Fixed(num_concurrent, None, 60.0)
    times = fixed.first_times_s(seed)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == num_concurrent
    assert times[0] == 0
    assert all(0 <= gap <= 2 * fixed.stagger_s for gap in gaps)
    assert times == fixed.first_times_s(seed)
    assert len(set(gaps)) == len(gaps)
