"""PCM at the edge: int16 little-endian mono, the only audio format between our processes.

A binary message on `WS /v1/speak` carries a 4-byte little-endian utterance id before its samples, because
utterances of one connection may overlap while the older is being cancelled. On all other sockets a binary message
is samples and nothing else.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wire.errors import PeerError

Pcm16: TypeAlias = NDArray[np.int16]
Pcm32f: TypeAlias = NDArray[np.float32]

AUDIO_FRAME_S = 0.02  # RFC 3551, 4.2: default packetization interval
MAX_AUDIO_MESSAGE_S = 2.0  # longer binary messages are refused: one message must not hold a second socket up
_FULL_SCALE = 32768.0
_HEADER = struct.Struct("<I")
_LITTLE_ENDIAN = np.dtype("<i2")


def from_bytes(data: bytes, sample_rate_hz: int) -> Pcm16:
    """Raises: PeerError for half a sample or more than `MAX_AUDIO_MESSAGE_S`."""
    if len(data) % 2:
        raise PeerError(f"{len(data)} bytes are no whole number of 16-bit samples", code="bad_audio")
    if len(data) > 2 * sample_rate_hz * MAX_AUDIO_MESSAGE_S:
        raise PeerError(f"audio message of {len(data)} bytes; at most {MAX_AUDIO_MESSAGE_S} s", code="too_large")
    return np.frombuffer(data, _LITTLE_ENDIAN)


def to_bytes(pcm: Pcm16) -> bytes:
    return pcm.astype(_LITTLE_ENDIAN, copy=False).tobytes()


def to_float(pcm: Pcm16) -> Pcm32f:
    """int16 -> float32 in [-1, 1)."""
    return pcm.astype(np.float32) / np.float32(_FULL_SCALE)


def to_int16(audio: Pcm32f) -> Pcm16:
    """float32 in [-1, 1] -> int16, clipped and rounded."""
    scaled = np.rint(audio * np.float32(_FULL_SCALE))
    pcm: Pcm16 = np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16)
    return pcm


def pack_utterance(utterance: int, pcm: Pcm16) -> bytes:
    return _HEADER.pack(utterance) + to_bytes(pcm)


def unpack_utterance(data: bytes) -> tuple[int, Pcm16]:
    """Raises: PeerError for a message without header or with half a sample."""
    if len(data) < _HEADER.size or len(data) % 2:
        raise PeerError(f"audio message of {len(data)} bytes is malformed", code="bad_audio")
    return _HEADER.unpack_from(data)[0], np.frombuffer(data, _LITTLE_ENDIAN, offset=_HEADER.size)
