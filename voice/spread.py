"""Which process of a call server gets a connection. Pure: no sockets, and `now` is an argument.

A call goes where the fewest are, counting those that were handed over and of which nothing has been heard yet, so that
a burst spreads evenly. What belongs to a call goes to the process that has it, by the name of the call: `2-x7Q...` is
one of the second process. Everything else can be answered by any.

Each process has its share of the lines, and refuses a call beyond it by itself. It is given one beyond it only when
all have theirs.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal

from voice.admission import Load

SILENT_S = 3.0  # a process that has said nothing for so long is asked last; it speaks every `worker.BEAT_S`
CALLS_PATH = "/v1/calls"
RTC_PATH = "/v1/calls/rtc"

_OF_CALL = re.compile(rf"{RTC_PATH}/([1-9][0-9]{{0,5}})-.+")
_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]")
_UPGRADE = re.compile(rb"\nupgrade:[ \t]*websocket[ \t]*\r?\n", re.IGNORECASE)


@dataclass(frozen=True)
class State:
    """What a process says of itself. `num_settled`: calls handed to it that took a line by now, or never will."""

    TYPE: ClassVar[str] = "state"
    num_taken: int = 0
    num_active: int = 0
    num_settled: int = 0
    draining: bool = False


@dataclass(frozen=True)
class Wish:
    """What a connection's first request is after. `worker`: the process that has the call it is about."""

    kind: Literal["call", "of_call", "other"] = "other"
    worker: int | None = None


def read_wish(head: bytes) -> Wish:
    """Of the first bytes of an HTTP/1.1 request (RFC 9112). What is none, any process may refuse."""
    found = _LINE.match(head.lstrip(b"\r\n"))
    if found is None:
        return Wish()
    method, path = found[1].decode(), _path(found[2].decode("latin-1"))
    if path == CALLS_PATH and method == "GET" and _UPGRADE.search(head) is not None:
        return Wish("call")
    if path == RTC_PATH and method == "POST":
        return Wish("call")
    if (named := _OF_CALL.fullmatch(path)) is not None:
        return Wish("of_call", int(named[1]))
    return Wish()


def _path(target: str) -> str:
    """RFC 9112, 3.2: origin-form or absolute-form."""
    if not target.startswith("/"):
        target = "/" + target.partition("://")[2].partition("/")[2]
    return urllib.parse.unquote(target.partition("?")[0])


def shares(max_calls: int, num_processes: int) -> tuple[int, ...]:
    """The lines of each process."""
    assert 1 <= num_processes <= max_calls
    each, rest = divmod(max_calls, num_processes)
    return tuple(each + (i < rest) for i in range(num_processes))


@dataclass
class _Worker:
    share: int
    is_up: bool = False
    state: State = State()
    heard_s: float = 0.0
    num_handed: int = 0  # calls, in this life
    last: int = 0  # when it was given something, in order
    last_call: int = 0

    @property
    def num_calls(self) -> int:
        """With those on their way."""
        return self.state.num_taken + max(0, self.num_handed - self.state.num_settled)

    @property
    def num_free(self) -> int:
        return 0 if self.state.draining else max(0, self.share - self.state.num_taken)


class Spread:
    """Processes are numbered from 1."""

    def __init__(self, shares: Collection[int]) -> None:
        self._workers = {number: _Worker(share) for number, share in enumerate(shares, 1)}
        self._order = 0

    @property
    def load(self) -> Load:
        up = [worker for worker in self._workers.values() if worker.is_up]
        return Load(
            num_taken=sum(worker.state.num_taken for worker in up),
            num_free=sum(worker.num_free for worker in up),
            num_active=sum(worker.state.num_active for worker in up),
            num_processes=len(up),
        )

    @property
    def all_up(self) -> bool:
        return all(worker.is_up for worker in self._workers.values())

    def up(self, number: int, now: float) -> None:
        """A new process, without calls."""
        worker = self._workers[number]
        worker.is_up, worker.state, worker.num_handed, worker.heard_s = True, State(), 0, now

    def down(self, number: int) -> None:
        """It has ended, and its calls with it."""
        self._workers[number].is_up = False

    def heard(self, number: int, state: State, now: float) -> None:
        worker = self._workers[number]
        worker.state, worker.heard_s = state, now

    def choose(self, wish: Wish, now: float, without: Collection[int] = ()) -> int | None:
        """None when no process is up, but for those in `without`. Tell `handed` when it has it."""
        up = {n: worker for n, worker in self._workers.items() if worker.is_up and n not in without}
        if wish.worker in up:
            return wish.worker
        rank = _rank_for_call if wish.kind == "call" else _rank
        return min(up, key=lambda n: rank(up[n], now), default=None)

    def handed(self, number: int, wish: Wish) -> None:
        self._order += 1
        worker = self._workers[number]
        worker.last = self._order
        if wish.kind == "call":
            worker.num_handed += 1
            worker.last_call = self._order


def _rank(worker: _Worker, now: float) -> tuple[float, ...]:
    """The least is asked first."""
    return (now - worker.heard_s > SILENT_S, worker.state.draining, worker.last)


def _rank_for_call(worker: _Worker, now: float) -> tuple[float, ...]:
    """A line that is free but promised comes after one that is not: who was promised it may yet not take it."""
    is_silent = now - worker.heard_s > SILENT_S
    is_promised = worker.num_calls >= worker.share
    return (is_silent, worker.num_free == 0, is_promised, worker.num_calls, worker.last_call)
