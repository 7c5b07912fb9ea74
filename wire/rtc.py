"""What both ends of a WebRTC call share: where it is asked for, what a bad SDP raises, and the track they speak on.

The track never falls silent: it sends 20 ms of what it is given, and silence while it is given nothing. What is given
leaves at once, because whoever gives it paces it; silence leaves when it is due. So packets go out without a gap,
which keeps the receiver's jitter buffer steady and tells it that we are alive, and the first word after a silence
waits for nothing.
"""

from __future__ import annotations

import asyncio
import fractions
import time
from collections.abc import Callable

import av
import numpy as np
from aiortc import MediaStreamTrack
from aiortc.exceptions import InvalidAccessError, InvalidStateError
from aiortc.mediastreams import MediaStreamError

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
_TIME_BASE = fractions.Fraction(1, RTC_HZ)


class PacedTrack(MediaStreamTrack):
    """`on_frame` is called with the number of the given sample with which the frame that leaves now begins."""

    kind = "audio"

    def __init__(self, on_frame: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
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

    async def recv(self) -> av.AudioFrame:
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
        # Both channels alike: aiortc would make stereo of mono by itself, 3 dB quieter.
        channels = np.repeat(np.pad(pcm, (0, FRAME_SAMPLES - pcm.size)), 2)
        frame = av.AudioFrame.from_ndarray(channels[np.newaxis], "s16", "stereo")
        frame.sample_rate, frame.time_base = RTC_HZ, _TIME_BASE
        frame.pts = self._num_sent * FRAME_SAMPLES
        self._num_sent += 1
        return frame
