"""Configuration of the recognition service: section `stt` of a profile."""

from __future__ import annotations

from dataclasses import dataclass

from wire.config import EdgeConfig

EVERY_OTHER = "*"  # in `languages`: every language that no other model names


@dataclass(frozen=True)
class ModelConfig:
    id: str
    languages: tuple[str, ...]  # ISO 639-1, or "*"
    num_instances: int = 2  # one thread each; partials and files never take the last idle one, so one means no partials

    def __post_init__(self) -> None:
        if not self.languages:
            raise ValueError(f"{self.id}: languages must name at least one, or '{EVERY_OTHER}'")
        if not 1 <= self.num_instances <= 64:
            raise ValueError(f"{self.id}: num_instances must be 1 to 64, got {self.num_instances}")


@dataclass(frozen=True)
class SttConfig:
    edge: EdgeConfig
    models: tuple[ModelConfig, ...]
    max_streams: int = 64  # open connections of /v1/listen; above it they are refused
    max_queued: int = 16  # waiting requests per model; 16 finals of 60 ms on two instances are half a second of waiting
    partial_interval_s: float = 0.5  # of new audio between two partials of a stream
    deadline_s: float = 5.0  # of a request that brings none

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models must name at least one")
        ids = [model.id for model in self.models]
        if len(set(ids)) < len(ids):
            raise ValueError("models: an id is given twice")
        languages = [language for model in self.models for language in model.languages]
        if doubled := {language for language in languages if languages.count(language) > 1}:
            raise ValueError(f"models: several claim language {', '.join(sorted(doubled))}")
        if self.max_streams < 1 or self.max_queued < 1:
            raise ValueError("max_streams and max_queued must be at least 1")
        if not 0.1 <= self.partial_interval_s <= 10:
            raise ValueError(f"partial_interval_s must be 0.1 to 10, got {self.partial_interval_s}")
        if not 0 < self.deadline_s <= 60:
            raise ValueError(f"deadline_s must be above 0 and at most 60, got {self.deadline_s}")
