"""Section `router` of the profile. Times are seconds; docs/profile.md is the reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wire.config import EdgeConfig
from wire.urls import require_http


@dataclass(frozen=True)
class WorkerConfig:
    """Any server that speaks OpenAI's API."""

    url: str
    model: str | None = None  # the model's name at this worker, when it differs
    api_key_file: Path | None = None

    def __post_init__(self) -> None:
        require_http("url", self.url)


@dataclass(frozen=True)
class ModelConfig:
    id: str
    workers: tuple[WorkerConfig, ...]

    def __post_init__(self) -> None:
        if not self.workers:
            raise ValueError(f"model '{self.id}' has no workers")


@dataclass(frozen=True)
class RouterConfig:
    edge: EdgeConfig
    models: tuple[ModelConfig, ...]
    connect_timeout_s: float = 1.0
    first_byte_timeout_s: float = 30.0  # a request's own deadline, when it has one, is shorter
    idle_timeout_s: float = 30.0  # between two chunks of a stream
    health_interval_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models must not be empty")
        ids = [model.id for model in self.models]
        if len(set(ids)) != len(ids):
            raise ValueError("a model is listed twice")
        for name in ("connect_timeout_s", "first_byte_timeout_s", "idle_timeout_s", "health_interval_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0")
