"""The weights catalogue: which models exist, under which licence, with which bytes, from which sources.

Parsed strictly from TOML (`deploy/models.toml` is the default). Knows nothing of fetching or of the cache.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from deploy.paths import DEFAULT_CATALOGUE
from wire.config import ConfigError
from wire.files import Unreadable, read_small
from wire.strict import Invalid, nearest, parse

Kind: TypeAlias = Literal["stt", "tts", "llm", "vad", "turn", "lexicon"]
SourceKind: TypeAlias = Literal["wheel", "hub"]

MAX_BYTES = 1 << 20  # of a catalogue; ours has 6 KB

_MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class WheelMember:
    package: str  # pinned: name==version
    member: str  # path inside the wheel

    def __post_init__(self) -> None:
        if not _PINNED.fullmatch(self.package):
            raise ValueError(f"package must be pinned as name==version, got {self.package!r}")


@dataclass(frozen=True)
class HubFile:
    repository: str  # owner/name
    revision: str  # a commit, not a branch: the bytes must not change
    path: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{40}", self.revision):
            raise ValueError(f"revision must be a commit of 40 hex digits, got {self.revision!r}")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository):
            raise ValueError(f"repository must be owner/name, got {self.repository!r}")


@dataclass(frozen=True)
class File:
    name: str
    size_bytes: int
    sha256: str
    wheel: tuple[WheelMember, ...] = ()
    hub: HubFile | None = None

    def __post_init__(self) -> None:
        if PurePosixPath(self.name).name != self.name or self.name.startswith("."):
            raise ValueError(f"name must be a plain file name, got {self.name!r}")
        if self.size_bytes <= 0:
            raise ValueError("size_bytes must be above 0")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError("sha256 must be 64 lower-case hex digits")
        if not self.wheel and self.hub is None:
            raise ValueError("needs a source: wheel or hub")

    def has_source(self, kind: SourceKind) -> bool:
        return bool(self.wheel) if kind == "wheel" else self.hub is not None


@dataclass(frozen=True)
class Model:
    id: str
    kind: Kind
    languages: tuple[str, ...]  # ISO 639-1; "*" for any
    licence: str
    files: tuple[File, ...]
    note: str = ""

    def __post_init__(self) -> None:
        if not _MODEL_ID.fullmatch(self.id):
            raise ValueError(f"id must be lower-case letters, digits, '.', '_' and '-', got {self.id!r}")
        names = [file.name for file in self.files]
        if not names or len(set(names)) < len(names):
            raise ValueError("files must not be empty and no name may appear twice")

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def sources(self) -> tuple[SourceKind, ...]:
        """The kinds of source that provide every file, in the order of preference."""
        kinds: tuple[SourceKind, ...] = ("wheel", "hub")
        return tuple(kind for kind in kinds if all(file.has_source(kind) for file in self.files))

    @property
    def packages(self) -> tuple[str, ...]:
        """Pinned wheels in the order of first use."""
        return tuple(dict.fromkeys(part.package for file in self.files for part in file.wheel))


@dataclass(frozen=True)
class Wheel:
    size_bytes: int


@dataclass(frozen=True)
class Catalogue:
    models: tuple[Model, ...]
    wheels: Mapping[str, Wheel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = [model.id for model in self.models]
        if len(set(ids)) < len(ids):
            raise ValueError("a model id appears twice")
        for model in self.models:
            if not model.sources:
                raise ValueError(f"model '{model.id}': no kind of source provides all of its files")
            if missing := [package for package in model.packages if package not in self.wheels]:
                raise ValueError(f"model '{model.id}': wheels lacks the size of {missing[0]}")

    @cached_property
    def by_id(self) -> Mapping[str, Model]:
        return {model.id: model for model in self.models}

    def model(self, model_id: str) -> Model:
        """Raises: ConfigError, with the nearest id."""
        if model_id not in self.by_id:
            close = nearest(model_id, self.by_id)
            hint = f"did you mean '{close}'?" if close else f"known: {', '.join(self.by_id)}"
            raise ConfigError(f"no model '{model_id}' in the catalogue; {hint}")
        return self.by_id[model_id]

    def work_bytes(self, model: Model, source: SourceKind) -> int:
        """Disk space that fetching `model` takes while wheels and unpacked files lie side by side."""
        wheels = sum(self.wheels[package].size_bytes for package in model.packages) if source == "wheel" else 0
        return model.size_bytes + wheels


def read_catalogue(path: Path = DEFAULT_CATALOGUE) -> Catalogue:
    """Raises: ConfigError."""
    try:
        return parse(Catalogue, tomllib.loads(read_small(path, MAX_BYTES)[0]))
    except Unreadable as error:
        raise ConfigError(f"{path}: cannot read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not TOML: nested too deeply") from None
    except Invalid as error:
        raise ConfigError(f"{path}: {error}") from None
