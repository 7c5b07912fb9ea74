"""Where we reach into aiortc 1.16, each place watched over by a test: what it does not let us have otherwise."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from aiortc import RTCPeerConnection, RTCRtpCodecParameters, RTCRtpReceiver, RTCRtpTransceiver
from aiortc.rtp import RtpPacket

CANCELLED_S = 0.1  # for tasks that were cancelled to end


class _PacketTap:
    """In place of aiortc's jitter buffer: every packet is handed on as it comes, and none is left to its decoder."""

    def __init__(self, on_packet: Callable[[RtpPacket], None]) -> None:
        self._on_packet = on_packet

    def add(self, packet: RtpPacket) -> tuple[bool, None]:
        self._on_packet(packet)
        return False, None


def hand_over_packets(receiver: RTCRtpReceiver, on_packet: Callable[[RtpPacket], None]) -> None:
    assert hasattr(receiver, "_RTCRtpReceiver__jitter_buffer"), "aiortc has changed"
    setattr(receiver, "_RTCRtpReceiver__jitter_buffer", _PacketTap(on_packet))  # noqa: B010


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
