"""A log on disk that never grows beyond a bound: it is rotated by size, between two lines.

    voice.log      written now
    voice.log.1    the one before
    voice.log.2    the one before that; older ones are gone

A disk that refuses costs lines, never the process that wrote them.
"""

from __future__ import annotations

import logging
from pathlib import Path

logger = logging.getLogger(__name__)

MAX_BYTES = 16 << 20
NUM_KEPT = 2


class LogFile:
    """Appends to `path`. The line that goes beyond `max_bytes` is still written, and cut only at twice as many."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._max_bytes = max_bytes
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        self._is_between_lines = True
        self._is_refused = False

    def write(self, data: bytes) -> None:
        """Parts of a line may come one by one."""
        while data:
            room = self._max_bytes - self._size
            fitting = len(data) if len(data) <= room else data.rfind(b"\n", 0, max(0, room)) + 1
            if not fitting:  # not even one line
                if self._size and (self._is_between_lines or self._size >= 2 * self._max_bytes):
                    self._rotate()
                    continue
                fitting = data.find(b"\n") + 1 or len(data)
            self._append(data[:fitting])
            data = data[fitting:]

    def close(self) -> None:
        self._file.close()

    def _append(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self._refused(error)
        else:
            self._is_refused = False
        self._size += len(data)
        self._is_between_lines = data.endswith(b"\n")

    def _rotate(self) -> None:
        try:
            for i in range(NUM_KEPT, 0, -1):
                newer = self._old(i - 1) if i > 1 else self.path
                if newer.exists():
                    newer.replace(self._old(i))
            fresh = self.path.open("ab", buffering=0)
        except OSError as error:
            self._refused(error)
        else:
            self._file.close()
            self._file = fresh
        self._size = 0  # also when it was refused: tried again after as many bytes

    def _old(self, age: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{age}")

    def _refused(self, error: OSError) -> None:
        """Said once for each time that it begins."""
        if not self._is_refused:
            logger.warning("%s: %s; lines are lost", self.path, error.strerror or error)
        self._is_refused = True
