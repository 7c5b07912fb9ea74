"""`python -m llm --profile PROFILE [--worker ID]`: an embedded LLM worker."""

from __future__ import annotations

import argparse
import sys

from fastapi import FastAPI

from llm.config import LlmConfig, WorkerConfig
from wire import process
from wire.config import ConfigError, Document, EdgeConfig
from wire.service import Lifecycle


def build(arguments: argparse.Namespace, document: Document, lifecycle: Lifecycle) -> tuple[FastAPI, EdgeConfig]:
    """Raises: ConfigError, Unavailable."""
    config = choose(document.parse(LlmConfig, "llm"), arguments.worker)
    from llm import service
    from llm.loading import load

    return service.build(config, load(config.weights, config.weight_format), lifecycle), config.edge


def choose(config: LlmConfig, worker: str | None) -> WorkerConfig:
    """Raises: ConfigError."""
    known = ", ".join(each.id for each in config.workers)
    if worker is None:
        if len(config.workers) > 1:
            raise ConfigError(f"the profile has several workers: choose one of {known} by --worker")
        return config.workers[0]
    found = [each for each in config.workers if each.id == worker]
    if len(found) != 1:
        raise ConfigError(f"--worker {worker}: {len(found)} workers have that id; known: {known}")
    return found[0]


if __name__ == "__main__":
    flags = process.parser("llm", "Offhook's embedded LLM worker")
    flags.add_argument("--worker", help="id of the worker; may be left out when the profile has one")
    sys.exit(process.main("llm", flags, build))
