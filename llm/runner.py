"""Turns a batch of chunks into tensors and back into logits. The only user of the model and its KV cache."""

from __future__ import annotations

import torch

from llm.blocks import num_blocks_for
from llm.model import KvCache, Llama, Span
from llm.scheduler import Chunk


class Runner:
    def __init__(self, model: Llama, num_blocks: int) -> None:
        self.kv = KvCache(model.shape, num_blocks)
        self._model = model

    def run(self, chunks: list[Chunk]) -> torch.Tensor:
        """Compute and store the KV of `chunks`; float32 logits [sampling chunks, vocab], in the order of `chunks`."""
        tokens: list[int] = []
        positions: list[int] = []
        spans: list[Span] = []
        rows: list[int] = []
        for chunk in chunks:
            sequence, start, stop = chunk.sequence, chunk.sequence.num_computed, chunk.stop
            begin = len(tokens)
            tokens += sequence.tokens[start:stop]
            positions += range(start, stop)
            blocks = sequence.blocks[: num_blocks_for(stop)]
            is_run = blocks == list(range(blocks[0], blocks[0] + len(blocks)))
            spans.append(Span(begin, len(tokens), stop, torch.tensor(blocks), blocks[0], is_run))
            if chunk.samples:
                rows.append(len(tokens) - 1)
        return self._model.forward(
            self.kv, torch.tensor(tokens), torch.tensor(positions), spans, torch.tensor(rows, dtype=torch.int64)
        )
