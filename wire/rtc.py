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
from collections import deque
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
BAD_SDP = (
    ValueError,
    AssertionError,
    LookupError,
    AttributeError,
    TypeError,
    InvalidAccessError,
    InvalidStateError,
    StopIteration,
)
FRAME_SAMPLES = round(RTC_HZ * AUDIO_FRAME_S)
MAX_FRAMES = 16  # given and not yet sent; above this the giver waits
SETTLED_FRAMES = 25  # of silence, until the encoder has come to rest
MAX_LATE_S = 0.1  # a process that stood still for longer does not send the silence of that time in a burst
OPUS_PARAMETERS = "minptime=10;useinbandfec=1;usedtx=0"  # RFC 7587, 6.1: what we want to be sent
EVENT_CLOCKS_HZ = (8000, RTC_HZ)  # RFC 7874, 3 and RFC 4733, 2.1: those of the audio that events stand among
EVENTS = "0-15"  # RFC 4733, 2.4.1: the keys of a telephone
_SILENCE: Pcm16 = np.zeros(FRAME_SAMPLES, np.int16)
_TIME_BASE = fractions.Fraction(1, RTC_HZ)


def audio_codecs(sdp: str) -> list[RTCRtpCodecParameters]:
    """Of the first audio that flows, the preferred one first; none when none does."""
    return [codec for codec in _flowing(sdp) if not is_event(codec)]


def event_clocks_hz(sdp: str) -> dict[int, int]:
    """Of its telephone events, by payload type."""
    return {codec.payloadType or 0: codec.clockRate for codec in _flowing(sdp) if is_event(codec)}


def _flowing(sdp: str) -> list[RTCRtpCodecParameters]:
    for media in SessionDescription.parse(sdp).media:
        if media.kind == "audio" and media.port and media.direction != "inactive":
            return list(media.rtp.codecs)
    return []


def is_event(codec: RTCRtpCodecParameters) -> bool:
    return codec.mimeType.lower() == "audio/telephone-event"


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
        self._frames: deque[tuple[int, Pcm16]] = deque()
        self._room = asyncio.Event()  # for one more
        self._wake: asyncio.Future[None] | None = None
        self._num_silent = 0  # frames in a row
        self._packet = b""  # the last one
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
            sample = self._given - self._part.size - FRAME_SAMPLES
            while len(self._frames) >= MAX_FRAMES:
                self._room.clear()
                await self._room.wait()
            self._frames.append((sample, frame))
            self._wake_up()

    def clear(self) -> None:
        """Drop what has not been sent."""
        self._part = self._part[:0]
        self._frames.clear()
        self._room.set()

    async def recv(self) -> av.AudioFrame | av.Packet:
        """The next frame, when it is to leave. Raises: MediaStreamError when the track was stopped."""
        if self.readyState != "live":
            raise MediaStreamError
        now = time.monotonic()
        if now > self._due_s + MAX_LATE_S:
            self._due_s = now
        if not self._frames and now < self._due_s:
            await self._wait_until(self._due_s)
        self._room.set()
        if self._frames:
            sample, pcm = self._frames.popleft()
        else:
            sample, pcm = self._given - self._part.size, self._part
            self._part = self._part[:0]
        if pcm.size:
            self._on_frame(sample)
        self._due_s += AUDIO_FRAME_S
        item = av.Packet(self._encoded(pcm)) if self.encodes_opus else _stereo(_filled(pcm))
        item.time_base = _TIME_BASE
        item.pts = self._num_sent * FRAME_SAMPLES
        self._num_sent += 1
        return item

    async def _wait_until(self, due_s: float) -> None:
        """Or until there is a frame: a future and a timer, because a queue with a timeout costs five times as much."""
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        timer = loop.call_later(due_s - time.monotonic(), self._wake_up)
        try:
            await self._wake
        finally:
            timer.cancel()

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _encoded(self, pcm: Pcm16) -> bytes:
        """Of long silence the packets are all alike, and made once."""
        self._num_silent = 0 if pcm.any() else self._num_silent + 1
        if self._num_silent <= SETTLED_FRAMES:
            self._packet = self._encoder.encode(_filled(pcm))
        return self._packet


def _filled(pcm: Pcm16) -> Pcm16:
    """A whole frame."""
    return pcm if pcm.size == FRAME_SAMPLES else np.concatenate([pcm, _SILENCE[pcm.size :]])


def _stereo(pcm: Pcm16) -> av.AudioFrame:
    """Both channels alike: aiortc would make stereo of mono by itself, 3 dB quieter."""
    frame = av.AudioFrame.from_ndarray(np.repeat(pcm, 2)[np.newaxis], "s16", "stereo")
    frame.sample_rate = RTC_HZ
    return frame
