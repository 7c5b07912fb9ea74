"""`python -m stt --profile PROFILE`: the recognition service."""

from __future__ import annotations

import argparse
import sys

from fastapi import FastAPI

from wire import process
from wire.config import Document, EdgeConfig
from wire.service import Lifecycle


def build(_: argparse.Namespace, document: Document, lifecycle: Lifecycle) -> tuple[FastAPI, EdgeConfig]:
    """Raises: ConfigError, Unavailable."""
    from stt import service
    from stt.config import SttConfig

    config = document.parse(SttConfig, "stt")
    return service.build(config, service.load_models(config), lifecycle), config.edge


if __name__ == "__main__":
    sys.exit(process.main("stt", process.parser("stt", "Offhook's recognition service"), build))
