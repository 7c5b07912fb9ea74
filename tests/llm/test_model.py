"""The model against an independent, plain Llama: one sequence, no cache, one head at a time."""

from __future__ import annotations

import pytest
import torch

from llm.blocks import num_blocks_for
from llm.linear import State
from llm.loading import build_model
from llm.model import KvCache, Llama, Span
from tests.llm import tiny

SHAPE = tiny.SHAPE
TOLERANCE = 1e-4  # float32, sums in another order; logits are about 10


def reference(state: State, tokens: list[int]) -> torch.Tensor:
    """Logits of every position."""

    def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + SHAPE.norm_eps)

    def rotated(x: torch.Tensor) -> torch.Tensor:
        """Pairs (0, 1), (2, 3), ... turned by position times a frequency each."""
        out = x.clone()
        for position in range(len(x)):
            for pair in range(SHAPE.head_size // 2):
                angle = torch.tensor(position * SHAPE.rope_base ** (-2 * pair / SHAPE.head_size))
                a, b = x[position, 2 * pair], x[position, 2 * pair + 1]
                out[position, 2 * pair] = a * torch.cos(angle) - b * torch.sin(angle)
                out[position, 2 * pair + 1] = a * torch.sin(angle) + b * torch.cos(angle)
        return out

    h, size = state["embedding"][tokens], SHAPE.head_size
    for i in range(SHAPE.num_layers):
        qkv = normed(h, state[f"{i}.attention_norm"]) @ state[f"{i}.qkv"].T
        q, k, v = qkv.split([SHAPE.hidden, SHAPE.kv_size, SHAPE.kv_size], dim=1)
        heads = []
        for head in range(SHAPE.num_heads):
            shared = head // (SHAPE.num_heads // SHAPE.num_kv_heads)
            own_q = rotated(q[:, head * size : (head + 1) * size])
            own_k = rotated(k[:, shared * size : (shared + 1) * size])
            scores = own_q @ own_k.T / size**0.5
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
            heads.append(scores.softmax(-1) @ v[:, shared * size : (shared + 1) * size])
        h = h + torch.cat(heads, 1) @ state[f"{i}.output"].T
        gate, up = (normed(h, state[f"{i}.ffn_norm"]) @ state[f"{i}.gate_up"].T).chunk(2, dim=1)
        h = h + (gate / (1 + torch.exp(-gate)) * up) @ state[f"{i}.down"].T
    return normed(h, state["norm"]) @ state["embedding"].T


def span(start: int, count: int, context: int, blocks: list[int]) -> Span:
    needed = blocks[: num_blocks_for(context)]
    is_run = needed == list(range(needed[0], needed[0] + len(needed)))
    return Span(start, start + count, context, torch.tensor(needed), needed[0], is_run)


def logits(model: Llama, kv: KvCache, parts: list[tuple[list[int], int, list[int]]]) -> torch.Tensor:
    """All rows of one batch; a part is (new tokens, tokens before them, blocks)."""
    tokens, positions, spans = [], [], []
    for new, before, blocks in parts:
        spans.append(span(len(tokens), len(new), before + len(new), blocks))
        tokens += new
        positions += range(before, before + len(new))
    return model.forward(kv, torch.tensor(tokens), torch.tensor(positions), spans, torch.arange(len(tokens)))


@pytest.fixture
def state() -> State:
    return tiny.state()


@pytest.fixture
def model(state: State) -> Llama:
    return build_model(SHAPE, state, "float32")


TOKENS = [int(t) for t in torch.randint(0, SHAPE.vocab, (37,), generator=torch.Generator().manual_seed(1))]


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 37])
def test_a_whole_prompt_equals_the_plain_model(model: Llama, state: State, length: int):
    got = logits(model, KvCache(SHAPE, 4), [(TOKENS[:length], 0, [0, 1, 2])])

    torch.testing.assert_close(got, reference(state, TOKENS[:length]), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("blocks", [[0, 1, 2], [1, 2, 3], [3, 0, 2]], ids=["run", "later run", "scattered"])
@pytest.mark.parametrize("cuts", [[5, 37], [16, 32, 37], [1, 2, 3, 36, 37]])
def test_chunks_and_single_tokens_equal_the_whole(model: Llama, state: State, cuts: list[int], blocks: list[int]):
    kv, parts, before = KvCache(SHAPE, 4), [], 0
    for cut in cuts:
        parts.append(logits(model, kv, [(TOKENS[before:cut], before, blocks)]))
        before = cut

    torch.testing.assert_close(torch.cat(parts), reference(state, TOKENS), atol=TOLERANCE, rtol=0)


def test_sequences_of_a_batch_do_not_see_each_other(model: Llama, state: State):
    kv = KvCache(SHAPE, 8)
    first, second, third = TOKENS[:20], TOKENS[5:9], TOKENS[::-1]
    logits(model, kv, [(first[:19], 0, [0, 5])])
    got = logits(model, kv, [(first[19:], 19, [0, 5]), (second, 0, [7]), (third, 0, [1, 2, 3])])

    wanted = [reference(state, first)[-1:], reference(state, second), reference(state, third)]
    torch.testing.assert_close(got, torch.cat(wanted), atol=TOLERANCE, rtol=0)


def test_a_copied_block_serves_as_the_original(model: Llama, state: State):
    kv = KvCache(SHAPE, 4)
    logits(model, kv, [(TOKENS[:20], 0, [0, 1])])
    kv.copy_block(1, 3)
    logits(model, kv, [([9, 9], 18, [0, 1])])  # overwrites the original's second half
    got = logits(model, kv, [(TOKENS[20:25], 20, [0, 3])])

    torch.testing.assert_close(got, reference(state, TOKENS[:25])[20:], atol=TOLERANCE, rtol=0)
