"""Opus (RFC 6716) for speech, by libopus: what PyAV, which brings the library along, leaves out of it.

PyAV's decoder neither conceals what was lost nor reads the copy of it in the next packet (in-band FEC), and its encoder
takes 48 kHz alone. libopus decodes to and encodes from 8, 12, 16, 24 and 48 kHz by itself, so nothing is resampled.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from pathlib import Path

import av
import numpy as np

from wire.errors import Unavailable
from wire.pcm import Pcm16

CLOCK_HZ = 48000  # RFC 7587, 4.1: of RTP timestamps, whatever the rates
RATES_HZ = (8000, 12000, 16000, 24000, 48000)
BIT_RATE = 32_000  # wideband speech, FEC included
EXPECTED_LOSS_PERCENT = 10  # what FEC is made for: at less, libopus takes the bits for the speech itself
COMPLEXITY = 1  # of 10: at this rate no worse than 9 (docs/measurements.md), at a quarter of its CPU time
MAX_PACKET_S = 0.12  # RFC 6716, 3.2.5
MAX_PACKET_BYTES = 1500

# opus_defines.h
_APPLICATION_VOIP = 2048
_SET_BITRATE, _SET_COMPLEXITY, _SET_INBAND_FEC = 4002, 4010, 4012
_SET_PACKET_LOSS_PERC, _SET_DTX, _SET_SIGNAL = 4014, 4016, 4024
_SIGNAL_VOICE = 3001


class BadPacket(Exception):
    """What came is no Opus."""


class Encoder:
    """Mono speech for one direction of one call: FEC on, DTX off."""

    def __init__(self, rate_hz: int, bit_rate: int = BIT_RATE) -> None:
        self._lib = _library()
        error = ctypes.c_int()
        self._state = self._lib.opus_encoder_create(rate_hz, 1, _APPLICATION_VOIP, ctypes.byref(error))
        assert self._state, f"opus_encoder_create({rate_hz}): {error.value}"
        for request, value in (
            (_SET_BITRATE, bit_rate),
            (_SET_COMPLEXITY, COMPLEXITY),
            (_SET_SIGNAL, _SIGNAL_VOICE),
            (_SET_INBAND_FEC, 1),
            (_SET_PACKET_LOSS_PERC, EXPECTED_LOSS_PERCENT),
            (_SET_DTX, 0),
        ):
            result = self._lib.opus_encoder_ctl(self._state, request, ctypes.c_int(value))
            assert result == 0, f"opus_encoder_ctl({request}, {value}): {result}"
        self._packet = ctypes.create_string_buffer(MAX_PACKET_BYTES)

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_encoder_destroy(self._state)

    def encode(self, pcm: Pcm16) -> bytes:
        """One packet of `pcm`, which has a length that Opus knows: 2.5, 5, 10, 20, 40 or 60 ms."""
        pcm = np.ascontiguousarray(pcm)
        size = self._lib.opus_encode(self._state, pcm.ctypes.data, pcm.size, self._packet, MAX_PACKET_BYTES)
        assert size > 0, f"opus_encode of {pcm.size} samples: {size}"
        return self._packet.raw[:size]


class Decoder:
    """One direction of one call, mono, in the order of playing."""

    def __init__(self, rate_hz: int) -> None:
        self._lib = _library()
        self._rate_hz = rate_hz
        error = ctypes.c_int()
        self._state = self._lib.opus_decoder_create(rate_hz, 1, ctypes.byref(error))
        assert self._state, f"opus_decoder_create({rate_hz}): {error.value}"
        self._pcm = np.zeros(round(MAX_PACKET_S * rate_hz), np.int16)

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self._lib.opus_decoder_destroy(self._state)

    def decode(self, payload: bytes) -> Pcm16:
        """Raises: BadPacket."""
        return self._decode(payload, len(payload), self._pcm.size, fec=0)

    def recover(self, following: bytes, num_samples: int) -> Pcm16:
        """The lost packet of `num_samples` before `following`, from the copy in it; concealed when it has none.

        Raises: BadPacket.
        """
        return self._decode(following, len(following), num_samples, fec=1)

    def conceal(self, num_samples: int) -> Pcm16:
        """What might have come, from what did; fades within 100 ms. A multiple of 2.5 ms, at most `MAX_PACKET_S`."""
        return self._decode(None, 0, num_samples, fec=0)

    def _decode(self, payload: bytes | None, size: int, num_samples: int, fec: int) -> Pcm16:
        assert num_samples <= self._pcm.size
        decoded = self._lib.opus_decode(self._state, payload, size, self._pcm.ctypes.data, num_samples, fec)
        if decoded < 0:
            raise BadPacket(_reason(decoded))
        return self._pcm[:decoded].copy()


def duration(payload: bytes, rate_hz: int = CLOCK_HZ) -> int:
    """Samples in a packet. Raises: BadPacket."""
    samples = _library().opus_packet_get_nb_samples(payload, len(payload), rate_hz)
    if samples < 0:
        raise BadPacket(_reason(samples))
    return int(samples)


def has_fec(payload: bytes) -> bool:
    """Whether a packet holds a copy of the one before it."""
    return bool(_library().opus_packet_has_lbrr(payload, len(payload)) > 0)


def _reason(code: int) -> str:
    return str(_library().opus_strerror(code).decode())


@cache
def _library() -> ctypes.CDLL:
    """The one in PyAV's wheel, which is loaded already; without a wheel, the system's. Raises: Unavailable."""
    bundled = sorted((Path(av.__file__).parents[1] / "av.libs").glob("libopus*"))
    name = str(bundled[0]) if bundled else ctypes.util.find_library("opus")
    if name is None:
        raise Unavailable("no libopus: PyAV is no wheel here, so install it from the system (libopus0)")
    library = ctypes.CDLL(name)
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for function, result, arguments in (
        ("opus_encoder_create", pointer, (ctypes.c_int32, number, number, ctypes.POINTER(number))),
        ("opus_encoder_ctl", number, (pointer, number)),  # and one more, by its request
        ("opus_encoder_destroy", None, (pointer,)),
        ("opus_encode", ctypes.c_int32, (pointer, pointer, number, ctypes.c_char_p, ctypes.c_int32)),
        ("opus_decoder_create", pointer, (ctypes.c_int32, number, ctypes.POINTER(number))),
        ("opus_decoder_destroy", None, (pointer,)),
        ("opus_decode", number, (pointer, ctypes.c_char_p, ctypes.c_int32, pointer, number, number)),
        ("opus_packet_get_nb_samples", number, (ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32)),
        ("opus_packet_has_lbrr", number, (ctypes.c_char_p, ctypes.c_int32)),
        ("opus_strerror", ctypes.c_char_p, (number,)),
    ):
        if not hasattr(library, function):
            raise Unavailable(f"{name} is too old: it has no {function}; 1.5 has, as PyAV's wheels do")
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library
