"""`python -m tts_engine --profile PROFILE`: the voice."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from tts_engine.config import TtsConfig
from tts_engine.engine import Engine
from tts_engine.service import build
from tts_engine.speaking import Speaker
from tts_engine.text.lexicon import read_lexicon
from tts_engine.vits.voice import VitsVoice
from wire import log, service
from wire.config import ConfigError, read
from wire.errors import WireError
from wire.weights import cache_dir, model_dir

logger = logging.getLogger("tts_engine")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tts_engine", description="Offhook's voice")
    parser.add_argument("--profile", type=Path, required=True, help="YAML profile; its section 'tts_engine' is used")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    arguments = parser.parse_args()
    log.configure("tts_engine", arguments.log_level)
    try:
        config = read(arguments.profile).parse(TtsConfig, "tts_engine")
        lifecycle = service.Lifecycle("tts_engine")
        app = build(config, load(config), lifecycle)
        service.run(app, lifecycle, config.edge)
    except (ConfigError, WireError) as error:
        logger.error("%s", error)
        return 1
    return 0


def load(config: TtsConfig) -> Engine:
    """Raises: Unavailable."""
    lexicon = read_lexicon(model_dir(config.lexicon))
    voices = {}
    for model in {voice.model for voice in config.voices}:
        folder = model_dir(model)
        voices[model] = VitsVoice(folder / "model.onnx", folder / "config.json", cache_dir() / "derived")
    speakers = {voice.id: Speaker(voices[voice.model], lexicon) for voice in config.voices}
    return Engine(speakers, config.max_waiting)


if __name__ == "__main__":
    sys.exit(main())
