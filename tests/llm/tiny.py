"""A random Llama of a few thousand weights, in float32, and a vocabulary for it: exact where the real model rounds."""

from __future__ import annotations

import torch

from llm.checkpoint import Shape, Vocabulary
from llm.config import WorkerConfig
from llm.linear import State
from llm.loading import Loaded, build_model
from llm.tokenizer import _byte_symbols, build_tokenizer
from wire.config import EdgeConfig

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("h e", "l l", "he ll", "hell o", "Ġ w")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def vocabulary() -> Vocabulary:
    tokens = (*CONTROL, *_byte_symbols().values(), *(merge.replace(" ", "") for merge in MERGES))
    kinds = (3,) * len(CONTROL) + (1,) * (len(tokens) - len(CONTROL))
    return Vocabulary("smollm", tokens, kinds, MERGES, eos=2, chat_template=TEMPLATE)


SHAPE = Shape(
    num_layers=2,
    num_heads=6,
    num_kv_heads=2,
    hidden=48,
    ffn=80,
    vocab=len(vocabulary().tokens),
    rope_base=10_000.0,
    norm_eps=1e-5,
    context_tokens=256,
)
CONFIG = WorkerConfig(
    EdgeConfig(port=0),
    id="tiny",
    weights="none",
    weight_format="float32",
    kv_tokens=512,
    context_tokens=256,
    max_running=3,
    max_waiting=3,
    prefill_chunk_tokens=32,
)


def state(seed: int = 0, shape: Shape = SHAPE) -> State:
    random = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=random) / columns**0.5

    values = {"norm": 1 + 0.1 * torch.randn(shape.hidden, generator=random)}
    values["embedding"] = 4 * matrix(shape.vocab, shape.hidden)
    for i in range(shape.num_layers):
        values[f"{i}.qkv"] = matrix(shape.hidden + 2 * shape.kv_size, shape.hidden)
        values[f"{i}.output"] = matrix(shape.hidden, shape.hidden)
        values[f"{i}.gate_up"] = matrix(2 * shape.ffn, shape.hidden)
        values[f"{i}.down"] = matrix(shape.hidden, shape.ffn)
        values[f"{i}.attention_norm"] = 1 + 0.1 * torch.randn(shape.hidden, generator=random)
        values[f"{i}.ffn_norm"] = 1 + 0.1 * torch.randn(shape.hidden, generator=random)
    return values


def loaded(seed: int = 0) -> Loaded:
    return Loaded(build_model(SHAPE, state(seed), "float32"), build_tokenizer(vocabulary()))
