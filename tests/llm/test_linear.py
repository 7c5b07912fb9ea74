from __future__ import annotations

import pytest
import torch

from llm.linear import (
    GROUP_WEIGHTS,
    SMALL_BATCH_ROWS,
    DoubledLinear,
    FloatLinear,
    Groups,
    Int4Linear,
    Int8Linear,
    join,
    pack,
    quantize_rows,
    split_bytes,
)

BFLOAT16_ERROR = 2**-7  # of a sum, relative to its largest term: inputs, scales and result are rounded to 8 bits
SHAPES = [(32, 32), (64, 96), (96, 576), (192, 1536)]
ROWS = [1, 2, 7, SMALL_BATCH_ROWS, SMALL_BATCH_ROWS + 1, 33]


def random(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def groups(outs: int, ins: int) -> Groups:
    values = torch.randint(0, 16, (outs, ins), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    scales = random(outs, ins // GROUP_WEIGHTS, seed=2).abs() / 8
    return pack(values, scales, random(outs, ins // GROUP_WEIGHTS, seed=3))


def assert_near(got: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, error: float) -> None:
    largest = (x.abs() @ weight.abs().T).max()
    assert got.shape == (len(x), len(weight))
    assert (got.float() - x @ weight.T).abs().max() <= error * largest


def test_packing_keeps_every_nibble():
    values = torch.arange(16, dtype=torch.uint8).repeat(2, 2)

    assert torch.equal(pack(values, torch.ones(2, 1), torch.zeros(2, 1)).unpacked(), values)


def test_joined_groups_are_rows_below_rows():
    one, two = groups(32, 64), groups(64, 64)

    assert torch.equal(join([one, two]).dequantized(), torch.cat([one.dequantized(), two.dequantized()]))


@pytest.mark.parametrize(("outs", "ins"), SHAPES)
@pytest.mark.parametrize("rows", ROWS)
def test_int4_equals_the_dequantised_product(outs: int, ins: int, rows: int):
    given, x = groups(outs, ins), random(rows, ins)

    assert_near(Int4Linear(given, with_wide=True)(x), x, given.dequantized(), BFLOAT16_ERROR)
    assert_near(Int4Linear(given, with_wide=False)(x), x, given.dequantized(), BFLOAT16_ERROR)


@pytest.mark.parametrize(("outs", "ins"), SHAPES)
def test_bytes_as_two_nibbles_are_exact(outs: int, ins: int):
    values = torch.randint(-128, 128, (outs, ins), generator=torch.Generator().manual_seed(1), dtype=torch.int8)
    scales = (random(outs, ins // GROUP_WEIGHTS).abs() / 64).half().float()
    weight = (values.view(outs, -1, GROUP_WEIGHTS) * scales[:, :, None]).flatten(1)
    doubled = split_bytes(values, scales).dequantized()

    assert_near(DoubledLinear(split_bytes(values, scales))(random(3, ins)), random(3, ins), weight, BFLOAT16_ERROR)
    torch.testing.assert_close(doubled[:, :ins] + doubled[:, ins:], weight, atol=0.0, rtol=2e-3)


@pytest.mark.parametrize(("outs", "ins"), SHAPES)
@pytest.mark.parametrize("rows", ROWS)
def test_int8_is_near_and_does_not_depend_on_the_batch(outs: int, ins: int, rows: int):
    weight, x = random(outs, ins), random(rows, ins, seed=4) * torch.logspace(-3, 3, rows)[:, None]
    linear = Int8Linear(*quantize_rows(weight))
    got = linear(x)

    for i in range(rows):
        assert torch.equal(linear(x[i : i + 1]), got[i : i + 1])
        assert_near(got[i : i + 1], x[i : i + 1], weight, 0.01)


def test_a_row_of_zeros_stays_zero():
    weight = torch.zeros(32, 32)

    assert torch.equal(Int8Linear(*quantize_rows(weight))(torch.zeros(2, 32)), torch.zeros(2, 32))


def test_bfloat16_is_near():
    weight, x = random(48, 96), random(5, 96)

    assert_near(FloatLinear(weight.bfloat16())(x), x, weight, BFLOAT16_ERROR)
