"""A player that starts with the first packet and waits for none: where it runs dry. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from load.measure import DRY_S
from load.record import Placed


def underruns_s(audio: Sequence[Placed], rate_hz: int) -> list[float]:
    """The lengths of the silences between packets, in order; what a listener's buffer holds does not count.

    `audio`: when each packet arrived, and what was in it.
    """
    found: list[float] = []
    played_until_s: float | None = None
    for arrived_s, pcm in audio:
        if played_until_s is None:
            played_until_s = arrived_s
        if (dry_s := arrived_s - played_until_s) > 0:
            played_until_s = arrived_s
            if dry_s >= DRY_S:
                found.append(dry_s)
        played_until_s += pcm.size / rate_hz
    return found
