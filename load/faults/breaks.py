"""What may happen to a TCP connection, at a time since it began or after so many bytes of one direction. Pure.

`connection` is the n-th through the relay, counted from 1; without it every one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

StreamDirection: TypeAlias = Literal["up", "down"]

MAX_S = 86_400.0


@dataclass(frozen=True)
class Stall:
    """Nothing of `direction` is forwarded for `for_s`, or ever again; both ends stay connected and nothing is lost.

    Expected, down: silence, then the audio that waited; the server neither runs ahead nor keeps more than it may queue,
    and a caller who does not read for 5 s is cut off. Up: a turn cut short ends by timer, never later than 1.5 s.
    """

    KIND: ClassVar[str] = "stall"
    at_s: float | None = None
    after_bytes: int | None = None
    for_s: float | None = None
    direction: Literal["up", "down", "both"] = "both"
    connection: int | None = None

    def __post_init__(self) -> None:
        _check(self.at_s, self.after_bytes, self.connection)
        _check_time("for_s", self.for_s)
        if self.after_bytes is not None and self.direction == "both":
            raise ValueError("after_bytes counts one direction: set direction to up or down")


@dataclass(frozen=True)
class HalfClose:
    """The side that sends `direction` seems to have ended it (FIN); the other direction goes on.

    Expected, up: the server ends the call and frees its line within 1.5 s, as after a hang-up. Down: the client sees
    the end of the connection without a close message and stops sending.
    """

    KIND: ClassVar[str] = "half_close"
    at_s: float | None = None
    after_bytes: int | None = None
    direction: StreamDirection = "up"
    connection: int | None = None

    def __post_init__(self) -> None:
        _check(self.at_s, self.after_bytes, self.connection)


@dataclass(frozen=True)
class Reset:
    """Both ends are told that the connection never was (RST, SO_LINGER 0); bytes count in `direction`.

    Expected: the call is over for both at once, its line is free within 1.5 s, and the next call is taken.
    """

    KIND: ClassVar[str] = "reset"
    at_s: float | None = None
    after_bytes: int | None = None
    direction: StreamDirection = "down"
    connection: int | None = None

    def __post_init__(self) -> None:
        _check(self.at_s, self.after_bytes, self.connection)


Break: TypeAlias = Stall | HalfClose | Reset
BREAKS = (Stall, HalfClose, Reset)


def timed(breaks: Iterable[Break], connection: int) -> list[tuple[float, Break]]:
    """Those of a connection that come at a time, in order."""
    found = [(b.at_s, b) for b in breaks if b.at_s is not None and b.connection in (None, connection)]
    return sorted(found, key=lambda each: each[0])


class ByteCount:
    """Where the breaks of one direction of a connection cut what passes."""

    def __init__(self, breaks: Iterable[Break], connection: int, direction: StreamDirection) -> None:
        mine = [b for b in breaks if b.direction == direction and b.connection in (None, connection)]
        self._coming = sorted(((b.after_bytes, b) for b in mine if b.after_bytes is not None), key=lambda each: each[0])
        self.num_bytes = 0

    def cut(self, data: bytes) -> list[bytes | Break]:
        """`data` in pieces, with each break where it is to happen."""
        pieces: list[bytes | Break] = []
        start = 0
        while self._coming and self._coming[0][0] <= self.num_bytes + len(data) - start:
            after_bytes, coming = self._coming.pop(0)
            length = max(0, after_bytes - self.num_bytes)
            pieces += [data[start : start + length], coming] if length else [coming]
            start += length
            self.num_bytes += length
        if start < len(data):
            pieces.append(data[start:])
            self.num_bytes += len(data) - start
        return pieces


def _check(at_s: float | None, after_bytes: int | None, connection: int | None) -> None:
    if (at_s is None) == (after_bytes is None):
        raise ValueError("give one of at_s and after_bytes")
    _check_time("at_s", at_s)
    if after_bytes is not None and after_bytes < 0:
        raise ValueError(f"after_bytes must not be negative, got {after_bytes}")
    if connection is not None and connection < 1:
        raise ValueError(f"connection counts from 1, got {connection}")


def _check_time(name: str, value: float | None) -> None:
    if value is not None and not 0 <= value <= MAX_S:
        raise ValueError(f"{name} must be 0 to {MAX_S:.0f} s, got {value}")
