"""`python -m llm --profile PROFILE [--worker N]`: an embedded LLM worker."""

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
    """`worker` is a number, from 1 in the order of the profile, or the id of a worker whose id no other has.

    Raises: ConfigError.
    """
    known = ", ".join(f"{i} ({each.id})" for i, each in enumerate(config.workers, 1))
    if worker is None:
        if len(config.workers) > 1:
            raise ConfigError(f"the profile has several workers: choose by --worker one of {known}")
        return config.workers[0]
    if worker.isdecimal():
        found = config.workers[max(0, int(worker) - 1) : int(worker)]
    else:
        found = tuple(each for each in config.workers if each.id == worker)
    if len(found) != 1:
        several = "; choose by number" if found else ""
        raise ConfigError(f"--worker {worker}: that is {len(found)} workers, not one{several}; known: {known}")
    return found[0]


if __name__ == "__main__":
    flags = process.parser("llm", "Offhook's embedded LLM worker")
    flags.add_argument(
        "--worker", metavar="N", help="the worker's number in the profile, from 1, or its id (default: the only one)"
    )
    sys.exit(process.main("llm", flags, build))
