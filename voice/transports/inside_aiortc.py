"""Where we reach into aiortc 1.16, each place watched over by a test: what it does not let us have otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
from collections.abc import Callable, Sequence

from aiortc import RTCDtlsTransport, RTCPeerConnection, RTCRtpCodecParameters, RTCRtpReceiver, RTCRtpTransceiver
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtp import RtpPacket

logger = logging.getLogger(__name__)

CANCELLED_S = 0.1  # for tasks that were cancelled to end
MAX_JITTER_Q4 = ((1 << 32) - 1) << 4  # of a report: 32 bits (RFC 3550, 6.4.1); aiortc counts in sixteenths
MAX_REPORTED = 8  # sources in a report; it has room for 31


class _PacketTap:
    """In place of aiortc's jitter buffer: every packet is handed on as it comes, and none is left to its decoder.

    `streams`: what aiortc will report, by source. Clocks that go to and fro, or many sources, would make a report that
    cannot be written, and its task die.
    """

    def __init__(self, on_packet: Callable[[RtpPacket], None], streams: dict[int, StreamStatistics]) -> None:
        self._on_packet = on_packet
        self._streams = streams

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        stream = self._streams[packet.ssrc]
        stream._jitter_q4 = min(stream._jitter_q4, MAX_JITTER_Q4)
        while len(self._streams) > MAX_REPORTED:
            del self._streams[next(iter(self._streams))]
        self._on_packet(packet)
        return False, None


def hand_over_packets(receiver: RTCRtpReceiver, on_packet: Callable[[RtpPacket], None]) -> None:
    assert hasattr(receiver, "_RTCRtpReceiver__jitter_buffer"), "aiortc has changed"
    tap = _PacketTap(on_packet, getattr(receiver, "_RTCRtpReceiver__remote_streams"))  # noqa: B009
    setattr(receiver, "_RTCRtpReceiver__jitter_buffer", tap)  # noqa: B010
    _drop_malformed(receiver.transport)


def _drop_malformed(transport: RTCDtlsTransport) -> None:
    """aiortc drops most of what is no RTCP; feedback that ends too early would end the connection."""
    handle = transport._handle_rtcp_data

    async def handle_or_drop(data: bytes) -> None:
        try:
            await handle(data)
        except struct.error as error:
            logger.debug("x feedback that cannot be read: %s", error)

    transport._handle_rtcp_data = handle_or_drop  # type: ignore[method-assign]


def accept(transceiver: RTCRtpTransceiver, more: Sequence[RTCRtpCodecParameters]) -> None:
    """Between offer and answer: take packets of these payload types too. They stand last, so none is what we send.

    aiortc negotiates what is in its one list of codecs for the whole process, and would send the first that is common.
    """
    assert transceiver._codecs, "aiortc has changed"
    transceiver._codecs = [*transceiver._codecs, *more]


def partial_bytes(peer: RTCPeerConnection) -> int:
    """What SCTP holds of messages that are not complete."""
    return (1 << 20) - peer.sctp._advertised_rwnd if peer.sctp is not None else 0


async def tear_down(peer: RTCPeerConnection, limit_s: float) -> None:
    """What `close` did not come to, because it waits for a task that has died: nothing goes on, the peer is told."""
    sctp = peer.sctp
    dtls = {transceiver.sender.transport for transceiver in peer.getTransceivers()}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            if sctp is not None:
                await sctp.stop()
                dtls.add(sctp.transport)
            for transport in dtls:
                await transport.stop()
                await transport.transport.stop()
    for transceiver in peer.getTransceivers():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCELLED_S):  # it cancels its tasks, then waits for the one that has died
                await transceiver.sender.stop()
