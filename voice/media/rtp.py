"""The caller's audio over RTP: packets in as aiortc receives them, PCM out as the jitter buffer plays them.

Opus is decoded at 16 kHz by libopus itself, which conceals and reads in-band FEC. What telephones speak besides (G.711,
G.722) goes through aiortc's decoders and is concealed by repeating its last pitch period. While nothing comes the
line's own background goes on, so that silence is no hole in it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from aiortc import RTCRtpCodecParameters
from aiortc.codecs import get_decoder
from aiortc.jitterbuffer import JitterFrame
from av import AudioFrame
from av.error import FFmpegError

from voice.media.jitter import Counts, Decode, JitterBuffer, MakeUp, Packet, Recover, Restart, Step
from voice.media.level import rms
from voice.media.resample import Resampler
from wire import opus
from wire.pcm import Pcm16
from wire.rtc import is_opus

logger = logging.getLogger(__name__)

BORDER_S = 0.005  # over which one sound goes over into another
NUM_PIECES = 150  # pieces, 3 s: the quieter ones are the line's background ...
QUIET_PERCENTILE = 10  # ... and the quietest may be the silence before it began
MAX_BACKGROUND = 330.0  # RMS, -40 dBFS: louder is speech without a pause, which does not go on in one
MIN_PITCH_S, MAX_PITCH_S = 0.0025, 0.015  # 66 to 400 Hz
FADED_S = 0.06  # in which a made-up sound dies away


class Decoder(Protocol):
    """Mono PCM at one rate, in the order of playing. `decode` and `recover` raise `opus.BadPacket`."""

    def decode(self, payload: bytes) -> Pcm16: ...

    def recover(self, following: bytes, num_samples: int) -> Pcm16: ...

    def conceal(self, num_samples: int) -> Pcm16: ...


class RtpAudio:
    """One caller's stream at `rate_hz`. `codecs`: what was agreed on, by payload type."""

    def __init__(self, rate_hz: int, codecs: Mapping[int, RTCRtpCodecParameters]) -> None:
        self._rate_hz = rate_hz
        self._codecs = codecs
        self._codec: RTCRtpCodecParameters | None = None  # of the last packet
        self._buffer = JitterBuffer(rate_hz, lambda _: False)
        self._background = _Background(rate_hz)
        self._was_made_up = False

    def take_counts(self) -> Counts:
        """Since they were taken last."""
        counts, self._buffer.counts = self._buffer.counts, Counts()
        return counts

    def push(self, packet: Packet, payload_type: int, now: float) -> Pcm16:
        """A packet has come; returns what is to be heard by now."""
        codec = self._codecs.get(payload_type)
        if codec is None:
            return _NOTHING
        rest = self._change(codec) if codec is not self._codec else _NOTHING
        self._buffer.insert(packet, now)
        pcm = self.take(now)
        return np.concatenate([rest, pcm]) if rest.size else pcm

    def pass_over(self, packet: Packet, now: float) -> Pcm16:
        """The same for one that is no audio and has its place among those that are (RFC 4733, 2.1)."""
        self._buffer.insert(dataclasses.replace(packet, payload=b"", num_samples=0), now)
        return self.take(now)

    def take(self, now: float) -> Pcm16:
        return self._heard_of(self._buffer.take(now))

    @property
    def has_hole(self) -> bool:
        """A packet is waited for."""
        return self._buffer.has_hole

    def wake_s(self) -> float | None:
        return self._buffer.wake_s()

    def num_samples(self, payload: bytes, payload_type: int) -> int:
        """Of a payload, on its codec's RTP clock; 0 for what is no packet of it."""
        codec = self._codecs.get(payload_type)
        if codec is None or not payload:
            return 0
        if not is_opus(codec):
            return len(payload)  # G.711 and G.722: a byte for each tick of 8 kHz
        try:
            return opus.duration(payload)
        except opus.BadPacket:
            return 0

    def _change(self, codec: RTCRtpCodecParameters) -> Pcm16:
        """From now on; returns what was held of the codec before, all of it."""
        rest = self._heard_of(self._buffer.drain())
        self._codec = codec
        self._clock_hz = codec.clockRate
        self._buffer.use(codec.clockRate, opus.has_fec if is_opus(codec) else lambda _: False)
        self._decoder = self._new_decoder()
        return rest

    def _heard_of(self, steps: Sequence[Step]) -> Pcm16:
        parts = [self._carry_out(step) for step in steps]
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else _NOTHING

    def _new_decoder(self) -> Decoder:
        assert self._codec is not None
        return opus.Decoder(self._rate_hz) if is_opus(self._codec) else _TelephoneDecoder(self._codec, self._rate_hz)

    def _carry_out(self, step: Step) -> Pcm16:
        try:
            match step:
                case Restart():
                    self._decoder = self._new_decoder()
                    return _NOTHING
                case Decode():
                    return self._heard(self._decoder.decode(step.payload))
                case Recover():
                    return self._heard(self._decoder.recover(step.following, self._scaled(step.num_samples)))
                case MakeUp(how="conceal"):
                    return self._decoder.conceal(self._scaled(step.num_samples))
                case MakeUp():
                    return self._comfort(self._scaled(step.num_samples))
        except opus.BadPacket as error:
            logger.debug("x audio that cannot be decoded: %s", error)
            return _NOTHING

    def _heard(self, pcm: Pcm16) -> Pcm16:
        self._background.hear(pcm)
        self._was_made_up = False
        return pcm

    def _comfort(self, num_samples: int) -> Pcm16:
        if not self._was_made_up:
            self._background.listen()
        noise = self._background.noise(num_samples)
        if not self._was_made_up and num_samples >= (border := round(BORDER_S * self._rate_hz)):
            fading = np.linspace(1, 0, border, dtype=np.float32)
            noise[:border] = noise[:border] * (1 - fading) + self._decoder.conceal(border) * fading
        self._was_made_up = True
        return noise

    def _scaled(self, num_samples: int) -> int:
        return round(num_samples * self._rate_hz / self._clock_hz)


class _Background:
    """What the line sounds like while nobody speaks."""

    def __init__(self, rate_hz: int) -> None:
        self._noise = np.random.default_rng(0).standard_normal(rate_hz).astype(np.float32)
        self._at = 0
        self._level = 0.0  # RMS
        self._heard: deque[Pcm16] = deque(maxlen=NUM_PIECES)

    def hear(self, pcm: Pcm16) -> None:
        self._heard.append(pcm)

    def listen(self) -> None:
        """What it is now; slow."""
        levels = [rms(pcm) for pcm in self._heard]
        self._level = min(MAX_BACKGROUND, float(np.percentile(levels, QUIET_PERCENTILE))) if levels else 0.0

    def noise(self, num_samples: int) -> Pcm16:
        """Goes on where it stopped."""
        places = np.arange(self._at, self._at + num_samples) % self._noise.size
        self._at = (self._at + num_samples) % self._noise.size
        return (self._noise[places] * self._level).astype(np.int16)


class _TelephoneDecoder:
    """G.711 or G.722 by aiortc."""

    def __init__(self, codec: RTCRtpCodecParameters, rate_hz: int) -> None:
        self._decoder = get_decoder(codec)
        self._rate_hz = rate_hz
        self._resampler: Resampler | None = None
        self._last: Pcm16 = np.zeros(round(2 * MAX_PITCH_S * rate_hz), np.int16)
        self._made_up = 0

    def decode(self, payload: bytes) -> Pcm16:
        try:
            frames = self._decoder.decode(JitterFrame(payload, 0))
        except FFmpegError as error:
            raise opus.BadPacket(str(error)) from None
        parts = []
        for frame in frames:
            assert isinstance(frame, AudioFrame)
            if self._resampler is None:
                self._resampler = Resampler(frame.sample_rate, self._rate_hz)
            parts.append(self._resampler.push(frame.to_ndarray().reshape(-1)))
        pcm = np.concatenate(parts) if parts else _NOTHING
        self._last = np.concatenate([self._last, pcm])[-self._last.size :]
        self._made_up = 0
        return pcm

    def recover(self, following: bytes, num_samples: int) -> Pcm16:
        return self.conceal(num_samples)

    def conceal(self, num_samples: int) -> Pcm16:
        """The last pitch period again and again, fading (as ITU-T G.711 appendix I does, without its overlaps)."""
        period = self._last[-_pitch(self._last, self._rate_hz) :].astype(np.float32)
        places = np.arange(self._made_up, self._made_up + num_samples)
        self._made_up += num_samples
        fading = np.clip(1 - places / (FADED_S * self._rate_hz), 0, 1)
        return (period[places % period.size] * fading).astype(np.int16)


def _pitch(pcm: Pcm16, rate_hz: int) -> int:
    """Samples of the period that the end of `pcm` repeats best."""
    shortest, longest = round(MIN_PITCH_S * rate_hz), round(MAX_PITCH_S * rate_hz)
    audio = pcm.astype(np.float64)
    end = audio[-longest:]
    best, most = longest, 0.0
    for lag in range(shortest, longest + 1):
        before = audio[-longest - lag : -lag]
        energy = float(before @ before)
        alike = float(end @ before) / np.sqrt(energy) if energy > 0 else 0.0
        if alike > most * 1.02:  # of multiples of a period the first
            best, most = lag, alike
    return best


_NOTHING: Pcm16 = np.zeros(0, np.int16)
