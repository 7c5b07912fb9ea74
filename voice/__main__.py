"""`python -m voice --profile PROFILE`: the call server."""

from __future__ import annotations

import argparse
import sys

from fastapi import FastAPI

from wire import process
from wire.config import Document, EdgeConfig
from wire.service import Lifecycle


def build(_: argparse.Namespace, document: Document, lifecycle: Lifecycle) -> tuple[FastAPI, EdgeConfig]:
    """Raises: ConfigError, Unavailable."""
    from voice import server
    from voice.config import VoiceConfig

    config = document.parse(VoiceConfig, "voice")
    return server.build(server.load(config, lifecycle), lifecycle), config.edge


if __name__ == "__main__":
    sys.exit(process.main("voice", process.parser("voice", "Offhook's call server"), build))
