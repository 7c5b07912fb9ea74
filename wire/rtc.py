"""What both ends of a WebRTC call share: where it is asked for, what a bad SDP raises, what is agreed on, and the track
they speak on.

The track never falls silent: it sends 20 ms of what it is given, and silence while it is given nothing. What is given
leaves at once, because whoever gives it paces it; silence leaves when it is due. So packets go out without a gap,
which keeps the receiver's jitter buffer steady and tells it that we are alive, and the first word after a silence
waits for nothing.

It hands aiortc packets of Opus that are ready to leave, as tracks may: aiortc's own encoder takes stereo, 96 kb/s and a
thread, and makes no FEC. Other codecs are left to aiortc.
"""

from __future__ import annotations

import asyncio
import fractions
import time
from collections.abc import Callable

import av
import numpy as np
from aiortc import MediaStreamTrack, RTCRtpCodecParameters
from aiortc.exceptions import InvalidAccessError, InvalidStateError
from aiortc.mediastreams import MediaStreamError
from aiortc.sdp import SessionDescription

from wire import opus
from wire.calls import RTC_HZ
from wire.pcm import AUDIO_FRAME_S, Pcm16

PATH = "/v1/calls/rtc"
SDP = "application/sdp"  # RFC 9725, 4.2
FRAGMENT = "application/trickle-ice-sdpfrag"  # RFC 8840, 4.4
# What aiortc raises for an SDP that is none, beside its own errors.
BAD_SDP = (ValueError, AssertionError, LookupError, AttributeError, TypeError, InvalidAccessError, InvalidStateError)
FRAME_SAMPLES = round(RTC_HZ * AUDIO_FRAME_S)
MAX_FRAMES = 16  # given and not yet sent; above this the giver waits
MAX_LATE_S = 0.1  # a process that stood still for longer does not send the silence of that time in a burst
OPUS_PARAMETERS = "minptime=10;useinbandfec=1;usedtx=0"  # RFC 7587, 6.1: what we want to be sent
_TIME_BASE = fractions.Fraction(1, RTC_HZ)


def audio_codecs(sdp: str) -> list[RTCRtpCodecParameters]:
    """Of the first audio that flows, the preferred one first; none when none does."""
    for media in SessionDescription.parse(sdp).media:
        if media.kind == "audio" and media.port and media.direction != "inactive":
            return list(media.rtp.codecs)
    return []


def is_opus(codec: RTCRtpCodecParameters) -> bool:
    return codec.mimeType.lower() == "audio/opus"


def asking_for_fec(sdp: str) -> str:
    """Whoever sends us Opus is to send FEC with it, and no DTX: aiortc leaves both out of its SDP."""
    lines = []
    for line in sdp.splitlines():
        lines.append(line)
        if line.startswith("a=rtpmap:") and " opus/" in line.lower():
            payload_type = line.removeprefix("a=rtpmap:").split()[0]
            lines.append(f"a=fmtp:{payload_type} {OPUS_PARAMETERS}")
    return "\r\n".join(lines) + "\r\n"


class PacedTrack(MediaStreamTrack):
    """`on_frame` is called with the number of the given sample with which the frame that leaves now begins.

    `encodes_opus`: what was agreed on is Opus; set by whoever agreed.
    """

    kind = "audio"

    def __init__(self, on_frame: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self.encodes_opus = False
        self._encoder = opus.Encoder(RTC_HZ)
        self._on_frame = on_frame
        self._frames: asyncio.Queue[tuple[int, Pcm16]] = asyncio.Queue(MAX_FRAMES)
        self._part: Pcm16 = np.zeros(0, np.int16)  # of the next frame
        self._given = 0
        self._num_sent = 0  # frames
        self._due_s = 0.0  # when the next frame is due if it is silence

    async def put(self, pcm: Pcm16) -> None:
        """Audio at `RTC_HZ`; waits while much is still unsent."""
        self._given += pcm.size
        self._part = np.concatenate([self._part, pcm])
        while self._part.size >= FRAME_SAMPLES:
            frame, self._part = self._part[:FRAME_SAMPLES], self._part[FRAME_SAMPLES:]
            await self._frames.put((self._given - self._part.size - FRAME_SAMPLES, frame))

    def clear(self) -> None:
        """Drop what has not been sent."""
        self._part = self._part[:0]
        while not self._frames.empty():
            self._frames.get_nowait()

    async def recv(self) -> av.AudioFrame | av.Packet:
        """The next frame, when it is to leave. Raises: MediaStreamError when the track was stopped."""
        if self.readyState != "live":
            raise MediaStreamError
        now = time.monotonic()
        if now > self._due_s + MAX_LATE_S:
            self._due_s = now
        try:
            async with asyncio.timeout(max(0.0, self._due_s - now)):
                sample, pcm = await self._frames.get()
        except TimeoutError:
            sample, pcm = self._given - self._part.size, self._part
            self._part = self._part[:0]
        if pcm.size:
            self._on_frame(sample)
        self._due_s += AUDIO_FRAME_S
        if pcm.size < FRAME_SAMPLES:
            pcm = np.pad(pcm, (0, FRAME_SAMPLES - pcm.size))
        item = av.Packet(self._encoder.encode(pcm)) if self.encodes_opus else _stereo(pcm)
        item.time_base = _TIME_BASE
        item.pts = self._num_sent * FRAME_SAMPLES
        self._num_sent += 1
        return item


def _stereo(pcm: Pcm16) -> av.AudioFrame:
    """Both channels alike: aiortc would make stereo of mono by itself, 3 dB quieter."""
    frame = av.AudioFrame.from_ndarray(np.repeat(pcm, 2)[np.newaxis], "s16", "stereo")
    frame.sample_rate = RTC_HZ
    return frame
