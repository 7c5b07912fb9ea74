"""`python -m stt --profile PROFILE`: the recognition service."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

logger = logging.getLogger("stt")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stt", description="Offhook's recognition service")
    parser.add_argument("--profile", type=Path, required=True, help="YAML profile; its section 'stt' is used")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    arguments = parser.parse_args()
    # Read once, when numpy is first imported, hence the late imports. On busy cores the mel spectrogram of 8 s took
    # 8 to 24 ms (medians) with two threads, 2 to 3 ms with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from stt.config import SttConfig
    from stt.service import build, load_models
    from wire import log, service
    from wire.config import ConfigError, read
    from wire.errors import WireError

    log.configure("stt", arguments.log_level)
    try:
        config = read(arguments.profile).parse(SttConfig, "stt")
        lifecycle = service.Lifecycle("stt")
        app = build(config, load_models(config), lifecycle)
        service.run(app, lifecycle, config.edge)
    except (ConfigError, WireError) as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
