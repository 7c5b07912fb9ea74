"""`python -m voice --profile PROFILE`: the call server."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from voice.call import Shared
from voice.clients.llm import LlmClient
from voice.config import VoiceConfig
from voice.media.turn_model import SmartTurn
from voice.media.vad import Silero
from voice.server import build
from wire import log, service
from wire.config import ConfigError, read, read_key
from wire.errors import WireError
from wire.weights import model_dir

logger = logging.getLogger("voice")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m voice", description="Offhook's call server")
    parser.add_argument("--profile", type=Path, required=True, help="YAML profile; its section 'voice' is used")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    arguments = parser.parse_args()
    log.configure("voice", arguments.log_level)
    try:
        config = read(arguments.profile).parse(VoiceConfig, "voice")
        lifecycle = service.Lifecycle("voice")
        app = build(load(config, lifecycle), lifecycle)
        service.run(app, lifecycle, config.edge)
    except (ConfigError, WireError) as error:
        logger.error("%s", error)
        return 1
    return 0


def load(config: VoiceConfig, lifecycle: service.Lifecycle) -> Shared:
    """Raises: Unavailable, ConfigError."""
    key = read_key(config.service_key_file) if config.service_key_file is not None else None
    return Shared(
        config=config,
        vad=Silero(model_dir(config.vad_model)),
        turn_model=SmartTurn(model_dir(config.turn_model)),
        llm=LlmClient(
            config.llm_url,
            config.llm_model,
            key=key,
            temperature=config.agent.temperature,
            max_tokens=config.agent.max_reply_tokens,
            prefill_tokens=config.prefill_tokens,
        ),
        service_key=key,
        is_draining=lambda: lifecycle.draining,
    )


if __name__ == "__main__":
    sys.exit(main())
