"""The relay between raw sockets, and between real WebRTC peers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

from load.faults import udp
from load.faults.impairment import (
    NO_IMPAIRMENT,
    Delay,
    Duplicate,
    Impairment,
    Jitter,
    Loss,
    Reorder,
)
from load.faults.sdp import Address, candidates
from load.faults.udp import Statistics, UdpRelay
from wire.ice import use_addresses
from wire.rtc import PacedTrack

SEED = 7
CANDIDATE = "m=audio 9 X 0\r\na=candidate:1 1 udp 100 {} {} typ host\r\n"


class End:
    """A peer: a UDP socket that keeps what it gets."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", 0))
        self.address: Address = self._socket.getsockname()
        self.sdp = CANDIDATE.format(*self.address)

    def send(self, data: bytes, to: Address) -> None:
        self._socket.sendto(data, to)

    async def receive(self) -> tuple[bytes, Address]:
        async with asyncio.timeout(5):
            return await asyncio.get_running_loop().sock_recvfrom(self._socket, 2000)

    def waiting(self) -> list[bytes]:
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self._socket.recv(2000))
        return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def ends() -> Iterator[tuple[End, End]]:
    caller, server = End(), End()
    yield caller, server
    caller.close()
    server.close()


@contextlib.asynccontextmanager
async def relaying(
    up: Impairment = NO_IMPAIRMENT, down: Impairment = NO_IMPAIRMENT, max_waiting: int = udp.MAX_WAITING
) -> AsyncIterator[UdpRelay]:
    relay = UdpRelay(up, down, np.random.default_rng(SEED), max_waiting=max_waiting)
    try:
        yield relay
    finally:
        relay.close()


async def eventually(holds, within_s: float = 5.0) -> None:
    until_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until_s
        await asyncio.sleep(0.005)


def balance(statistics: Statistics) -> int:
    return statistics.num_sent + statistics.num_lost + statistics.num_dropped + statistics.num_waiting


async def test_each_side_sees_the_relay_for_the_other(ends: tuple[End, End]) -> None:
    caller, server = ends
    async with relaying() as relay:
        [seen_by_server] = candidates(relay.offer(caller.sdp))
        [seen_by_caller] = candidates(relay.answer(server.sdp))
        caller.send(b"up", seen_by_caller)
        assert await server.receive() == (b"up", seen_by_server)
        server.send(b"down", seen_by_server)
        assert await caller.receive() == (b"down", seen_by_caller)


async def test_addresses_nobody_announced_get_a_port_of_their_own(ends: tuple[End, End]) -> None:
    caller, server = ends
    async with relaying() as relay:
        [near] = candidates(relay.answer(server.sdp))
        caller.send(b"hello", near)
        data, learnt = await server.receive()
        server.send(data, learnt)
        assert await caller.receive() == (b"hello", near)
        other = End()
        other.send(b"me too", near)
        assert (await server.receive())[1] != learnt
        other.close()


async def test_ports_are_bounded(ends: tuple[End, End]) -> None:
    async with relaying() as relay:
        offer = "m=audio 9 X 0\r\n" + "".join(
            f"a=candidate:1 1 udp {i} 127.0.0.1 {1000 + i} typ host\r\n" for i in range(40)
        )
        assert len(candidates(relay.offer(offer))) == udp.MAX_PORTS
        [near] = candidates(relay.answer(ends[1].sdp))
        ends[0].send(b"no room", near)
        await eventually(lambda: relay.up.num_dropped == 1)
        assert balance(relay.up) == relay.up.num_received == 1


async def test_every_packet_is_accounted_for(ends: tuple[End, End]) -> None:
    caller, server = ends
    path = Impairment(loss=Loss(0.2), duplicate=Duplicate(0.2), reorder=Reorder(0.2, 0.02))
    async with relaying(up=path) as relay:
        [near] = candidates(relay.answer(server.sdp))
        for i in range(200):
            caller.send(i.to_bytes(2, "big"), near)
            await asyncio.sleep(0.0005)
        await eventually(lambda: relay.up.num_received == 200 and relay.up.num_waiting == 0)
        await asyncio.sleep(0.03)  # copies of what was held
        got = [int.from_bytes(data, "big") for data in server.waiting()]
    up = relay.up
    assert balance(up) == 200
    assert len(got) == up.num_sent + up.num_copies
    assert len(set(got)) == up.num_sent
    assert 0 < up.num_lost < 80
    assert up.num_copies > 10
    assert up.num_reordered > 10
    assert relay.down == Statistics()


async def test_order_is_kept_also_when_packets_leave_together(ends: tuple[End, End]) -> None:
    caller, server = ends
    async with relaying(up=Impairment(jitter=Jitter(0.05))) as relay:
        [near] = candidates(relay.answer(server.sdp))
        for i in range(100):
            caller.send(bytes([i]), near)
        await eventually(lambda: relay.up.num_sent == 100)
        assert [data[0] for data in server.waiting()] == list(range(100))
        assert relay.up.num_reordered == 0


async def test_an_impairment_changes_while_packets_run(ends: tuple[End, End]) -> None:
    caller, server = ends
    async with relaying() as relay:
        [near] = candidates(relay.answer(server.sdp))
        relay.impair(Impairment(loss=Loss(1.0)), NO_IMPAIRMENT)
        caller.send(b"lost", near)
        await eventually(lambda: relay.up.num_lost == 1)
        relay.impair(NO_IMPAIRMENT, NO_IMPAIRMENT)
        caller.send(b"there", near)
        assert (await server.receive())[0] == b"there"


async def test_what_waits_is_bounded(ends: tuple[End, End]) -> None:
    caller, server = ends
    async with relaying(up=Impairment(delay=Delay(5.0)), max_waiting=10) as relay:
        [near] = candidates(relay.answer(server.sdp))
        for _ in range(30):
            caller.send(b"x", near)
        await eventually(lambda: relay.up.num_received == 30)
        assert (relay.up.num_waiting, relay.up.num_dropped) == (10, 20)


class Peer:
    """A WebRTC peer that speaks without pause and counts the frames it hears."""

    def __init__(self) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.voice = PacedTrack()
        self.connection.addTrack(self.voice)
        self.num_frames = 0
        self.tasks: list[asyncio.Task[None]] = []
        self.connection.on("track", lambda track: self.tasks.append(asyncio.create_task(self._listen(track))))

    async def _listen(self, track) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                await track.recv()
                self.num_frames += 1

    async def close(self) -> None:
        await self.connection.close()
        await asyncio.gather(*self.tasks)


@contextlib.asynccontextmanager
async def talking(relay: UdpRelay) -> AsyncIterator[tuple[Peer, Peer]]:
    use_addresses(("127.0.0.1",))
    caller, server = Peer(), Peer()
    try:
        await caller.connection.setLocalDescription(await caller.connection.createOffer())
        offer = relay.offer(caller.connection.localDescription.sdp)
        await server.connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await server.connection.setLocalDescription(await server.connection.createAnswer())
        answer = relay.answer(server.connection.localDescription.sdp)
        await caller.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await eventually(lambda: caller.connection.connectionState == "connected", 15)
        yield caller, server
    finally:
        await caller.close()
        await server.close()
        use_addresses(())


@pytest.mark.slow
async def test_webrtc_peers_talk_through_the_relay_and_through_it_alone() -> None:
    async with relaying() as relay, talking(relay) as (caller, server):
        await eventually(lambda: min(caller.num_frames, server.num_frames) > 20)
        relay.impair(Impairment(loss=Loss(1.0)), Impairment(loss=Loss(1.0)))
        await asyncio.sleep(0.2)  # what was under way, and in the jitter buffer
        heard = caller.num_frames, server.num_frames
        await asyncio.sleep(0.3)
        assert (caller.num_frames, server.num_frames) == heard
    assert balance(relay.up) == relay.up.num_received


@pytest.mark.slow
async def test_a_lossy_and_jittery_call_goes_on_and_shows_both() -> None:
    path = Impairment(loss=Loss(0.1), jitter=Jitter(0.04))
    async with relaying(path, path) as relay, talking(relay) as (caller, server):
        transceiver = server.connection.getTransceivers()[0]
        await eventually(lambda: server.num_frames > 150 and caller.num_frames > 150, 30)
        reports = [r for r in (await transceiver.receiver.getStats()).values() if r.type == "inbound-rtp"]
        assert caller.connection.connectionState == server.connection.connectionState == "connected"
    [report] = reports
    share = report.packetsLost / (report.packetsLost + report.packetsReceived)
    assert share == pytest.approx(0.1, abs=0.08)
    assert report.jitter / 48_000 > 0.003  # RFC 3550, 6.4.1: smoothed difference of transit times
    assert relay.up.num_lost + relay.down.num_lost > 15
