"""What the front of a call server and its processes tell each other: JSON lines over a Unix socket pair.

A `Connection` comes with its file descriptor (unix(7), SCM_RIGHTS). Nothing is queued here: a message that the kernel's
buffer has no room for is not sent, and whoever sends it does without, or says it again.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from voice.admission import Load
from voice.config import VoiceConfig
from voice.spread import State
from wire.log import LogLevel
from wire.messages import Message, decode, encode

logger = logging.getLogger(__name__)

READ_BYTES = 65_536
MAX_DESCRIPTORS = 8  # of one read; the kernel ends a read after a message that has any
READS_AT_ONCE = 64  # then others have their turn

In = TypeVar("In", bound=Message)


@dataclass(frozen=True)
class Start:
    """What a process is given before all else, on its standard input, pickled. `metrics`: where all keep theirs."""

    config: VoiceConfig
    share: int  # of the lines
    started_s: float  # the call server, by the monotonic clock
    metrics: Path
    log_level: LogLevel


@dataclass(frozen=True)
class Connection:
    """Comes with a descriptor. `is_call`: it counts as handed over until `State.num_settled` counts it."""

    TYPE: ClassVar[str] = "connection"
    is_call: bool


@dataclass(frozen=True)
class Drain:
    TYPE: ClassVar[str] = "drain"


@dataclass(frozen=True)
class End:
    """At once."""

    TYPE: ClassVar[str] = "end"


@dataclass(frozen=True)
class Ready:
    TYPE: ClassVar[str] = "ready"


@dataclass(frozen=True)
class Failed:
    """It cannot start: the one line that says why."""

    TYPE: ClassVar[str] = "failed"
    problem: str


FromFront = Connection | Load | Drain | End
FromWorker = Ready | Failed | State
FROM_FRONT = (Connection, Load, Drain, End)
FROM_WORKER = (Ready, Failed, State)


class Channel(Generic[In]):
    """One end. `kinds`: what the other end says."""

    def __init__(self, sock: socket.socket, kinds: Iterable[type[In]]) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._kinds = tuple(kinds)
        self._rest = b""

    def send(self, message: Message, connection: socket.socket | None = None) -> bool:
        """False when the other end is gone, or has not read for long. The caller keeps its copy of `connection`."""
        data = encode(message).encode() + b"\n"
        try:
            if connection is None:
                num_sent = self._sock.send(data)
            else:
                num_sent = socket.send_fds(self._sock, [data], [connection.fileno()])
        except OSError as error:
            logger.debug("not sent, %s: %s", message.TYPE, error)
            return False
        assert num_sent == len(data), "the kernel takes a small message whole or not at all"
        return True

    def listen(self, hear: Callable[[In, socket.socket | None], None], ended: Callable[[], None]) -> None:
        """Call `hear` for each message, `ended` once when the other end is closed."""
        self._hear, self._ended = hear, ended
        asyncio.get_running_loop().add_reader(self._sock.fileno(), self._read)

    def close(self) -> None:
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
            self._sock.close()

    def _read(self) -> None:
        for _ in range(READS_AT_ONCE):
            try:
                data, descriptors, _, _ = socket.recv_fds(self._sock, READ_BYTES, MAX_DESCRIPTORS)
            except BlockingIOError:
                return
            except ConnectionError:
                data, descriptors = b"", []
            if not data:
                self.close()
                self._ended()
                return
            self._take(data, [socket.socket(fileno=descriptor) for descriptor in descriptors])

    def _take(self, data: bytes, connections: list[socket.socket]) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = decode(line.decode(), self._kinds)
            # Short of descriptors, the kernel drops those it cannot give us.
            takes_one = isinstance(message, Connection) and connections
            self._hear(message, connections.pop(0) if takes_one else None)
        for connection in connections:
            connection.close()
