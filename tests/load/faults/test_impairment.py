from __future__ import annotations

import pytest

from load.faults.impairment import (
    Bandwidth,
    BurstLoss,
    Delay,
    Drift,
    Duplicate,
    Impairment,
    Jitter,
    Loss,
    Reorder,
    for_streams,
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Loss(1.5), "share must be 0 to 1"),
        (lambda: Loss(float("nan")), "share must be"),
        (lambda: BurstLoss(0.9, mean_burst_packets=2), "cannot be reached"),
        (lambda: BurstLoss(0.1, mean_burst_packets=0.5), "at least 1"),
        (lambda: BurstLoss(0.1, loss_in_bad=0), "loss_in_bad"),
        (lambda: Delay(-0.1), "delay_s must be 0 to 10 s"),
        (lambda: Jitter(11), "spread_s must be"),
        (lambda: Reorder(0.1, -1), "hold_s"),
        (lambda: Duplicate(2), "share"),
        (lambda: Bandwidth(0), "rate_bit_per_s"),
        (lambda: Bandwidth(64_000, 10), "hold a packet"),
        (lambda: Drift(2000), "ppm"),
        (lambda: Drift(200, 0), "for_s"),
    ],
)
def test_a_value_out_of_range_says_which(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_a_direction_takes_what_concerns_it() -> None:
    faults = [Loss(0.1, direction="up"), Loss(0.2, direction="down"), Delay(0.05)]
    assert Impairment.of(faults, "up") == Impairment(loss=faults[0], delay=faults[2])
    assert Impairment.of(faults, "down") == Impairment(loss=faults[1], delay=faults[2])


def test_two_of_a_kind_for_one_direction_are_refused() -> None:
    with pytest.raises(ValueError, match="loss is given twice for down"):
        Impairment.of([Loss(0.1), Loss(0.2, direction="down")], "down")


def test_every_kind_is_a_field_of_the_impairment() -> None:
    faults = [
        Loss(0.1), BurstLoss(0.1), Delay(0.1), Jitter(0.1), Reorder(0.1), Duplicate(0.1), Bandwidth(1e5), Drift(100),
    ]  # fmt: skip
    assert None not in vars(Impairment.of(faults, "up")).values()


def test_a_stream_refuses_what_tcp_repairs() -> None:
    with pytest.raises(ValueError, match="TCP would repair"):
        for_streams([Delay(0.1), Loss(0.1)])
