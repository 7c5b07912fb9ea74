"""How a transfer shows that it moves: a bar on a terminal, a line now and then everywhere else. Both on stderr."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress

logger = logging.getLogger(__name__)

LINE_EVERY_S = 5.0  # without a terminal: often enough to see a stall, rare enough for a log

Moved: TypeAlias = Callable[[int], None]  # is told the bytes that have arrived in total


class Progress(Protocol):
    def transfer(self, label: str, total_bytes: int | None) -> AbstractContextManager[Moved]: ...


class Bars:
    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def transfer(self, label: str, total_bytes: int | None) -> Iterator[Moved]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with RichProgress(*columns, console=self._console) as bar:
            task = bar.add_task(label, total=total_bytes)
            yield lambda moved_bytes: bar.update(task, completed=moved_bytes)


class Lines:
    @contextmanager
    def transfer(self, label: str, total_bytes: int | None) -> Iterator[Moved]:
        started_s = said_s = time.monotonic()
        arrived_bytes = 0

        def moved(moved_bytes: int) -> None:
            nonlocal said_s, arrived_bytes
            arrived_bytes = moved_bytes
            if (now := time.monotonic()) - said_s >= LINE_EVERY_S:
                said_s = now
                logger.info("%s: %s of %s", label, megabytes(moved_bytes), megabytes(total_bytes))

        yield moved
        logger.info("%s: %s in %.1f s", label, megabytes(arrived_bytes), time.monotonic() - started_s)


def progress_for(console: Console) -> Progress:
    return Bars(console) if console.is_terminal else Lines()


def megabytes(num_bytes: int | None) -> str:
    return "unknown size" if num_bytes is None else f"{num_bytes / 1e6:.1f} MB"
