"""From a pulled folder to a model and a tokenizer.

Reading 100,000 strings and dequantising take GGUF's reader five seconds, so the result is kept in the cache as derived
files, keyed by the source's size and modification time.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from llm.checkpoint import GgufFile, Shape
from llm.config import WeightFormat
from llm.linear import (
    DoubledLinear,
    FloatLinear,
    Groups,
    Int4Linear,
    Int8Linear,
    Linear,
    State,
    join,
    quantize_rows,
    split_bytes,
)
from llm.model import Embedding, Layer, Llama
from llm.tokenizer import Tokenizer, build_tokenizer
from wire.errors import Unavailable
from wire.weights import cache_dir, model_dir

logger = logging.getLogger(__name__)

FORMAT = "2"  # of the derived files
PIECES = {  # merged matrices and the GGUF tensors they are made of, in order
    "qkv": ("attn_q", "attn_k", "attn_v"),
    "output": ("attn_output",),
    "gate_up": ("ffn_gate", "ffn_up"),
    "down": ("ffn_down",),
}


@dataclass(frozen=True)
class Loaded:
    model: Llama
    tokenizer: Tokenizer


def load(weights: str, weight_format: WeightFormat) -> Loaded:
    """Raises: Unavailable when the weights are missing, unreadable or of an unknown kind."""
    source = model_dir(weights) / "model.gguf"
    try:
        stat = source.stat()
    except OSError as error:
        raise Unavailable(f"{source}: {error.strerror}") from None
    folder = cache_dir() / "derived" / "llm" / f"{weights}-{stat.st_size}-{stat.st_mtime_ns}-{FORMAT}"
    described, tensors = folder / "model.json", folder / f"{weight_format}.pt"
    if not (described.is_file() and tensors.is_file()):
        logger.info("preparing %s as %s; later starts are faster", source, weight_format)
        _derive(source, weight_format, described, tensors)
    description = json.loads(described.read_text())
    state = torch.load(tensors, weights_only=True)
    shape = Shape(**description["shape"])
    return Loaded(build_model(shape, state, weight_format), Tokenizer(**description["tokenizer"]))


def _derive(source: Path, weight_format: WeightFormat, described: Path, tensors: Path) -> None:
    file = GgufFile(source)
    shape, tokenizer = file.shape(), build_tokenizer(file.vocabulary())
    description = {"shape": dataclasses.asdict(shape), "tokenizer": tokenizer.description()}
    state = convert(file, weight_format)
    try:
        described.parent.mkdir(parents=True, exist_ok=True)
        _write(tensors, lambda path: torch.save(state, path))
        _write(described, lambda path: path.write_text(json.dumps(description)))
    except (OSError, RuntimeError) as error:  # PyTorch's word for a disk that is full
        raise Unavailable(f"{described.parent}: cannot write: {str(error).splitlines()[0]}") from None


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """All or nothing: under a temporary name, then renamed."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    os.close(handle)
    try:
        write(Path(name))
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def convert(file: GgufFile, weight_format: WeightFormat) -> State:
    """The file's tensors, merged, in `weight_format`, under our names."""
    num_layers = file.shape().num_layers
    state = {"norm": file.tensor("output_norm.weight")}
    if weight_format == "int4":
        state["embedding"], state["embedding.scales"] = file.bytes_of("token_embd.weight")
    else:
        _put(state, "embedding", file.tensor("token_embd.weight"), weight_format)
    for index in range(num_layers):
        for ours, parts in PIECES.items():
            names = [f"blk.{index}.{part}.weight" for part in parts]
            if weight_format == "int4":
                groups = join([file.groups(name) for name in names])
                state |= {f"{index}.{ours}.{name}": value for name, value in vars(groups).items()}
            else:
                _put(state, f"{index}.{ours}", torch.cat([file.tensor(name) for name in names]), weight_format)
        state[f"{index}.attention_norm"] = file.tensor(f"blk.{index}.attn_norm.weight")
        state[f"{index}.ffn_norm"] = file.tensor(f"blk.{index}.ffn_norm.weight")
    return state


def _put(state: State, name: str, matrix: torch.Tensor, weight_format: WeightFormat) -> None:
    match weight_format:
        case "int8":
            state[name], scales = quantize_rows(matrix)
            state[f"{name}.scales"] = scales[:, None]
        case "bfloat16":
            state[name] = matrix.bfloat16()
        case _:
            assert weight_format == "float32"
            state[name] = matrix


def build_model(shape: Shape, state: State, weight_format: WeightFormat) -> Llama:
    def linear(name: str) -> Linear:
        match weight_format:
            case "int4":
                groups = Groups(state[f"{name}.nibbles"], state[f"{name}.scales"], state[f"{name}.minima"])
                return Int4Linear(groups, with_wide=True)
            case "int8":
                return Int8Linear(state[name], state[f"{name}.scales"][:, 0])
            case _:
                return FloatLinear(state[name])

    embedding = Embedding(state["embedding"], state.get("embedding.scales"))
    if weight_format == "int4":
        assert embedding.scales is not None
        head: Linear = DoubledLinear(split_bytes(embedding.rows, embedding.scales.float()))
    else:
        head = linear("embedding")
    layers = [
        Layer(
            attention_norm=state[f"{i}.attention_norm"],
            qkv=linear(f"{i}.qkv"),
            output=linear(f"{i}.output"),
            ffn_norm=state[f"{i}.ffn_norm"],
            gate_up=linear(f"{i}.gate_up"),
            down=linear(f"{i}.down"),
        )
        for i in range(shape.num_layers)
    ]
    return Llama(shape, embedding, layers, state["norm"], head)
