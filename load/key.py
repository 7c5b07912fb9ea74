"""The API key of the server under load, from a file: a command line can be read by everybody on the machine."""

from __future__ import annotations

from pathlib import Path

from load.errors import LoadError
from wire.config import ConfigError, read_key


def read_api_key(path: Path | None) -> str | None:
    """None for no file. Raises: LoadError."""
    try:
        return read_key(path) if path is not None else None
    except ConfigError as error:
        raise LoadError(str(error)) from None
