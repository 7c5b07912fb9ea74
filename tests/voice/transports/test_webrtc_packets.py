"""Packets as aiortc hands them over, on both event loops: tests run on asyncio's, the server on uvloop's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
import uvloop
from aiortc import RTCRtpCodecParameters
from aiortc.rtp import RtpPacket

from tests.speech import clip
from voice.media.rtp import RtpAudio
from voice.transports.webrtc import EARS_HZ, MAX_SOURCES, WebRtcTransport
from wire import opus
from wire.errors import PeerError
from wire.pcm import Pcm16

OPUS = RTCRtpCodecParameters("audio/opus", 48000, 2, 111)
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


def packets() -> list[RtpPacket]:
    pcm, _ = clip("hello_world", EARS_HZ)
    encoder, made = opus.Encoder(EARS_HZ), []
    for number in range(40):
        packet = RtpPacket(payload_type=111, sequence_number=number, timestamp=960 * number)
        packet.ssrc, packet.payload = 7, encoder.encode(pcm[320 * number : 320 * (number + 1)])
        made.append(packet)
    return made


async def heard(transport: WebRtcTransport) -> list[Pcm16]:
    found = []
    while len(transport._inbox):
        item = await transport.receive()
        assert isinstance(item, np.ndarray)
        found.append(item)
    return found


@LOOPS
def test_packets_late_lost_and_swapped_are_heard_in_real_time(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def play() -> tuple[int, Exception | object | None]:
        transport = WebRtcTransport([], ["127.0.0.1"])
        transport._audio = RtpAudio(EARS_HZ, {111: OPUS})
        num_samples = 0
        for number, packet in enumerate(packets()):
            if number in (5, 6, 20):  # lost, so that holes are waited for, some already overdue
                continue
            transport._on_packet(packet)
            await asyncio.sleep(0.1 if number == 10 else 0.0 if number in (11, 12, 13, 14) else 0.02)
            num_samples += sum(pcm.size for pcm in await heard(transport))
        await asyncio.sleep(0.3)  # nothing comes: silence goes on by the timer
        num_samples += sum(pcm.size for pcm in await heard(transport))
        end = transport._end
        await transport.close()
        return num_samples, end

    with asyncio.Runner(loop_factory=new_loop) as runner:
        num_samples, end = runner.run(play())
    assert end is None
    assert num_samples / EARS_HZ == pytest.approx(40 * 0.02 + 0.3, abs=0.15)


class Overdue(RtpAudio):
    """Waits for a packet whose time is now."""

    has_hole = True  # type: ignore[assignment]

    def wake_s(self) -> float | None:
        return asyncio.get_running_loop().time()


@LOOPS
def test_what_is_due_at_once_may_be_due_again(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """uvloop's handle for it is no timer."""

    async def play() -> Exception | object | None:
        transport = WebRtcTransport([], ["127.0.0.1"])
        transport._audio = Overdue(EARS_HZ, {111: OPUS})
        for packet in packets()[:3]:
            transport._on_packet(packet)
        end = transport._end
        await transport.close()
        return end

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(play()) is None


@LOOPS
def test_a_bug_of_ours_ends_the_call_and_is_told(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def play() -> None:
        transport = WebRtcTransport([], ["127.0.0.1"])
        transport._audio = RtpAudio(EARS_HZ, {111: OPUS})
        transport._audio.push = None  # type: ignore[assignment, method-assign]
        transport._on_packet(packets()[0])  # aiortc's transport lives
        with pytest.raises(TypeError):
            await transport.receive()
        await transport.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())


def test_sources_may_have_clocks_of_their_own() -> None:
    """RFC 3550, 5.1: each begins anywhere; a gateway may send keys from another source than the voice."""

    async def play() -> Exception | object | None:
        transport = WebRtcTransport([], ["127.0.0.1"])
        transport._audio = RtpAudio(EARS_HZ, {111: OPUS})
        transport._event_clocks_hz = {101: 8000}
        for number, packet in enumerate(packets()):
            event = RtpPacket(payload_type=101, sequence_number=number, timestamp=(1 << 32) - 1 - number)
            event.ssrc, event.payload = 8, b"\x0b\x0a\0\xff"
            transport._on_packet(packet)
            transport._on_packet(event)
        end, num_lost = transport._end, transport._audio.take_counts().lost
        await transport.close()
        return end or num_lost

    with asyncio.Runner() as runner:
        assert not runner.run(play())


def test_what_is_remembered_of_sources_is_bounded() -> None:
    async def play() -> tuple[int, Exception | object | None]:
        transport = WebRtcTransport([], ["127.0.0.1"])
        transport._audio = RtpAudio(EARS_HZ, {111: OPUS})
        packet = packets()[0]
        accepted = 0
        for number in range(MAX_SOURCES + 10):
            packet.ssrc = number
            transport._on_packet(packet)
            accepted += transport._end is None
        queued = len(transport._inbox)
        transport._inbox.put(np.zeros(320, np.int16))  # nothing is taken after the end
        assert len(transport._inbox) == queued
        await transport.close()
        return accepted, transport._end

    with asyncio.Runner() as runner:
        accepted, end = runner.run(play())
    assert accepted == MAX_SOURCES
    assert isinstance(end, PeerError)
