"""Matrix multiplication in the weight formats that were measured (bench/llm_cpu.py).

`int8` multiplies 8-bit rows with 8-bit rows: weights with one scale per output, activations with one scale per token,
so that a token's result does not depend on what else is in the batch. `float32` is the reference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

import torch
import torch.nn.functional as F

from llm.config import WeightFormat
from wire.errors import Unavailable

WEIGHT_LEVELS = 127
# Activations are unsigned, offset by their zero point. Without VNNI, FBGEMM adds two products in 16 bits:
# 2 * 127 * 127 fits, 2 * 255 * 127 does not.
ACTIVATION_LEVELS = 127 if torch.cpu.get_capabilities().get("avx512_vnni", False) else 63
MIN_SCALE = 1e-12  # of a row of zeros

Linear: TypeAlias = Callable[[torch.Tensor], torch.Tensor]  # float32 [tokens, in] -> float32 [tokens, out]


def quantize_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[out, in] float32 -> int8 [out, in] and float32 scales [out]."""
    scales = (weight.abs().amax(1) / WEIGHT_LEVELS).clamp_min_(MIN_SCALE)
    return (weight / scales[:, None]).round_().to(torch.int8), scales


class Int8Linear:
    def __init__(self, weight: torch.Tensor, scales: torch.Tensor) -> None:
        """`weight`: int8 [out, in]; `scales`: float32 [out]."""
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            raise Unavailable("weight_format int8 needs an x86-64 build of PyTorch; set weight_format: float32")
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        with warnings.catch_warnings():
            # PyTorch will drop quantised tensors some day (its issue 184982), and this is the only way to pack weights
            # for FBGEMM, which decodes 1.5 times faster than oneDNN here. The version is pinned.
            warnings.simplefilter("ignore", UserWarning)
            quantized = torch._make_per_channel_quantized_tensor(weight, scales.double(), zeros, 0)
        torch.backends.quantized.engine = "fbgemm"
        self._packed = torch.ops.quantized.linear_prepack(quantized, None)
        self._multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default
        self._step = 1 / ACTIVATION_LEVELS
        self._zero = ACTIVATION_LEVELS + 1

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        largest = torch.linalg.vector_norm(x, torch.inf, 1, True).clamp_min_(MIN_SCALE)
        y: torch.Tensor = self._multiply(x / largest, self._step, self._zero, self._packed)
        return y.mul_(largest)


class FloatLinear:
    def __init__(self, weight: torch.Tensor) -> None:
        self._weight = weight

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x.to(self._weight.dtype), self._weight).float()


def make_linear(weight: torch.Tensor, weight_format: WeightFormat) -> Linear:
    match weight_format:
        case "int8":
            return Int8Linear(*quantize_rows(weight))
        case "float32":
            return FloatLinear(weight)
        case "bfloat16":
            return FloatLinear(weight.bfloat16())
