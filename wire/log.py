"""Logs to stderr, one line a record; who it is about is bound once by `about`."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TypeAlias

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


def configure(service: str, level: LogLevel = "info") -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=level.upper(),
        format=f"%(asctime)s.%(msecs)03d {service} %(levelname)s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
        force=True,
    )
    for chatty in ("uvicorn.error", "uvicorn.access", "websockets", "asyncio", "aioice", "aiortc"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLogger().level))


class _About(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: str, kwargs: MutableMapping[str, Any]) -> tuple[str, MutableMapping[str, Any]]:
        assert self.extra is not None
        return f"{self.extra['about']} {msg}", kwargs


def about(logger: logging.Logger, subject: str) -> logging.LoggerAdapter[logging.Logger]:
    """A logger whose every line starts with `subject`, such as `call 3f2a`."""
    return _About(logger, {"about": subject.replace("%", "%%")})
