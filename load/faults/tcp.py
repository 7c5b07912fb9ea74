"""A relay for any protocol over TCP, in front of any service: delay, jitter and bandwidth, stalls and broken ends.

Each direction is read in pieces, which a pure `Link` gives a time to leave, and written when that has come. What waits
is bounded by `MAX_PIECES`: above it nothing is read, so that the sender is held up by TCP itself, and nothing is ever
dropped. An end is handed on as it came: FIN as FIN, after which the other direction goes on, and RST as RST.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import struct
import urllib.parse
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import numpy as np

from load.errors import LoadError
from load.faults.breaks import Break, ByteCount, HalfClose, Reset, Stall, StreamDirection, timed
from load.faults.impairment import Impairment
from load.faults.link import Link

logger = logging.getLogger(__name__)

PIECE_BYTES = 2048  # small, so that a bandwidth cap sends in small steps
MAX_PIECES = 512  # 1 MiB; and of 20 ms messages the longest delay there is, 10 s
MAX_CONNECTIONS = 1024
CONNECT_TIMEOUT_S = 3.0
_NO_LINGER = struct.pack("ii", 1, 0)  # close(2) sends RST; Linux socket(7), SO_LINGER


@dataclass
class TcpStatistics:
    num_connections: int = 0
    num_open: int = 0
    num_resets: int = 0
    num_up_bytes: int = 0
    num_down_bytes: int = 0


class TcpRelay:
    def __init__(
        self,
        host: str,
        port: int,
        up: Impairment,
        down: Impairment,
        rng: np.random.Generator,
        breaks: Iterable[Break] = (),
    ) -> None:
        self.statistics = TcpStatistics()
        self._target = (host, port)
        self._up, self._down = up.without_drops(), down.without_drops()
        self._rng = rng
        self._breaks = tuple(breaks)
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # one for each connection, also while it is being made

    @contextlib.asynccontextmanager
    async def open(self, port: int = 0, host: str = "127.0.0.1") -> AsyncIterator[tuple[str, int]]:
        """Serve; yields the address to connect to instead of the target's.

        Raises: LoadError when it cannot be bound.
        """
        try:
            server = await asyncio.start_server(self._begin, host, port, limit=PIECE_BYTES)
        except OSError as error:
            raise LoadError(f"cannot listen on {host}:{port}: {error.strerror or error}", "give another port") from None
        try:
            yield server.sockets[0].getsockname()[:2]
        finally:
            server.close()
            tasks = [*self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def do(self, what: Break) -> None:
        """Now, to every connection there is; when and to which `what` itself says is left aside."""
        for connection in self._open:
            connection.do(what)

    def resume(self) -> None:
        """End every stall."""
        for connection in self._open:
            connection.resume()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A task of ours: one that asyncio made would report its own cancelling as an error (Python 3.11)."""
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = _End(reader, writer)
        if len(self._tasks) > MAX_CONNECTIONS:
            caller.reset()
            return
        self.statistics.num_connections += 1
        number, [up, down] = self.statistics.num_connections, self._rng.spawn(2)  # in the order of their coming
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                server = _End(*await asyncio.open_connection(*self._target, limit=PIECE_BYTES))
        except (OSError, TimeoutError) as error:
            logger.debug("x %s:%d: %s", *self._target, error)
            caller.reset()
            return
        connection = _Connection(
            _Pipe(caller, server, Link(self._up, up), ByteCount(self._breaks, number, "up")),
            _Pipe(server, caller, Link(self._down, down), ByteCount(self._breaks, number, "down")),
        )
        self._open.add(connection)
        self.statistics.num_open += 1
        try:
            await connection.run(timed(self._breaks, number))
        finally:
            self._open.remove(connection)
            self.statistics.num_open -= 1
            self.statistics.num_resets += connection.was_reset
            self.statistics.num_up_bytes += connection.up.count.num_bytes
            self.statistics.num_down_bytes += connection.down.count.num_bytes


class _End:
    """One of the two sockets of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        writer.transport.set_write_buffer_limits(PIECE_BYTES)

    def finish(self) -> None:
        """FIN: nothing more is sent to it."""
        if not self.writer.is_closing():
            with contextlib.suppress(OSError):  # it is gone
                self.writer.write_eof()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        if not self.writer.is_closing():
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.writer.transport.abort()


@dataclass(eq=False)
class _Pipe:
    """One direction. Closed: what still comes is read and forgotten."""

    source: _End
    sink: _End
    link: Link
    count: ByteCount
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    pieces: asyncio.Queue[tuple[float, bytes]] = field(default_factory=lambda: asyncio.Queue(MAX_PIECES))
    stalled_until_s: float = 0.0
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.flowing.set()

    def stall(self, for_s: float | None) -> None:
        """Until the longest of several has passed."""
        loop = asyncio.get_running_loop()
        self.stalled_until_s = max(self.stalled_until_s, math.inf if for_s is None else loop.time() + for_s)
        self.flowing.clear()
        if self.stalled_until_s < math.inf:
            loop.call_at(self.stalled_until_s, self._end_stall, self.stalled_until_s)

    def resume(self) -> None:
        self.stalled_until_s = 0.0
        self.flowing.set()

    def _end_stall(self, until_s: float) -> None:
        if self.stalled_until_s == until_s:
            self.resume()

    async def read(self) -> None:
        """Until the source ends. Raises: OSError when it breaks."""
        loop, data = asyncio.get_running_loop(), b"-"
        while data:
            await self.flowing.wait()
            data = await self.source.reader.read(PIECE_BYTES)
            now = loop.time()
            leaves_s = max(self.link.offer(len(data), now).leaves_s)
            await self.pieces.put((leaves_s, data))

    def close(self) -> None:
        self.is_closed = True
        self.sink.finish()


class _Over(Exception):
    pass


class _Connection:
    def __init__(self, up: _Pipe, down: _Pipe) -> None:
        self.up, self.down = up, down
        self.was_reset = False
        self._over = asyncio.Event()

    async def run(self, breaks: list[tuple[float, Break]]) -> None:
        """Until both directions have ended, or it was reset."""
        try:
            async with asyncio.TaskGroup() as group:
                for at_s, what in breaks:
                    group.create_task(self._at(at_s, what))
                group.create_task(self._carry_both())
                await self._over.wait()
                raise _Over
        except* _Over:
            pass
        finally:
            for end in (self.up.source, self.down.source):
                if self.was_reset:
                    end.reset()
                end.writer.close()

    def do(self, what: Break) -> None:
        match what:
            case Stall():
                for pipe in (self.up, self.down):
                    if what.direction in (self._name(pipe), "both"):
                        pipe.stall(what.for_s)
            case HalfClose():
                (self.up if what.direction == "up" else self.down).close()
            case Reset():
                self.was_reset = True
                self._over.set()

    def resume(self) -> None:
        for pipe in (self.up, self.down):
            pipe.resume()

    def _name(self, pipe: _Pipe) -> StreamDirection:
        return "up" if pipe is self.up else "down"

    async def _at(self, at_s: float, what: Break) -> None:
        await asyncio.sleep(at_s)
        self.do(what)

    async def _carry_both(self) -> None:
        async with asyncio.TaskGroup() as group:
            for pipe in (self.up, self.down):
                group.create_task(self._carry(pipe))
        self._over.set()

    async def _carry(self, pipe: _Pipe) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pipe.read())
                await self._write(pipe)
        except* OSError as group:
            logger.debug("x %s", group.exceptions[0])
            self.do(Reset(at_s=0))

    async def _write(self, pipe: _Pipe) -> None:
        loop = asyncio.get_running_loop()
        while True:
            leaves_s, data = await pipe.pieces.get()
            if (wait_s := leaves_s - loop.time()) > 0:
                await asyncio.sleep(wait_s)
            await pipe.flowing.wait()
            if not data:
                break
            for piece in pipe.count.cut(data):
                if isinstance(piece, bytes):
                    await pipe.flowing.wait()
                    if not pipe.is_closed:
                        pipe.sink.writer.write(piece)
                        await pipe.sink.writer.drain()
                else:
                    self.do(piece)
        if not pipe.is_closed:
            pipe.close()


def target_of(url: str) -> tuple[str, int]:
    """Host and port. Raises: LoadError."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or {"http": 80, "ws": 80, "https": 443, "wss": 443}[parts.scheme]
        if parts.hostname:
            return parts.hostname, port
    except (ValueError, KeyError):
        pass
    raise LoadError(f"{url} is no address", "it looks like ws://127.0.0.1:8080/v1/calls") from None


def instead(url: str, address: tuple[str, int]) -> str:
    """`url` at another address."""
    return urllib.parse.urlsplit(url)._replace(netloc=f"{address[0]}:{address[1]}").geturl()
