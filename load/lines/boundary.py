"""What a caller needs of a connection to a voice agent, whatever the protocol."""

from __future__ import annotations

import os
import urllib.parse
from typing import Protocol, TypeAlias

from wire import calls
from wire.config import is_loopback
from wire.pcm import Pcm16

CONNECT_TIMEOUT_S = 10.0
SERVER_KINDS: tuple[type[calls.ServerMessage], ...] = calls.SERVER_MESSAGES

Received: TypeAlias = tuple[float, Pcm16 | calls.ServerMessage]


class NoCall(Exception):
    """No call could be placed: one line, and a hint what to do about it."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


class Refused(NoCall):
    """The server has no room for the call, and says when to come back if it knows."""

    def __init__(self, problem: str, hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(problem, hint)
        self.retry_after_s = retry_after_s


class NobodyThere(NoCall):
    """Nobody listens at the address."""


class LineClosed(Exception):
    """`code`: the WebSocket's close code, where there was one."""

    def __init__(self, code: int | None, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Line(Protocol):
    """Audio is int16 mono at the rates of the hello it was opened with.

    `counts_samples`: what is received is all of the agent's audio, so that its samples can be counted.
    """

    counts_samples: bool

    async def send_audio(self, pcm: Pcm16) -> None:
        """20 ms, in real time. Raises: LineClosed."""

    async def send(self, message: calls.ClientMessage) -> None:
        """Raises: LineClosed."""

    async def vanish(self) -> None:
        """The connection is gone without a word, as of a caller who drives into a tunnel."""

    async def receive(self) -> Received:
        """The next of the agent's audio or messages, and when it arrived.

        Raises: LineClosed; wire.errors.PeerError for what is no message of ours.
        """


def refused(url: str, status: int, path: str) -> NoCall:
    if status == 401:
        return NoCall(f"{url} wants an API key (HTTP {status})", "give the file that holds it: --key-file")
    return NoCall(f"{url} takes no calls (HTTP {status})", f"the path of these calls is {path}")


def unreachable(url: str, error: BaseException) -> NobodyThere:
    return NobodyThere(f"no call server at {url}: {why(error)}", "start one: offhook up")


def why(error: BaseException) -> str:
    """In the system's words: asyncio puts addresses in their place."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or "no answer"


def is_here(url: str) -> bool:
    """A proxy, if the environment names one, cannot reach this machine's loopback for us."""
    try:
        return is_loopback(urllib.parse.urlsplit(url).hostname or "")
    except ValueError:  # no address at all: connecting says so
        return False
