"""Where the processes of a call server keep their metrics: a folder, with prometheus_client's multiprocess mode.

The folder is locked (flock(2)) as long as the front lives. What is left of one that was killed is so known to be
nobody's, and systemd-tmpfiles(8), which removes old files, leaves a locked folder alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "offhook-voice-"
NEW_S = 60.0  # a younger one may be about to be locked


@contextlib.contextmanager
def metric_files() -> Iterator[Path]:
    """A new folder, which is gone afterwards; and so are those that killed fronts have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or locked
            if time.time() - left.stat().st_mtime > NEW_S:
                with _locked(left):
                    shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder, _locked(Path(folder)):
        yield Path(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises: OSError when somebody else has the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
