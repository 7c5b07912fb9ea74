"""Where the files that come with Offhook lie, and how its command is called here.

Imports nothing but the standard library, so that `--help` and `doctor` work where packages are missing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

PROFILES = Path(__file__).parent / "profiles"
DEFAULT_PROFILE = PROFILES / "cpu.yaml"
DEFAULT_CATALOGUE = Path(__file__).parent / "models.toml"


def offhook() -> str:
    """The command as the user can type it: by its name where that is found, else by its path, else as a module."""
    if shutil.which("offhook"):
        return "offhook"
    beside = Path(sys.executable).with_name("offhook")
    return str(beside) if beside.exists() else f"{sys.executable} -m deploy"
