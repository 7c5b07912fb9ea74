"""A GGUF file of the llama architecture: its shape, its tokenizer's data, its tensors.

GGUF stores q and k projections with their rows permuted so that a rotary pair lies side by side (ggml's "norm" rope);
`llm.model` rotates such pairs and so takes the tensors as they are.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from llm.linear import Groups, pack
from wire.errors import Unavailable


@dataclass(frozen=True)
class Shape:
    num_layers: int
    num_heads: int
    num_kv_heads: int
    hidden: int
    ffn: int
    vocab: int
    rope_base: float
    norm_eps: float
    context_tokens: int

    @property
    def head_size(self) -> int:
        return self.hidden // self.num_heads

    @property
    def kv_size(self) -> int:
        """Width of one token's keys (or values) in one layer."""
        return self.num_kv_heads * self.head_size


@dataclass(frozen=True)
class Vocabulary:
    """`kinds` are GGUF's token types: 1 normal, 3 control, 4 user defined."""

    pre: str
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    merges: tuple[str, ...]
    eos: int
    chat_template: str


class GgufFile:
    def __init__(self, path: Path) -> None:
        """Raises: Unavailable when it cannot be read, or is of another architecture."""
        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise Unavailable(f"{path}: cannot be read as GGUF: {error}") from None
        self.path = path
        self._tensors: Mapping[str, Any] = {tensor.name: tensor for tensor in self._reader.tensors}
        if (architecture := self._field("general.architecture")) != "llama":
            raise Unavailable(f"{path}: architecture '{architecture}' is not supported, 'llama' is")

    def shape(self) -> Shape:
        shape = Shape(
            num_layers=self._field("llama.block_count"),
            num_heads=self._field("llama.attention.head_count"),
            num_kv_heads=self._field("llama.attention.head_count_kv"),
            hidden=self._field("llama.embedding_length"),
            ffn=self._field("llama.feed_forward_length"),
            vocab=len(self._field("tokenizer.ggml.tokens")),
            rope_base=self._field("llama.rope.freq_base"),
            norm_eps=self._field("llama.attention.layer_norm_rms_epsilon"),
            context_tokens=self._field("llama.context_length"),
        )
        if "output.weight" in self._tensors:
            raise Unavailable(f"{self.path}: a separate output matrix is not supported")
        if self._field("llama.rope.dimension_count") != shape.head_size or "rope_freqs.weight" in self._tensors:
            raise Unavailable(f"{self.path}: this kind of rotary embedding is not supported")
        return shape

    def vocabulary(self) -> Vocabulary:
        if (kind := self._field("tokenizer.ggml.model")) != "gpt2":
            raise Unavailable(f"{self.path}: tokenizer '{kind}' is not supported, byte-level BPE ('gpt2') is")
        return Vocabulary(
            pre=self._field("tokenizer.ggml.pre"),
            tokens=tuple(self._field("tokenizer.ggml.tokens")),
            kinds=tuple(self._field("tokenizer.ggml.token_type")),
            merges=tuple(self._field("tokenizer.ggml.merges")),
            eos=self._field("tokenizer.ggml.eos_token_id"),
            chat_template=self._field("tokenizer.chat_template"),
        )

    def tensor(self, name: str) -> torch.Tensor:
        """Dequantised to float32. Raises: Unavailable when there is none of this name."""
        found = self._found(name)
        values = gguf.dequantize(found.data, found.tensor_type)
        return torch.from_numpy(np.array(values, dtype=np.float32))

    def groups(self, name: str) -> Groups:
        """Q4_1 as it is: a block is scale and minimum in float16, then 16 bytes whose low nibbles come first.

        Raises: Unavailable for a tensor of another type, or none.
        """
        scales, minima, blocks = self._blocks(name, gguf.GGMLQuantizationType.Q4_1, num_scales=2)
        low_first = torch.cat((blocks & 15, blocks >> 4), dim=2).flatten(1)
        return pack(low_first, scales, minima)

    def bytes_of(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Q8_0 as it is: int8 [out, in] and float16 scales [out, in / 32].

        Raises: Unavailable for a tensor of another type, or none.
        """
        scales, _, blocks = self._blocks(name, gguf.GGMLQuantizationType.Q8_0, num_scales=1)
        return blocks.view(torch.int8).flatten(1), scales

    def _blocks(self, name: str, kind: Any, num_scales: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """First and last float16 of every block [out, blocks], and its bytes [out, blocks, bytes]."""
        found = self._found(name)
        if found.tensor_type != kind:
            raise Unavailable(f"{self.path}: {name} is {found.tensor_type.name}; weight_format int4 needs {kind.name}")
        _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = np.array(found.data).reshape(len(found.data), -1, block_bytes)
        scales = torch.from_numpy(np.ascontiguousarray(blocks[:, :, : 2 * num_scales]).view(np.float16))
        quants = torch.from_numpy(np.ascontiguousarray(blocks[:, :, 2 * num_scales :]))
        return scales[:, :, 0], scales[:, :, -1], quants

    def _found(self, name: str) -> Any:
        if name not in self._tensors:
            raise Unavailable(f"{self.path}: no tensor '{name}'")
        return self._tensors[name]

    def _field(self, name: str) -> Any:
        field = self._reader.get_field(name)
        if field is None:
            raise Unavailable(f"{self.path}: no field '{name}'")
        return field.contents()
