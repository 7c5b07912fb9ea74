from __future__ import annotations

import pytest

from load.report.validity import judge


def test_a_generator_that_keeps_time_is_valid_and_its_error_is_told() -> None:
    found = judge([0.001] * 99 + [0.004], 0.3, 60.0, shares_cores=False, num_cores=2)
    assert found.is_valid
    assert found.reason == ""
    assert found.scheduling_error_p50_s == 0.001
    assert found.scheduling_error_max_s == 0.004
    assert found.num_timed == 100


def test_of_few_that_were_sent_one_late_one_does_not_decide() -> None:
    assert judge([0.001] * 24 + [0.02], 0.1, 60.0, shares_cores=False, num_cores=2).is_valid
    found = judge([0.001] * 20 + [0.02] * 5, 0.1, 60.0, shares_cores=False, num_cores=2)
    assert not found.is_valid
    assert "10 % of what it sent left more than 20.0 ms late" in found.reason


def test_shared_cores_are_told_with_the_generators_part_of_them() -> None:
    found = judge([0.001], 0.3, 60.0, shares_cores=True, num_cores=2)
    assert found.is_valid
    assert "share 2 cores" in found.reason
    assert "15%" in found.reason


@pytest.mark.parametrize(
    ("late_s", "cpu_share", "reason"),
    [
        ([0.001] * 90 + [0.02] * 10, 0.1, "could not keep time"),
        ([0.001] * 100, 0.95, "95% of a core"),
        ([], 0.0, "nothing was sent"),
    ],
)
def test_a_run_that_cannot_be_trusted_is_invalid_and_says_why(
    late_s: list[float], cpu_share: float, reason: str
) -> None:
    found = judge(late_s, cpu_share, 60.0, shares_cores=True, num_cores=2)
    assert not found.is_valid
    assert reason in found.reason


def test_a_short_run_is_not_judged_by_its_cpu() -> None:
    assert judge([0.001], 0.99, 1.0, shares_cores=True, num_cores=2).is_valid
    assert not judge([0.5], 0.99, 1.0, shares_cores=True, num_cores=2).is_valid
