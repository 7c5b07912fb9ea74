"""A relay for ICE and RTP: both sides of a WebRTC call believe that the relay is the other side.

For every address of the server it has a near port, which the caller sends to; for every address of the caller a far
port, which the server sends to. What comes from X to the near port of Y leaves from the far port of X to Y, and the
other way round, so that ICE's checks see one address translation, as of a NAT, on every pair. Ports for the candidates
are opened as their SDP passes (`offer`, `answer`), those of addresses nobody announced with their first packet.

Bounds: `MAX_PORTS` a side and `MAX_WAITING` packets a direction; what comes above is dropped and counted. A timer of
the event loop sends what is due: some 1 ms late on an idle loop, and how late at worst is in the statistics.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from load.faults.impairment import Impairment
from load.faults.link import Link
from load.faults.sdp import Address, candidates, rewritten

logger = logging.getLogger(__name__)

MAX_PORTS = 16  # candidates of one side; a browser on a laptop has some five
MAX_WAITING = 4096  # packets: 10 s of delay, the most there is, at 400 packets a second
READS_AT_ONCE = 32  # datagrams taken before others have their turn
DATAGRAM_BYTES = 65_535
TIMER_STEP_S = 0.001  # of epoll_wait(2) and of libuv's timers
KERNEL_BUFFER_BYTES = 1 << 20


@dataclass
class Statistics:
    """Of one direction. Received is the sum of sent, lost, dropped and waiting; copies are counted beside them.

    Reordered (RFC 4737, 3.3): sent after a packet that had come later.
    """

    num_received: int = 0
    num_sent: int = 0
    num_lost: int = 0
    num_dropped: int = 0
    num_waiting: int = 0
    num_copies: int = 0
    num_reordered: int = 0
    worst_late_s: float = 0.0  # behind the time at which a packet was to leave


class UdpRelay:
    """One call's. `host`: an address of this machine that both sides can send to."""

    def __init__(
        self,
        up: Impairment,
        down: Impairment,
        rng: np.random.Generator,
        host: str = "127.0.0.1",
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._rng = rng
        self._host = host
        self._up = _Direction(up, rng.spawn(1)[0], max_waiting)
        self._down = _Direction(down, rng.spawn(1)[0], max_waiting)
        self._near: dict[Address, _Port] = {}  # by address of the server
        self._far: dict[Address, _Port] = {}  # by address of the caller
        self.last_s = asyncio.get_running_loop().time()  # when a packet came

    @property
    def up(self) -> Statistics:
        return self._up.statistics

    @property
    def down(self) -> Statistics:
        return self._down.statistics

    def offer(self, sdp: str) -> str:
        """The caller's SDP, or fragment of one, as the server is to see it."""
        return rewritten(sdp, self._places(candidates(sdp), self._far_port))

    def answer(self, sdp: str) -> str:
        """The server's SDP as the caller is to see it."""
        return rewritten(sdp, self._places(candidates(sdp), self._near_port))

    def impair(self, up: Impairment, down: Impairment) -> None:
        """From the next packet on."""
        self._up.impair(up, self._rng.spawn(1)[0])
        self._down.impair(down, self._rng.spawn(1)[0])

    def close(self) -> None:
        """What waits is not sent any more."""
        for direction in (self._up, self._down):
            direction.close()
        for port in [*self._near.values(), *self._far.values()]:
            port.close()

    @staticmethod
    def _places(addresses: list[Address], port: Callable[[Address], _Port | None]) -> dict[Address, Address]:
        ports = {address: port(address) for address in addresses}
        return {address: port.address for address, port in ports.items() if port is not None}

    def _near_port(self, server: Address) -> _Port | None:
        def on_packet(data: bytes, caller: Address) -> None:
            far = self._far_port(caller)
            self._relay(self._up, data, far, server)

        return self._port(self._near, server, on_packet)

    def _far_port(self, caller: Address) -> _Port | None:
        def on_packet(data: bytes, server: Address) -> None:
            near = self._near_port(server)
            self._relay(self._down, data, near, caller)

        return self._port(self._far, caller, on_packet)

    def _port(
        self, ports: dict[Address, _Port], peer: Address, on_packet: Callable[[bytes, Address], None]
    ) -> _Port | None:
        if peer not in ports:
            if len(ports) >= MAX_PORTS:
                logger.warning("x no port for %s:%d: there are %d already", *peer, MAX_PORTS)
                return None
            ports[peer] = _Port(self._host, on_packet)
        return ports[peer]

    def _relay(self, direction: _Direction, data: bytes, port: _Port | None, to: Address) -> None:
        self.last_s = asyncio.get_running_loop().time()
        if port is None:
            direction.drop()
        else:
            direction.take(data, port, to)


class _Port:
    """A UDP socket without a buffer of our own: what the kernel does not take at once is dropped."""

    def __init__(self, host: str, on_packet: Callable[[bytes, Address], None]) -> None:
        self._on_packet = on_packet
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER_BYTES)
        self._socket.bind((host, 0))
        self.address: Address = self._socket.getsockname()[:2]
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._read)

    def send(self, data: bytes, to: Address) -> bool:
        try:
            self._socket.sendto(data, to)
        except OSError as error:  # the kernel is full, or there is no way to the address
            logger.debug("x not sent to %s:%d: %s", *to, error)
            return False
        return True

    def close(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _read(self) -> None:
        for _ in range(READS_AT_ONCE):
            try:
                data, address = self._socket.recvfrom(DATAGRAM_BYTES)
            except BlockingIOError:
                return
            self._on_packet(data, address[:2])


@dataclass(frozen=True)
class _Packet:
    number: int
    is_copy: bool
    data: bytes
    port: _Port
    to: Address


class _Direction:
    def __init__(self, impairment: Impairment, rng: np.random.Generator, max_waiting: int) -> None:
        self.statistics = Statistics()
        self._max_waiting = max_waiting
        self._link = Link(impairment, rng)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[float, int, _Packet]] = []  # heap by (leaves_s, order of arrival)
        self._num_queued = 0
        self._last_sent = 0
        self._timer: asyncio.TimerHandle | None = None

    def impair(self, impairment: Impairment, rng: np.random.Generator) -> None:
        self._link = Link(impairment, rng)

    def drop(self) -> None:
        self.statistics.num_received += 1
        self.statistics.num_dropped += 1

    def take(self, data: bytes, port: _Port, to: Address) -> None:
        if len(self._waiting) >= self._max_waiting:
            self.drop()
            return
        now, count = self._loop.time(), self.statistics
        count.num_received += 1
        passage = self._link.offer(len(data), now)
        count.num_lost += passage.fate == "lost"
        count.num_dropped += passage.fate == "dropped"
        count.num_waiting += passage.fate == "delivered"
        for i, leaves_s in enumerate(passage.leaves_s):
            self._num_queued += 1
            packet = _Packet(count.num_received, i > 0, data, port, to)
            heapq.heappush(self._waiting, (leaves_s, self._num_queued, packet))
        self._send_due()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()

    def _send_due(self) -> None:
        now = self._loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            leaves_s, _, packet = heapq.heappop(self._waiting)
            self.statistics.worst_late_s = max(self.statistics.worst_late_s, now - leaves_s)
            self._send(packet)
        self._arm(now)

    def _arm(self, now: float) -> None:
        """Wake when the next is due; not sooner than a timer can tell from now, else uvloop spins until then."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._timer = self._loop.call_at(max(self._waiting[0][0], now + TIMER_STEP_S), self._send_due)

    def _send(self, packet: _Packet) -> None:
        count, is_sent = self.statistics, packet.port.send(packet.data, packet.to)
        if packet.is_copy:
            count.num_copies += is_sent
            return
        count.num_waiting -= 1
        count.num_sent += is_sent
        count.num_dropped += not is_sent
        if is_sent:
            count.num_reordered += packet.number < self._last_sent
            self._last_sent = max(self._last_sent, packet.number)
