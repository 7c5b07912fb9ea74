"""G.711, the codec of the telephone network: 8 bits a sample at 8 kHz, steps that grow with the level. Pure.

Encoding and decoding follow the formulas of ITU-T G.711 (11/1988), tables 1a to 2b: a sign, a segment of three bits
that doubles the step, four bits within the segment. Of both laws the levels are scaled to int16, as usual: mu-law has
14 bits, A-law 13.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wire.pcm import Pcm16

Law: TypeAlias = Literal["mulaw", "alaw"]
RATE_HZ = 8000
MULAW_BIAS = 132  # 33 at 14 bits: makes the segments begin at powers of two
MULAW_CLIP = 32635  # the largest value that does not overflow the last segment
ALAW_EVEN_BITS = 0x55  # A-law turns every other bit over on the line

Codes: TypeAlias = NDArray[np.uint8]


def encode(pcm: Pcm16, law: Law) -> Codes:
    return _encode_mulaw(pcm) if law == "mulaw" else _encode_alaw(pcm)


def decode(codes: Codes, law: Law) -> Pcm16:
    return _decode_mulaw(codes) if law == "mulaw" else _decode_alaw(codes)


def _encode_mulaw(pcm: Pcm16) -> Codes:
    magnitude = np.minimum(np.abs(pcm.astype(np.int32)), MULAW_CLIP) + MULAW_BIAS
    segment = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    step = (magnitude >> (segment + 3)) & 0x0F
    code = (segment << 4) | step | np.where(pcm < 0, 0x80, 0)
    codes: Codes = (~code & 0xFF).astype(np.uint8)
    return codes


def _decode_mulaw(codes: Codes) -> Pcm16:
    code = ~codes.astype(np.int32) & 0xFF
    magnitude = ((((code & 0x0F) << 3) + MULAW_BIAS) << ((code >> 4) & 7)) - MULAW_BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _encode_alaw(pcm: Pcm16) -> Codes:
    value = pcm.astype(np.int32) >> 4  # sign and 11 bits: the finest step is 2 of 13 bits
    magnitude = np.where(value < 0, -value - 1, value)  # the levels of both signs mirror each other at -1/2
    segment = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 3, 0)
    step = (magnitude >> np.maximum(segment - 1, 0)) & 0x0F
    code = (segment << 4) | step | np.where(value < 0, 0, 0x80)
    codes: Codes = (code ^ ALAW_EVEN_BITS).astype(np.uint8)
    return codes


def _decode_alaw(codes: Codes) -> Pcm16:
    code = codes.astype(np.int32) ^ ALAW_EVEN_BITS
    segment, step = (code >> 4) & 7, code & 0x0F
    first = (step << 4) + 8
    magnitude = np.where(segment == 0, first, (first + 0x100) << np.maximum(segment - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)
