"""What a caller has sent and the call has not taken, bounded: what is too much of a kind displaces its oldest."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeAlias

import numpy as np

from wire import calls
from wire.pcm import Pcm16

MAX_EVENTS = 64

Event: TypeAlias = calls.Played | calls.Dtmf


class Inbox:
    """For one reader. Audio is kept up to `max_samples`; it never displaces an event, nor an event audio."""

    def __init__(self, max_samples: int) -> None:
        self._max_samples = max_samples
        self._items: deque[Pcm16 | Event] = deque()
        self._num_samples = 0
        self._num_events = 0
        self._is_closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Pcm16 | Event) -> None:
        """Ignored when closed."""
        if self._is_closed:
            return
        if isinstance(item, np.ndarray):
            item = item[-self._max_samples :]
            self._num_samples += item.size
        else:
            self._num_events += 1
        self._items.append(item)
        while self._num_samples > self._max_samples:
            self._drop_oldest(is_audio=True)
        while self._num_events > MAX_EVENTS:
            self._drop_oldest(is_audio=False)
        self._changed.set()

    async def get(self) -> Pcm16 | Event | None:
        """The next; None when it is closed and empty."""
        while not self._items:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._take(0)

    def close(self) -> None:
        """What is in it can still be taken."""
        self._is_closed = True
        self._changed.set()

    def _drop_oldest(self, *, is_audio: bool) -> None:
        self._take(next(i for i, item in enumerate(self._items) if isinstance(item, np.ndarray) is is_audio))

    def _take(self, index: int) -> Pcm16 | Event:
        item = self._items[index]
        del self._items[index]
        if isinstance(item, np.ndarray):
            self._num_samples -= item.size
        else:
            self._num_events -= 1
        return item
