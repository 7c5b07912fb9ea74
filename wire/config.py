"""The profile: one strict YAML file, a section per package, parsed into that package's frozen dataclass.

Only `__main__` modules and `deploy` call this. Errors name file, line and dotted path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from wire.strict import Invalid, parse

T = TypeVar("T")


class ConfigError(Exception):
    """One line that says file, line, path and problem."""


@dataclass(frozen=True)
class EdgeConfig:
    """How a process meets the network."""

    port: int
    host: str = "127.0.0.1"
    api_key_file: Path | None = None  # demanded when host is not loopback
    drain_timeout_s: float = 30.0  # SIGTERM: how long running calls or requests may take to finish

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be 0 to 65535, got {self.port}")
        if self.drain_timeout_s < 0:
            raise ValueError("drain_timeout_s must not be negative")
        if not is_loopback(self.host) and self.api_key_file is None:
            raise ValueError(f"binding to {self.host} opens the service to the network: set api_key_file")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(path: Path) -> str:
    """The API key in `path`.

    Raises: ConfigError as `read_secret`, and for a key that is too short to be one.
    """
    key = read_secret(path, "API key")
    if len(key) < 16:
        raise ConfigError(f"{path}: an API key has at least 16 characters")
    return key


def read_secret(path: Path, what: str) -> str:
    """The text of `path`, without surrounding space.

    Raises: ConfigError when the file is missing, empty, or readable by others than its owner's group.
    """
    try:
        secret = path.read_text().strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot read the {what}: {error}") from None
    if not secret:
        raise ConfigError(f"{path}: the {what} is empty")
    if mode & 0o004:
        raise ConfigError(f"{path}: the {what} is readable by everyone; chmod 600 it")
    return secret


@dataclass(frozen=True)
class Document:
    """A YAML file as plain values, with the line of every dotted path."""

    path: Path
    value: Mapping[str, Any]
    lines: Mapping[str, int]

    def parse(self, cls: type[T], section: str = "") -> T:
        """Parse the whole file, or one top-level section of it, into the frozen dataclass `cls`.

        Raises: ConfigError.
        """
        if section and section not in self.value:
            raise ConfigError(f"{self.path}: no section '{section}'")
        try:
            return parse(cls, self.value[section] if section else self.value, section)
        except Invalid as error:
            raise ConfigError(f"{self.path}:{self._line(error.where)}: {error}") from None

    def _line(self, where: str) -> int:
        """The line of `where`, or of its nearest parent when the key is missing."""
        while where and where not in self.lines:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self.lines.get(where, 1)


def read(path: Path) -> Document:
    """Raises: ConfigError when the file cannot be read, is not a YAML mapping, or gives a key twice."""
    lines: dict[str, int] = {}
    try:
        node = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
        value = _plain(node, "", lines) if node is not None else {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot read: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: the 13th month, a number of 5000 digits
        raise ConfigError(f"{path}: not YAML: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a mapping at the top")
    return Document(path, value, lines)


def _plain(node: yaml.Node, where: str, lines: dict[str, int]) -> Any:
    """Like SafeLoader, but a key given twice fails (YAML would keep the last in silence)."""
    lines[where] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in mapping:
                raise yaml.MarkedYAMLError(problem=f"'{key}' is given twice", problem_mark=key_node.start_mark)
            path = f"{where}.{key}" if where else key
            mapping[key] = _plain(value_node, path, lines)
            lines[path] = key_node.start_mark.line + 1
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, f"{where}[{i}]", lines) for i, item in enumerate(node.value)]
    return yaml.SafeLoader("").construct_object(node)
