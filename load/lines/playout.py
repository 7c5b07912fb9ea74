"""What a client that owns playout has in hand, and how much of each item was played when it stops. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class _Item:
    item: str
    content_index: int
    num_samples: int = 0


@dataclass(frozen=True)
class Cut:
    """Of that item only the first `audio_end_ms` have been played."""

    item: str
    content_index: int
    audio_end_ms: int


class Playout:
    """Audio is played as it comes, or behind what still plays."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._items: list[_Item] = []  # since it last ran dry, and the one before, in the order of playing
        self._until_s = 0.0  # when all of it has been played

    def add(self, item: str, content_index: int, num_samples: int, now: float) -> None:
        if now >= self._until_s:
            self._items = self._items[-1:]
        if not self._items or (self._items[-1].item, self._items[-1].content_index) != (item, content_index):
            self._items.append(_Item(item, content_index))
        self._items[-1].num_samples += num_samples
        self._until_s = max(now, self._until_s) + num_samples / self._rate_hz

    def cut(self, now: float) -> list[Cut]:
        """Stop playing. Items of which something was not played, in the order of playing; none when all was."""
        left = round(max(0.0, self._until_s - now) * self._rate_hz)
        cuts = []
        for item in reversed(self._items):
            if left <= 0:
                break
            played = max(0, item.num_samples - left)
            left -= item.num_samples
            cuts.append(Cut(item.item, item.content_index, played * 1000 // self._rate_hz))
        self._items, self._until_s = [], now
        return cuts[::-1]
