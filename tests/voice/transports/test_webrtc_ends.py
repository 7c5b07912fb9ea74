"""What ends a call over WebRTC that only its peer connection knows of, and a peer connection that does not end."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Iterator

import pytest
from aiortc import RTCDataChannel, RTCPeerConnection
from aiortc.rtp import RtcpByePacket, RtpPacket

from tests.rtc_peer import direct_call, until_state
from voice.transports.webrtc import SILENT_S, WATCH_S, WebRtcTransport
from wire.errors import PeerError
from wire.sockets import Disconnected

pytestmark = pytest.mark.slow


async def test_a_message_without_end_is_noticed_also_while_no_audio_comes() -> None:
    async with direct_call() as (connection, transport):
        connection.getSenders()[0].replaceTrack(None)
        await asyncio.sleep(2 * WATCH_S)
        [channel] = [each for each in connection.sctp._data_channels.values() if isinstance(each, RTCDataChannel)]
        channel.transport._remote_max_message_size = 0  # this caller does not keep to what the answer allowed
        transport._audio.take_counts()
        watching = asyncio.create_task(transport.run())
        channel.send("x" * (8 << 20))
        await asyncio.wait([watching], timeout=SILENT_S - 1)
        assert watching.done()
        assert transport._audio.take_counts().received == 0
    assert isinstance(transport._end, PeerError)
    assert transport._end.code == "too_large"


async def say_goodbye(connection: RTCPeerConnection) -> int:
    """For the source that speaks; returns its number."""
    [sender] = connection.getSenders()
    await sender.transport._send_rtp(bytes(RtcpByePacket(sources=[sender._ssrc])))
    return int(sender._ssrc)


async def test_a_goodbye_of_one_source_does_not_end_the_call_of_the_next() -> None:
    """A gateway that goes over to another stream, or whose number collided (RFC 3550, 8.2)."""
    async with direct_call() as (connection, transport):
        watching = asyncio.create_task(transport.run())
        await asyncio.sleep(0.2)
        [sender] = connection.getSenders()
        sender._ssrc = (await say_goodbye(connection) + 1) % (1 << 32)
        await asyncio.sleep(0.2)
        transport._audio.take_counts()
        await asyncio.sleep(3 * WATCH_S)
        assert not watching.done()
        assert transport._audio.take_counts().received > 10


async def test_after_a_goodbye_silence_is_the_end_sooner() -> None:
    async with direct_call() as (connection, transport):
        watching = asyncio.create_task(transport.run())
        await asyncio.sleep(0.2)
        await say_goodbye(connection)
        connection.getSenders()[0].replaceTrack(None)
        await asyncio.wait([watching], timeout=SILENT_S / 2)
        assert watching.done()
    assert isinstance(transport._end, Disconnected)


def odd_packets(kind: str, payload_type: int) -> Iterator[bytes]:
    for number in range(100):
        packet = RtpPacket(payload_type=payload_type, sequence_number=number)
        packet.ssrc = number if kind == "sources" else 1
        packet.timestamp = (1 << 32) - 1 if kind == "clock" and number % 2 else 0
        packet.payload = b"\xf8\xff\xfe"  # Opus, 20 ms of silence
        yield packet.serialize()
    if kind == "feedback":  # RTCP, with a list of sources that is shorter than it says
        yield struct.pack("!BBHLL4sBBH", 0x8F, 206, 4, 1, 0, b"REMB", 9, 0, 0)


@pytest.mark.parametrize("kind", ["clock", "sources", "feedback"])
async def test_odd_packets_do_not_end_a_call(kind: str) -> None:
    """A gateway may give its streams new clocks and numbers as often as it likes; and reports of them still leave."""
    async with direct_call() as (connection, transport):
        watching = asyncio.create_task(transport.run())
        [transceiver] = transport._peer.getTransceivers()
        reporting: asyncio.Task[None] = getattr(transceiver.receiver, "_RTCRtpReceiver__rtcp_task")  # noqa: B009
        [sender] = connection.getSenders()
        for data in odd_packets(kind, transceiver._codecs[0].payloadType):
            await sender.transport._send_rtp(data)
        await asyncio.sleep(2)  # a report leaves every 1.5 s at most
        assert not reporting.done()
        transport._audio.take_counts()
        await asyncio.sleep(0.3)
        assert transport._audio.take_counts().received > 10
        assert not watching.done()
        assert transport._end is None
        await transport.close()


async def kill_rtcp(transport: WebRtcTransport, end: str) -> None:
    """As a bug of aiortc's does: the task is gone and has not said so, for which closing waits for ever."""
    [transceiver] = transport._peer.getTransceivers()
    victim = transceiver.receiver if end == "receiver" else transceiver.sender
    task: asyncio.Task[None] = getattr(victim, f"_RTCRtp{end.capitalize()}__rtcp_task")

    async def fail(_: object) -> None:
        raise struct.error("a counter that overflows")

    victim._send_rtcp = fail
    with pytest.raises(struct.error):
        await task


@pytest.mark.parametrize("end", ["receiver", "sender"])
async def test_a_connection_whose_reports_died_is_torn_down_and_leaves_nothing(end: str) -> None:
    before, threads = asyncio.all_tasks(), threading.active_count()
    async with direct_call() as (connection, transport):
        await asyncio.sleep(0.2)
        await kill_rtcp(transport, end)
        await transport.close()
        assert transport._voice.readyState == "ended"
        await until_state(connection, "closed", 2)  # the caller is told
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() == before
    assert threading.active_count() <= threads + 1
