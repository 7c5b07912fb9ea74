"""`python -m llm --profile PROFILE [--worker ID]`: an embedded LLM worker."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from llm.config import LlmConfig, WorkerConfig
from wire import log, service
from wire.config import ConfigError, read
from wire.errors import WireError

logger = logging.getLogger("llm")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m llm", description="Offhook's embedded LLM worker")
    parser.add_argument("--profile", type=Path, required=True, help="YAML profile; its section 'llm' is used")
    parser.add_argument("--worker", help="id of the worker; may be left out when the profile has one")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    arguments = parser.parse_args()
    log.configure("llm", arguments.log_level)
    try:
        config = choose(read(arguments.profile).parse(LlmConfig, "llm"), arguments.worker)
        # Late: importing torch takes a second, which a mistake in the profile should not.
        from llm.loading import load
        from llm.service import build

        lifecycle = service.Lifecycle("llm")
        app = build(config, load(config.weights, config.weight_format), lifecycle)
        service.run(app, lifecycle, config.edge)
    except (ConfigError, WireError) as error:
        logger.error("%s", error)
        return 1
    return 0


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
    sys.exit(main())
