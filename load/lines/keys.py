"""Keys that a caller presses on a line over WebRTC, as telephone events (RFC 4733) in the place of his audio.

aiortc sends what its one encoder makes. So this stands between its sender and the network and makes packets of audio
into packets of keys while one is held, as browsers do: of the same source and sequence, with another payload.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from aiortc import RTCDtlsTransport
from aiortc.rtp import is_rtcp

from wire.calls import KEYS, RTC_HZ
from wire.pcm import AUDIO_FRAME_S
from wire.rtc import EVENTS, audio_codecs, event_clocks_hz

HELD_PACKETS = 3  # 60 ms; ITU-T Q.24 wants at least 40, and as much before the next key
END_PACKETS = 3  # RFC 4733, 2.5.1.4
REST_PACKETS = 3
MAX_WAITING = 64  # keys that are still to be pressed; of more the first are left out
VOLUME = 10  # -10 dBm0
PAYLOAD_TYPES = {110: RTC_HZ, 126: 8000}  # as browsers offer them, one for each clock of the audio
_FRAME_SAMPLES = round(AUDIO_FRAME_S * RTC_HZ)


def offering_keys(sdp: str) -> str:
    """The offer, with telephone events behind the audio."""
    lines, is_audio = [], False
    for line in sdp.splitlines():
        if line.startswith("m="):
            is_audio = line.startswith("m=audio ")
        lines.append(" ".join([line, *map(str, PAYLOAD_TYPES)]) if line.startswith("m=audio ") else line)
        if is_audio and line.startswith("c="):
            lines += [f"a=rtpmap:{number} telephone-event/{clock_hz}" for number, clock_hz in PAYLOAD_TYPES.items()]
            lines += [f"a=fmtp:{number} {EVENTS}" for number in PAYLOAD_TYPES]
    return "\r\n".join([*lines, ""])


def agreed_payload_type(answer: str) -> int | None:
    """Of keys among Opus; none where the answer has them not."""
    clock_hz = audio_codecs(answer)[0].clockRate
    found = [number for number, each_hz in event_clocks_hz(answer).items() if each_hz == clock_hz == RTC_HZ]
    return found[0] if found else None


class KeyedTransport:
    """For the `setTransport` of a sender."""

    def __init__(self, transport: RTCDtlsTransport, payload_type: int) -> None:
        self._transport = transport
        self._payload_type = payload_type
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._num_sent = 0  # packets since the first of the present key
        self._since = 0  # its RTP timestamp

    def press(self, keys: str) -> None:
        """One after the other, from the next packet on."""
        self._waiting.extend(keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def _send_rtp(self, data: bytes) -> None:
        await self._transport._send_rtp(data if is_rtcp(data) or not self._waiting else self._keyed(data))

    def _keyed(self, audio: bytes) -> bytes:
        key, number = self._waiting[0], self._num_sent
        self._num_sent += 1
        if number == 0:
            self._since = int.from_bytes(audio[4:8], "big")
        if number >= HELD_PACKETS + END_PACKETS:
            if self._num_sent == HELD_PACKETS + END_PACKETS + REST_PACKETS:
                self._waiting.popleft()
                self._num_sent = 0
            return audio
        has_ended = number >= HELD_PACKETS
        duration = min(number + 1, HELD_PACKETS) * _FRAME_SAMPLES
        payload = bytes([KEYS.index(key), VOLUME | 0x80 * has_ended]) + duration.to_bytes(2, "big")
        kind = bytes([self._payload_type | 0x80 * (number == 0)])  # RFC 4733, 2.2.2: the marker is on the first
        header = audio[: _header_bytes(audio)]
        return header[:1] + kind + header[2:4] + self._since.to_bytes(4, "big") + header[8:] + payload


def _header_bytes(packet: bytes) -> int:
    """RFC 3550, 5.1 and 5.3.1."""
    size = 12 + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10:
        size += 4 + 4 * int.from_bytes(packet[size + 2 : size + 4], "big")
    return size
