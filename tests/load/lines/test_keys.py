from __future__ import annotations

import asyncio

from aiortc import RTCDtlsTransport
from aiortc.rtp import RtcpByePacket, RtpPacket
from aiortc.sdp import SessionDescription

from load.lines.keys import END_PACKETS, HELD_PACKETS, PAYLOAD_TYPES, KeyedTransport, agreed_payload_type, offering_keys
from wire.calls import KEYS
from wire.rtc import audio_codecs, event_clocks_hz

OFFER = "\r\n".join(
    (
        "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0",
        "m=audio 9 UDP/TLS/RTP/SAVPF 96 0\r\nc=IN IP4 0.0.0.0\r\na=sendrecv\r\na=mid:0",
        "a=rtpmap:96 opus/48000/2\r\na=rtpmap:0 PCMU/8000",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\n",
    )
)


class Network(RTCDtlsTransport):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def _send_rtp(self, data: bytes) -> None:
        self.sent.append(data)


def audio(number: int) -> bytes:
    packet = RtpPacket(payload_type=96, sequence_number=(65530 + number) % (1 << 16), timestamp=960 * number)
    packet.ssrc, packet.payload = 5, b"audio"
    return bytes(packet.serialize())


def sent(keys: str, num_packets: int) -> list[RtpPacket]:
    network = Network()
    keyed = KeyedTransport(network, 110)

    async def send() -> None:
        await keyed._send_rtp(audio(0))
        keyed.press(keys)
        for number in range(1, num_packets):
            await keyed._send_rtp(audio(number))
            await keyed._send_rtp(bytes(RtcpByePacket(sources=[5])))

    asyncio.run(send())
    reports = [data for data in network.sent if data == bytes(RtcpByePacket(sources=[5]))]
    assert len(reports) == num_packets - 1
    return [RtpPacket.parse(data) for data in network.sent if data not in reports]


def test_keys_take_the_place_of_audio_and_leave_no_hole() -> None:
    packets = sent("1#", 40)
    assert [packet.sequence_number for packet in packets] == [(65530 + n) % (1 << 16) for n in range(40)]
    assert {packet.ssrc for packet in packets} == {5}
    events = [packet for packet in packets if packet.payload_type == 110]
    assert len(events) == 2 * (HELD_PACKETS + END_PACKETS)
    assert [packet.timestamp for packet in packets if packet.payload_type == 96] == [
        960 * n for n, packet in enumerate(packets) if packet.payload_type == 96
    ]


def test_a_key_is_told_as_the_standard_has_it() -> None:
    events = [packet for packet in sent("#", 20) if packet.payload_type == 110]
    assert {packet.timestamp for packet in events} == {960}
    assert [packet.marker for packet in events] == [1, 0, 0, 0, 0, 0]
    durations = [int.from_bytes(packet.payload[2:], "big") for packet in events]
    assert durations == [960, 1920, 2880, 2880, 2880, 2880]
    assert [packet.payload[:2] for packet in events] == 3 * [bytes([11, 10])] + 3 * [bytes([11, 0x8A])]


def test_every_key_has_its_number() -> None:
    packets = sent(KEYS, 16 * 9 + 1)
    numbers = [packet.payload[0] for packet in packets if packet.marker and packet.payload_type == 110]
    assert numbers == list(range(16))


def test_the_offer_has_keys_behind_the_audio_and_nowhere_else() -> None:
    offer = offering_keys(OFFER)
    assert event_clocks_hz(offer) == PAYLOAD_TYPES
    assert [codec.mimeType for codec in audio_codecs(offer)] == ["audio/opus", "audio/PCMU"]
    audio_section, data_section = SessionDescription.parse(offer).media
    assert audio_section.fmt == [96, 0, *PAYLOAD_TYPES]
    assert not data_section.rtp.codecs


def test_keys_are_pressed_only_where_their_clock_is_the_audio_s() -> None:
    assert agreed_payload_type(offering_keys(OFFER)) == 110
    assert agreed_payload_type(OFFER) is None
    assert agreed_payload_type(offering_keys(OFFER).replace("telephone-event/48000", "nothing/48000")) is None
