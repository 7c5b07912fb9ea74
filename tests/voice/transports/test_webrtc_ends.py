"""What ends a call over WebRTC that only its peer connection knows of, and a peer connection that does not end."""

from __future__ import annotations

import asyncio
import struct
import threading

import pytest
from aiortc import RTCDataChannel

from tests.rtc_peer import direct_call, until_state
from voice.transports.webrtc import SILENT_S, WATCH_S, WebRtcTransport
from wire.errors import PeerError

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
