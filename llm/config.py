"""Configuration of the embedded LLM worker: section `llm` of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from llm.blocks import BLOCK_TOKENS
from wire.config import EdgeConfig

WeightFormat: TypeAlias = Literal["int4", "int8", "float32", "bfloat16"]  # measured side by side by bench/llm_cpu.py


@dataclass(frozen=True)
class WorkerConfig:
    edge: EdgeConfig
    id: str  # the model's name on the wire
    weights: str  # catalogue id of a folder with model.gguf
    weight_format: WeightFormat = "int4"
    num_threads: int = 1  # cores are shared with recognition and synthesis
    kv_tokens: int = 8192  # 46 KB each for SmolLM2-135M; memory is taken as it is first used
    context_tokens: int = 2048  # prompt and answer of one request
    max_running: int = 4
    max_waiting: int = 16  # above it requests are refused with 429
    prefill_chunk_tokens: int = 64  # of one engine step: running answers wait that long for their next token
    default_max_tokens: int = 512  # of a request that names none

    def __post_init__(self) -> None:
        for name in ("num_threads", "context_tokens", "max_running", "max_waiting", "default_max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.prefill_chunk_tokens < BLOCK_TOKENS:
            raise ValueError(f"prefill_chunk_tokens must be at least {BLOCK_TOKENS}, got {self.prefill_chunk_tokens}")
        if self.kv_tokens < self.context_tokens or self.kv_tokens % BLOCK_TOKENS:
            raise ValueError(
                f"kv_tokens must be a multiple of {BLOCK_TOKENS} and at least context_tokens, got {self.kv_tokens}"
            )


@dataclass(frozen=True)
class LlmConfig:
    workers: tuple[WorkerConfig, ...]

    def __post_init__(self) -> None:
        if not self.workers:
            raise ValueError("workers must name at least one")
        ports = [worker.edge.port for worker in self.workers if worker.edge.port]
        if len(set(ports)) < len(ports):
            raise ValueError("workers: a port is given twice")
