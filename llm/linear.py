"""Matrix multiplication in the weight formats that were measured (bench/llm_cpu.py).

int4      GGUF's own Q4_1 and Q8_0, exact but for bfloat16 rounding: groups of 32 weights share a scale and a zero.
          A few rows are bound by reading weights and multiply the packed nibbles; many rows are bound by
          multiplying, and take a dequantised copy
int8      weights and activations in 8 bits, a scale per output and per token: the fastest decode of a batch and a
          quarter of float32's memory, but the answers differ (see the benchmark's agreement column)
float32   the reference
bfloat16  for processors that multiply it
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
import torch.nn.functional as F

from wire.errors import Unavailable

GROUP_WEIGHTS = 32  # GGUF, Q4_1 and Q8_0
SMALL_BATCH_ROWS = 8  # measured on a Xeon with AMX, one thread: int4 47 ms, bfloat16 52 ms for all layers at 8 rows
NIBBLE_ZERO = 8  # the packed kernel reads nibble q as (q - 8) * scale + zero
WEIGHT_LEVELS = 127
MIN_SCALE = 1e-12  # of a row of zeros

_CPU = torch.cpu.get_capabilities()
# Of the copy that many rows are multiplied with. Without instructions for it, bfloat16 is emulated, and slower.
WIDE_DTYPE = torch.bfloat16 if _CPU.get("amx_bf16") or _CPU.get("avx512_bf16") else torch.float32
# int8 activations are unsigned, offset by their zero point. Without VNNI, FBGEMM adds two products in 16 bits:
# 2 * 127 * 127 fits, 2 * 255 * 127 does not.
ACTIVATION_LEVELS = 127 if _CPU.get("avx512_vnni") else 63


class Linear(Protocol):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] -> [rows, out]; both float32 or bfloat16, as suits the format."""


State: TypeAlias = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Groups:
    """`nibbles` [out, in / 2] uint8, low nibble first; `scales` and `minima` [out, in / GROUP_WEIGHTS] float16.

    A weight is nibble * scale + minimum.
    """

    nibbles: torch.Tensor
    scales: torch.Tensor
    minima: torch.Tensor

    def unpacked(self) -> torch.Tensor:
        """uint8 [out, in]"""
        return torch.stack((self.nibbles & 15, self.nibbles >> 4), dim=2).flatten(1)

    def dequantized(self) -> torch.Tensor:
        """float32 [out, in]"""
        grouped = self.unpacked().unflatten(1, (-1, GROUP_WEIGHTS)).float()  # type: ignore[no-untyped-call]
        weights: torch.Tensor = grouped.mul_(self.scales[:, :, None]).add_(self.minima[:, :, None])
        return weights.flatten(1)


def pack(values: torch.Tensor, scales: torch.Tensor, minima: torch.Tensor) -> Groups:
    """`values`: uint8 [out, in], each below 16."""
    return Groups(values[:, 0::2] | (values[:, 1::2] << 4), scales.half(), minima.half())


def join(parts: list[Groups]) -> Groups:
    return Groups(
        torch.cat([part.nibbles for part in parts]),
        torch.cat([part.scales for part in parts]),
        torch.cat([part.minima for part in parts]),
    )


def split_bytes(values: torch.Tensor, scales: torch.Tensor) -> Groups:
    """Q8_0 as twice as many nibbles: for int8 [out, in] and `scales` [out, in / 32] it multiplies (x, x).

    w = scale * v = (16 scale) * (high - 8) + scale * low with v + 128 = 16 high + low.
    """
    shifted = (values.to(torch.int16) + 128).to(torch.uint8)
    both = torch.cat((shifted >> 4, shifted & 15), dim=1)
    return pack(both, torch.cat((16 * scales, scales), 1), torch.cat((-128 * scales, torch.zeros_like(scales)), 1))


class Int4Linear:
    def __init__(self, groups: Groups, *, with_wide: bool) -> None:
        """`with_wide`: keep the dequantised copy for batches above `SMALL_BATCH_ROWS`."""
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(groups.unpacked().int(), 1)
        scales = groups.scales.float()
        zeros = groups.minima.float() + NIBBLE_ZERO * scales
        self._scales_and_zeros = torch.stack((scales.t(), zeros.t()), dim=2).bfloat16().contiguous()
        self._multiply = torch.ops.aten._weight_int4pack_mm_for_cpu.default
        self._wide = groups.dequantized().to(WIDE_DTYPE) if with_wide else None

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self._wide is not None and len(x) > SMALL_BATCH_ROWS:
            return F.linear(x.to(WIDE_DTYPE), self._wide)
        y: torch.Tensor = self._multiply(x.bfloat16(), self._packed, GROUP_WEIGHTS, self._scales_and_zeros)
        return y


class DoubledLinear:
    """What `split_bytes` made."""

    def __init__(self, groups: Groups) -> None:
        self._inner = Int4Linear(groups, with_wide=False)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._inner(x.repeat(1, 2))


def quantize_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[out, in] float32 -> int8 [out, in] and float32 scales [out]."""
    scales = (weight.abs().amax(1) / WEIGHT_LEVELS).clamp_min_(MIN_SCALE)
    return (weight / scales[:, None]).round_().to(torch.int8), scales


class Int8Linear:
    def __init__(self, weight: torch.Tensor, scales: torch.Tensor) -> None:
        """`weight`: int8 [out, in]; `scales`: float32 [out]."""
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            raise Unavailable("weight_format int8 needs an x86-64 build of PyTorch; set weight_format: int4")
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        with warnings.catch_warnings():
            # PyTorch will drop quantised tensors some day (its issue 184982), and this is the only way to pack weights
            # for FBGEMM, which decodes twice as fast as oneDNN here. The version is pinned.
            warnings.simplefilter("ignore", UserWarning)
            quantized = torch._make_per_channel_quantized_tensor(weight, scales.double(), zeros, 0)
        torch.backends.quantized.engine = "fbgemm"
        self._packed = torch.ops.quantized.linear_prepack(quantized, None)
        self._multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        largest = x.abs().amax(1, True).clamp_min_(MIN_SCALE)
        y: torch.Tensor = self._multiply(x / largest, 1 / ACTIVATION_LEVELS, ACTIVATION_LEVELS + 1, self._packed)
        return y.mul_(largest)


class FloatLinear:
    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x.to(self._weight.dtype), self._weight)
