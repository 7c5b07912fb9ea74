"""Where model weights lie: `<cache>/models/<id>/`, filled and verified by `offhook models pull`.

Processes only read here; the catalogue and all fetching live in `deploy`.
"""

from __future__ import annotations

import os
from pathlib import Path

from wire.errors import Unavailable

COMPLETE_MARK = ".complete"  # written last: a folder without it is a fetch that was cut off


def cache_dir() -> Path:
    """`$OFFHOOK_CACHE`, else `$XDG_CACHE_HOME/offhook`, else `~/.cache/offhook`."""
    if chosen := os.environ.get("OFFHOOK_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "offhook"


def model_dir(model: str) -> Path:
    """The folder of a pulled model.

    Raises: Unavailable when it was not pulled, or only half.
    """
    folder = cache_dir() / "models" / model
    if not (folder / COMPLETE_MARK).is_file():
        raise Unavailable(f"model '{model}' is not in {folder}: run `offhook models pull {model}`")
    return folder
