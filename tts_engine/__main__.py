"""`python -m tts_engine --profile PROFILE`: the voice."""

from __future__ import annotations

import argparse
import sys

from fastapi import FastAPI

from wire import process
from wire.config import Document, EdgeConfig
from wire.service import Lifecycle


def build(_: argparse.Namespace, document: Document, lifecycle: Lifecycle) -> tuple[FastAPI, EdgeConfig]:
    """Raises: ConfigError, Unavailable."""
    from tts_engine import service
    from tts_engine.config import TtsConfig

    config = document.parse(TtsConfig, "tts_engine")
    return service.build(config, service.load(config), lifecycle), config.edge


if __name__ == "__main__":
    sys.exit(process.main("tts_engine", process.parser("tts_engine", "Offhook's voice"), build))
