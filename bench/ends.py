"""The caller's end of a call, for benches: what is said, and every packet of the agent's audio as it comes."""

from __future__ import annotations

import time

from bench.listening import RtpPacket
from load.caller import Speech
from load.hearing import audible
from load.lines.boundary import Line
from load.lines.rtc_peer import RtcPeer
from tests.speech import clip

JITTER_BUFFER = "_RTCRtpReceiver__jitter_buffer"


class Tap:
    """In front of an aiortc jitter buffer: keeps every packet."""

    def __init__(self, line: Line) -> None:
        assert isinstance(line, RtcPeer)
        [receiver] = line._peer.getReceivers()
        self._behind = getattr(receiver, JITTER_BUFFER)
        setattr(receiver, JITTER_BUFFER, self)
        self.packets: list[RtpPacket] = []

    def add(self, packet):
        last = self.packets[-1].timestamp if self.packets else packet.timestamp
        ahead = (packet.timestamp - last + (1 << 31)) % (1 << 32) - (1 << 31)
        self.packets.append(RtpPacket(time.monotonic(), last + ahead, packet.payload))
        return self._behind.add(packet)


def said_by_callers(rate_hz: int) -> Speech:
    pcm, text = clip("hello_world", rate_hz)
    spans = audible(pcm, rate_hz)
    return Speech("hello_world", text, pcm, spans[0].start, spans[-1].end)
