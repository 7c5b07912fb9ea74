"""The Llama architecture over a paged KV cache, for a batch of tokens of several sequences.

    hidden[tokens] -> 30 x (RMSNorm -> q, k, v -> rope -> write KV, attend -> RMSNorm -> SwiGLU) -> logits of some rows

A batch is flat: `Span`s say which rows belong to which sequence, and where its KV lies. All state is an argument.
Source: Touvron et al. 2023 (LLaMA), 2.2; GQA: Ainslie et al. 2023; rope: Su et al. 2021, 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from llm.blocks import BLOCK_TOKENS
from llm.checkpoint import Shape
from llm.linear import Linear


class KvCache:
    """Keys and values, side by side, of every place of every block: [layers, places, 2 * kv_size] float32.

    Attention reads blocks with neighbouring numbers in place, and gathers others anew in every layer: nothing is copied
    when blocks are shared or a sequence starts.
    """

    def __init__(self, shape: Shape, num_blocks: int) -> None:
        places = num_blocks * BLOCK_TOKENS
        self._all = torch.empty(shape.num_layers, places, 2 * shape.kv_size)  # untouched pages take no memory
        self.layers = self._all.unbind(0)

    def copy_block(self, source: int, target: int) -> None:
        blocks = self._all.unflatten(1, (-1, BLOCK_TOKENS))  # type: ignore[no-untyped-call]
        blocks[:, target] = blocks[:, source]


@dataclass(frozen=True)
class Span:
    """Rows `start` to `stop` of a batch: the last tokens of a sequence that is `context` tokens long with them."""

    start: int
    stop: int
    context: int
    blocks: torch.Tensor  # int64, of the whole context
    first_block: int
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
        # `_normed` divides by a length, not by a root mean square: the rest of the factor goes into the weights.
        self._norm = norm * shape.hidden**0.5
        self._layers = [
            replace(
                layer,
                attention_norm=layer.attention_norm * shape.hidden**0.5,
                ffn_norm=layer.ffn_norm * shape.hidden**0.5,
            )
            for layer in layers
        ]
        self._norm_floor = torch.tensor((shape.hidden * shape.norm_eps) ** 0.5)
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
        for layer, cache in zip(self._layers, kv.layers, strict=True):
            qkv = layer.qkv(self._normed(hidden, layer.attention_norm)).float()
            self._rotate(qkv, rotations)
            cache.index_copy_(0, slots, qkv[:, self.shape.hidden :])
            hidden += layer.output(self._attend(qkv, cache, spans, masks))
            gate, up = layer.gate_up(self._normed(hidden, layer.ffn_norm)).chunk(2, dim=1)
            hidden += layer.down(F.silu(gate).mul_(up))
        return self._head(self._normed(hidden[rows], self._norm)).float()

    def _normed(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm in four operations; `F.rms_norm` is ten on a CPU, and a step of one token feels each."""
        lengths = torch.linalg.vector_norm(hidden, 2, 1, True)
        return (hidden * weight).div_(torch.hypot(lengths, self._norm_floor))

    def _rotate(self, qkv: torch.Tensor, rotations: torch.Tensor) -> None:
        """Rotary embedding of queries and keys, in place."""
        num_rotated = self.shape.num_heads + self.shape.num_kv_heads
        pairs = qkv[:, : num_rotated * self.shape.head_size].view(len(qkv), num_rotated, -1, 2)
        torch.view_as_complex(pairs).mul_(rotations)

    def _attend(
        self, qkv: torch.Tensor, cache: torch.Tensor, spans: list[Span], masks: list[torch.Tensor | None]
    ) -> torch.Tensor:
        """[tokens, hidden]"""
        attended = [
            _attend_span(qkv[span.start : span.stop, : self.shape.hidden], cache, span, mask, self.shape)
            for span, mask in zip(spans, masks, strict=True)
        ]
        return attended[0] if len(attended) == 1 else torch.cat(attended)


def _attend_span(
    q: torch.Tensor, cache: torch.Tensor, span: Span, mask: torch.Tensor | None, shape: Shape
) -> torch.Tensor:
    """`q`: [tokens, hidden]. The heads that share keys become rows of one attention: no keys are repeated."""
    if span.is_run:
        first = span.first_block * BLOCK_TOKENS
        found = cache[first : first + span.context]
    else:
        found = cache.view(-1, BLOCK_TOKENS, cache.shape[1])[span.blocks].flatten(0, 1)[: span.context]
    kv = found.view(1, span.context, 2, shape.num_kv_heads, shape.head_size).permute(2, 0, 3, 1, 4)
    group = shape.num_heads // shape.num_kv_heads
    count = span.stop - span.start
    if count > 1:
        q = q.view(count, shape.num_heads, shape.head_size).transpose(0, 1)
    q = q.reshape(1, shape.num_kv_heads, group * count, shape.head_size)
    out = F.scaled_dot_product_attention(q, kv[0], kv[1], attn_mask=mask)
    if count > 1:
        out = out.view(shape.num_heads, count, shape.head_size).transpose(0, 1)
    return out.reshape(count, shape.hidden)


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
