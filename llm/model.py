"""The Llama architecture over a paged KV cache, for a batch of tokens of several sequences.

    hidden[tokens] -> 30 x (RMSNorm -> q, k, v -> rope -> write KV, attend -> RMSNorm -> SwiGLU) -> logits of some rows

A batch is flat: `Span`s say which rows belong to which sequence, and where its KV lies. All state is an argument.
Source: Touvron et al. 2023 (LLaMA), 2.2; GQA: Ainslie et al. 2023; rope: Su et al. 2021, 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from llm.blocks import BLOCK_TOKENS
from llm.checkpoint import Shape
from llm.linear import Linear


class KvCache:
    """Keys and values of all blocks: each [layers, blocks, BLOCK_TOKENS, kv_size] float32.

    Attention reads blocks with neighbouring numbers in place, and gathers others anew in every layer: nothing is copied
    when blocks are shared or a sequence starts.
    """

    def __init__(self, shape: Shape, num_blocks: int) -> None:
        size = (shape.num_layers, num_blocks, BLOCK_TOKENS, shape.kv_size)
        self.keys = torch.empty(size)  # untouched pages take no memory
        self.values = torch.empty(size)

    def copy_block(self, source: int, target: int) -> None:
        self.keys[:, target] = self.keys[:, source]
        self.values[:, target] = self.values[:, source]


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` of a batch: the last tokens of a sequence that is `context` tokens long with them."""

    start: int
    stop: int
    context: int
    blocks: torch.Tensor  # int64, of the whole context
    is_run: bool  # each block's number is one above the one before


@dataclass(frozen=True)
class Embedding:
    """`rows` [vocab, hidden], float, or int8 with `scales` [vocab, hidden / n]: one for n values."""

    rows: torch.Tensor
    scales: torch.Tensor | None = None

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        rows = self.rows[tokens].float()
        if self.scales is None:
            return rows
        scales = self.scales[tokens].float()
        return (rows.view(*scales.shape, -1) * scales.unsqueeze(2)).flatten(1)


@dataclass(frozen=True)
class Layer:
    attention_norm: torch.Tensor
    qkv: Linear
    output: Linear
    ffn_norm: torch.Tensor
    gate_up: Linear
    down: Linear


class Llama:
    def __init__(
        self,
        shape: Shape,
        embedding: Embedding,
        layers: list[Layer],
        norm: torch.Tensor,
        head: Linear,
    ) -> None:
        self.shape = shape
        self._embedding = embedding
        self._layers = layers
        self._norm = norm
        self._norm_floor = torch.tensor((shape.hidden * shape.norm_eps) ** 0.5)
        self._norm_scale = shape.hidden**0.5
        self._head = head
        half = shape.head_size // 2
        frequencies = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(shape.context_tokens, dtype=torch.float64)[:, None] * frequencies
        self._rotations = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)[:, None]

    def forward(
        self, kv: KvCache, tokens: torch.Tensor, positions: torch.Tensor, spans: list[Span], rows: torch.Tensor
    ) -> torch.Tensor:
        """Compute and store the KV of `tokens` [tokens] at `positions`; float32 logits [rows, vocab] of `rows`."""
        slots = torch.cat([_slots(span) for span in spans])
        masks = [_mask(span, self.shape.num_heads // self.shape.num_kv_heads) for span in spans]
        rotations = self._rotations[positions]
        hidden = self._embedding(tokens)
        for index, layer in enumerate(self._layers):
            keys, values = kv.keys[index], kv.values[index]
            attended = self._attend(layer, hidden, rotations, keys, values, slots, spans, masks)
            hidden += layer.output(attended)
            gate, up = layer.gate_up(self._normed(hidden, layer.ffn_norm)).chunk(2, dim=1)
            hidden += layer.down(F.silu(gate).mul_(up))
        return self._head(self._normed(hidden[rows], self._norm)).float()

    def _normed(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm in four operations; `F.rms_norm` is ten on a CPU, and a step of one token feels each."""
        lengths = torch.linalg.vector_norm(hidden, 2, 1, True)
        return (hidden * weight).div_(torch.hypot(lengths, self._norm_floor)).mul_(self._norm_scale)

    def _attend(
        self,
        layer: Layer,
        hidden: torch.Tensor,
        rotations: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        slots: torch.Tensor,
        spans: list[Span],
        masks: list[torch.Tensor | None],
    ) -> torch.Tensor:
        shape = self.shape
        qkv = layer.qkv(self._normed(hidden, layer.attention_norm)).float()
        num_rotated = shape.num_heads + shape.num_kv_heads
        qk = qkv[:, : num_rotated * shape.head_size].view(len(qkv), num_rotated, -1, 2)
        qk = torch.view_as_real(torch.view_as_complex(qk) * rotations).flatten(2)
        keys.view(-1, shape.kv_size).index_copy_(0, slots, qk[:, shape.num_heads :].flatten(1))
        values.view(-1, shape.kv_size).index_copy_(0, slots, qkv[:, -shape.kv_size :])
        attended = [
            _attend_span(qk[span.start : span.stop, : shape.num_heads], keys, values, span, mask, shape)
            for span, mask in zip(spans, masks, strict=True)
        ]
        return attended[0] if len(attended) == 1 else torch.cat(attended)


def _attend_span(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, span: Span, mask: torch.Tensor | None, shape: Shape
) -> torch.Tensor:
    """`q`: [tokens, heads, head_size]. The heads that share keys become rows of one attention: no keys are repeated."""
    k = _gather(keys, span, shape)
    v = _gather(values, span, shape)
    count = span.stop - span.start
    group = shape.num_heads // shape.num_kv_heads
    q = (
        q.view(count, shape.num_kv_heads, group, shape.head_size)
        .permute(1, 2, 0, 3)
        .reshape(1, shape.num_kv_heads, group * count, shape.head_size)
    )
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.view(shape.num_heads, count, shape.head_size).transpose(0, 1).reshape(count, shape.hidden)


def _gather(cache: torch.Tensor, span: Span, shape: Shape) -> torch.Tensor:
    """[1, kv_heads, context, head_size]"""
    if span.is_run:
        first = int(span.blocks[0])
        found = cache[first : first + len(span.blocks)]
    else:
        found = cache.index_select(0, span.blocks)
    flat = found.view(-1, shape.num_kv_heads, shape.head_size)[: span.context]
    return flat.transpose(0, 1).unsqueeze(0)


def _slots(span: Span) -> torch.Tensor:
    """Where in the cache the rows of `span` go."""
    positions = torch.arange(span.context - (span.stop - span.start), span.context)
    return span.blocks[positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS


def _mask(span: Span, group: int) -> torch.Tensor | None:
    """Causal, repeated for the heads of a group; None for a single token, which sees everything."""
    count = span.stop - span.start
    if count == 1:
        return None
    seen = torch.ones(count, span.context, dtype=torch.bool).tril_(span.context - count)
    return torch.zeros(count, span.context).masked_fill_(~seen, -torch.inf).repeat(group, 1)
