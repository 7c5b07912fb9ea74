"""`python -m voice --profile PROFILE`: the call server."""

from __future__ import annotations

import argparse
import os
import sys

from wire import process, service
from wire.config import Document
from wire.service import Lifecycle


def serve(arguments: argparse.Namespace, document: Document) -> None:
    """Raises: ConfigError, Unavailable."""
    from voice.config import VoiceConfig

    config = document.parse(VoiceConfig, "voice")
    if config.num_processes > 1:
        from voice import front

        front.run(config, arguments.log_level, os.environ)
        return
    from voice import server

    lifecycle = Lifecycle("voice")
    service.run(server.build(server.load(config, lifecycle), lifecycle), lifecycle, config.edge)


if __name__ == "__main__":
    sys.exit(process.run("voice", process.parser("voice", "Offhook's call server"), serve))
