"""Keys over WebRTC: what is agreed on, and real packets through aiortc. A new aiortc that breaks it fails here."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from aiortc.rtp import RtpPacket

from tests.rtc_peer import OPUS, direct_call, offer_of, peer, prefer
from voice.transports.webrtc import WebRtcTransport
from wire import calls
from wire.rtc import audio_codecs

PCMU = "audio/PCMU"


def with_events(offer: str, events: dict[int, int], *, first: bool = False) -> str:
    """Events by payload type at these clocks, before or behind the audio."""
    lines = []
    for line in offer.splitlines():
        if line.startswith("m=audio"):
            words, more = line.split(), [str(payload_type) for payload_type in events]
            line = " ".join([*words[:3], *more, *words[3:]] if first else [*words, *more])
        lines.append(line)
        if line == "a=sendrecv":
            lines += [f"a=rtpmap:{number} telephone-event/{clock_hz}" for number, clock_hz in events.items()]
            lines += [f"a=fmtp:{number} 0-16" for number in events]
    return "\r\n".join([*lines, ""])


async def answered(events: dict[int, int], *, first: bool = False, codec: str = OPUS) -> tuple[str, dict[int, int]]:
    transport = WebRtcTransport([], ["127.0.0.1"])
    async with peer() as connection:
        prefer(connection, codec)
        answer = await transport.answer(with_events(await offer_of(connection), events, first=first))
    await transport.close()
    return answer, transport._event_clocks_hz


@pytest.mark.parametrize("codec", [OPUS, PCMU])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("events", [{101: 8000}, {110: 48000, 126: 8000}])
async def test_the_answer_takes_the_events_that_are_offered_and_speaks_in_audio(
    events: dict[int, int], codec: str, *, first: bool
) -> None:
    answer, agreed = await answered(events, first=first, codec=codec)
    assert agreed == events
    [section] = [line for line in answer.splitlines() if line.startswith("m=audio")]
    assert [int(number) for number in section.split()[3:]][-len(events) :] == list(events)
    for number, clock_hz in events.items():
        assert f"a=rtpmap:{number} telephone-event/{clock_hz}" in answer.splitlines()
        assert f"a=fmtp:{number} 0-15" in answer.splitlines()
    assert [each.mimeType for each in audio_codecs(answer)] == [codec]


@pytest.mark.parametrize("events", [{}, {101: 16000}, {96: 8000}, {13: 8000}], ids=str)
async def test_events_that_cannot_be_told_from_audio_are_not_agreed_on(events: dict[int, int]) -> None:
    """Of another clock, of the number that Opus has, of a number that is not to be given away."""
    answer, agreed = await answered(events)
    assert "telephone-event" not in answer
    assert agreed == {}


async def test_of_two_with_one_clock_one_is_taken() -> None:
    assert (await answered({101: 8000, 102: 8000}))[1] == {101: 8000}


async def keys(transport: WebRtcTransport, count: int) -> str:
    """Of what comes between the audio."""
    found = ""
    async with asyncio.timeout(10):
        while len(found) < count:
            item = await transport.receive()
            found += item.digits if isinstance(item, calls.Dtmf) else ""
    return found


@pytest.mark.slow
@pytest.mark.parametrize("codec", [OPUS, PCMU])
async def test_packets_of_events_come_through_aiortc_between_the_audio(codec: str) -> None:
    async with direct_call(lambda sdp: with_events(sdp, {101: 8000, 110: 48000}), codec) as (connection, transport):
        sender = connection.getSenders()[0]
        for number, (payload_type, event) in enumerate([(101, 1), (101, 11), (110, 5)]):
            for n in range(4):
                packet = RtpPacket(payload_type=payload_type, sequence_number=100 * number + n, timestamp=9000 * number)
                packet.ssrc, packet.payload = 77, bytes([event, 0x8A if n else 10, 0, 200])
                await sender.transport._send_rtp(packet.serialize())
        assert await keys(transport, 3) == "1#5"
        while not isinstance(item := await transport.receive(), np.ndarray):  # and the audio goes on
            pass
        assert item.size


@pytest.mark.slow
async def test_keys_may_come_as_messages_as_well() -> None:
    async with direct_call() as (_, transport):
        transport._on_message('{"type":"dtmf","digits":"42#"}')
        assert await keys(transport, 3) == "42#"


async def test_packets_that_hold_no_key_do_no_harm() -> None:
    transport = WebRtcTransport([], ["127.0.0.1"])
    transport._event_clocks_hz = {101: 8000}
    for number, payload in enumerate([b"", b"\1", b"\xff\0\0\0", b"\3\x8a\0\xff"]):
        packet = RtpPacket(payload_type=101, sequence_number=number, timestamp=5)
        packet.ssrc, packet.payload = 7, payload
        transport._on_packet(packet)
    assert transport._end is None
    assert await keys(transport, 1) == "3"
    assert transport._presses.take_num_bad() == 3
    await transport.close()
