"""What is installed here under the name `offhook`: its version and what it depends on.

From the installed metadata, or, where the source tree is run without being installed, from its pyproject.toml. Imports
nothing but the standard library, so that it works where packages are missing.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

NAME = "offhook"
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


@dataclass(frozen=True)
class Distribution:
    version: str
    requirements: tuple[str, ...]  # PEP 508, without those of extras
    is_installed: bool


def read_distribution() -> Distribution | None:
    """None when there is neither metadata nor a readable pyproject.toml."""
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return _from_source()
    requirements = tuple(text for text in found.requires or () if "extra ==" not in text)
    return Distribution(found.version, requirements, is_installed=True)


def _from_source() -> Distribution | None:
    try:
        project = tomllib.loads(PYPROJECT.read_text())["project"]
        return Distribution(project["version"], tuple(project["dependencies"]), is_installed=False)
    except (OSError, ValueError, KeyError):
        return None
