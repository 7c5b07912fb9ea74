"""`python -m router --profile PROFILE`: the LLM gateway."""

from __future__ import annotations

import argparse
import sys

from fastapi import FastAPI

from wire import process
from wire.config import Document, EdgeConfig
from wire.service import Lifecycle


def build(_: argparse.Namespace, document: Document, lifecycle: Lifecycle) -> tuple[FastAPI, EdgeConfig]:
    """Raises: ConfigError."""
    from router import service
    from router.config import RouterConfig

    config = document.parse(RouterConfig, "router")
    return service.build(config, lifecycle), config.edge


if __name__ == "__main__":
    sys.exit(process.main("router", process.parser("router", "Offhook's LLM gateway"), build))
