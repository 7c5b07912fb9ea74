"""`python -m router --profile PROFILE`: the LLM gateway."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from router.config import RouterConfig
from router.service import build
from wire import log, service
from wire.config import ConfigError, read
from wire.errors import WireError

logger = logging.getLogger("router")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m router", description="Offhook's LLM gateway")
    parser.add_argument("--profile", type=Path, required=True, help="YAML profile; its section 'router' is used")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    arguments = parser.parse_args()
    log.configure("router", arguments.log_level)
    try:
        config = read(arguments.profile).parse(RouterConfig, "router")
        lifecycle = service.Lifecycle("router")
        service.run(build(config, lifecycle), lifecycle, config.edge)
    except (ConfigError, WireError) as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
