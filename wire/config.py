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

from wire.files import Unreadable, read_small
from wire.strict import Invalid, is_clean, parse
from wire.urls import is_host

T = TypeVar("T")
MAX_SECRET_BYTES = 4096
MAX_PROFILE_BYTES = 65_536  # some two thousand lines; PyYAML takes a second for so many


class ConfigError(Exception):
    """One line that says file, line, path and problem."""


@dataclass(frozen=True)
class EdgeConfig:
    """How a process meets the network."""

    port: int
    host: str = "127.0.0.1"
    api_key_file: Path | None = None  # demanded when host is not loopback
    allowed_hosts: tuple[str, ...] = ()  # without a key: names beside localhost by which a proxy calls it
    drain_timeout_s: float = 30.0  # SIGTERM: how long running calls or requests may take to finish

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be 0 to 65535, got {self.port}")
        if self.drain_timeout_s < 0:
            raise ValueError("drain_timeout_s must not be negative")
        if not is_host(self.host):
            raise Invalid("host", f"neither an IP address nor a name: {self.host!r:.80}")
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
    if not key.isascii():
        raise ConfigError(f"{path}: an API key has ASCII characters only")
    return key


def read_secret(path: Path, what: str) -> str:
    """The text of `path`, without surrounding space.

    Raises: ConfigError when the file is missing, empty, or readable by others than its owner's group, and when it holds
    more than a line.
    """
    try:
        text, mode = read_small(path, MAX_SECRET_BYTES)
    except Unreadable as error:
        raise ConfigError(f"{path}: cannot read the {what}: {error}") from None
    secret = text.strip()
    if not secret:
        raise ConfigError(f"{path}: the {what} is empty")
    if not secret.isprintable():
        raise ConfigError(f"{path}: the {what} is one line without control characters")
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
            raise ConfigError(f"{self.path}:{line_of(self.lines, error.where)}: {error}") from None


def line_of(lines: Mapping[str, int], where: str) -> int:
    """The line of `where`, or of its nearest parent when it has none."""
    while where and where not in lines:
        where = where[: max(where.rfind("."), where.rfind("["), 0)]
    return lines.get(where, 1)


def read(path: Path) -> Document:
    """Raises: ConfigError when the file cannot be read, is not a YAML mapping, gives a key twice, or holds an alias, a
    tag, or a character that no value has.
    """
    values = _Values()
    try:
        node = yaml.compose(read_small(path, MAX_PROFILE_BYTES)[0], Loader=yaml.SafeLoader)
        value = values.of(node, "") if node is not None else {}
    except Unreadable as error:
        raise ConfigError(f"{path}: cannot read: {error}") from None
    except Invalid as error:
        raise ConfigError(f"{path}:{line_of(values.lines, error.where)}: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise ConfigError(f"{path}: not YAML: {error.reason}: U+{error.character:04X}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not YAML: nested too deeply") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a mapping at the top")
    return Document(path, value, values.lines)


class _Values:
    """Plain values of YAML nodes, like SafeLoader's. But a key given twice fails (YAML would keep the last in silence),
    and so do aliases, of which a few lines can stand for billions of values, and explicit tags.
    """

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self._seen: set[yaml.Node] = set()
        self._loader = yaml.SafeLoader("")

    def of(self, node: yaml.Node, where: str) -> Any:
        """Raises: Invalid; yaml.MarkedYAMLError."""
        if node in self._seen:
            raise Invalid(where, "YAML aliases are not taken: write the value out")
        self._seen.add(node)
        self.lines.setdefault(where, node.start_mark.line + 1)
        is_plain = isinstance(node, yaml.ScalarNode) and node.style is None
        implied = self._loader.resolve(type(node), node.value, (is_plain, True))  # type: ignore[no-untyped-call]
        if node.tag != implied:
            raise Invalid(where, f"YAML tags are not taken: {node.tag!r:.60}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.of(item, f"{where}[{i}]") for i, item in enumerate(node.value)]
        if not is_clean(node.value.replace("\n", "").replace("\t", "")):
            raise Invalid(where, f"holds a character that cannot be written: {node.value!r:.60}")
        try:
            return self._loader.construct_object(node)
        except ValueError as error:  # the 13th month, a number of 5000 digits
            raise Invalid(where, f"not YAML: {error}") from None

    def _mapping(self, node: yaml.MappingNode, where: str) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if not isinstance(key, str) or not key.isprintable():
                raise Invalid(where, f"what stands in line {line} is no key")
            if key in mapping:
                raise yaml.MarkedYAMLError(problem=f"'{key}' is given twice", problem_mark=key_node.start_mark)
            path = f"{where}.{key}" if where else key
            self.lines[path] = line
            mapping[key] = self.of(value_node, path)
        return mapping
