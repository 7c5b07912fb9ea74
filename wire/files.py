"""Small files that a user names: read whole, up to a bound, and only when they are files.

A name may lead to a device that never ends or to a pipe that nobody writes to; neither may hold up a start.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Unreadable(Exception):
    """Why, in a few words without the path."""


def read_small(path: Path, limit_bytes: int) -> tuple[str, int]:
    """The text of `path` (UTF-8), and its mode.

    Raises: Unreadable, also for what is no regular file, for more than `limit_bytes`, and for bytes that are no text.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise Unreadable("it is no regular file")
            data = file.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise Unreadable(f"it has more than {limit_bytes} bytes")
        return data.decode(), mode
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is no text: byte {error.start} is not UTF-8") from None
    except ValueError as error:  # a path with a NUL or half a character
        raise Unreadable(str(error)) from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # else opening a pipe waits for somebody who writes to it, open(2)
