"""A VITS voice on the CPU: phonemes in, z and durations out of one step, audio out of the following ones.

Runs on whichever thread calls it; one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tts_engine.vits.card import BEGIN, END, PAD, read_card
from tts_engine.vits.session import Session
from tts_engine.vits.split import split
from wire.errors import Unavailable
from wire.pcm import Pcm32f

# The HiFi-GAN decoder sees just under 11 frames to each side: with 12 a chunk equals the whole to 2e-6 (float32,
# peaks around 0.5), with 8 to 1e-3. tests/tts_engine/vits/test_voice.py holds it to that.
CONTEXT_FRAMES = 12
FIRST_CHUNK_FRAMES = 18  # 209 ms: a client has a jitter buffer's worth, and it costs 8 ms more than the encoder
CHUNK_FRAMES = 40  # 464 ms: context is then a third of the work
MIN_CHUNK_FRAMES = 10  # a shorter remainder joins the chunk before it
DURATION_NOISE_CHANNELS = 2  # StochasticDurationPredictor.forward, reverse: z = randn(batch, 2, phonemes)
_WARM_UP_FRAMES = FIRST_CHUNK_FRAMES + CONTEXT_FRAMES


@dataclass(frozen=True)
class Encoded:
    """`z` [1, channels, frames]; `frame_ends` [symbols]: the frame at which each symbol given has ended."""

    z: NDArray[np.float32]
    frame_ends: NDArray[np.int64]
    start_frame: int  # at which the first symbol begins

    @property
    def num_frames(self) -> int:
        return int(self.z.shape[2])


def chunk_bounds(num_frames: int) -> list[tuple[int, int]]:
    """The frames of each chunk; joined they are all frames. Pure."""
    bounds, start, size = [], 0, FIRST_CHUNK_FRAMES
    while start < num_frames:
        end = num_frames if num_frames - start - size < MIN_CHUNK_FRAMES else start + size
        bounds.append((start, end))
        start, size = end, CHUNK_FRAMES
    return bounds


class VitsVoice:
    def __init__(self, model: Path, card: Path, derived: Path) -> None:
        """Split graphs are kept in `derived`. Raises: Unavailable."""
        self._card = read_card(card)
        parts = split(model, derived)
        self._text, self._flow, self._decoder = Session(parts.text), Session(parts.flow), Session(parts.decoder)
        self.sample_rate_hz = self._card.sample_rate_hz
        channels = self._decoder.input_shapes[0][1]
        if not isinstance(channels, int):
            raise Unavailable(f"{model}: the width of z is not fixed")
        self._channels = channels
        warm = self._decode(np.zeros((1, self._channels, _WARM_UP_FRAMES), np.float32))
        self.hop_samples, rest = divmod(warm.size, _WARM_UP_FRAMES)
        if rest:
            raise Unavailable(f"{model}: {warm.size} samples for {_WARM_UP_FRAMES} frames")

    @property
    def symbols(self) -> Iterable[str]:
        """The alphabet that `encode` takes; others are left out."""
        return self._card.symbol_ids.keys()

    def encode(self, symbols: str, *, seed: int, index: int, speed: float = 1.0) -> Encoded:
        """One pass through text encoder and flow. The noise is drawn from `seed` and `index` alone."""
        ids = self._card.symbol_ids
        given = [BEGIN, *symbols, END]
        padded = np.full((1, 2 * len(given) - 1), ids[PAD], np.int64)
        padded[0, ::2] = [ids.get(symbol, ids[PAD]) for symbol in given]
        count = padded.shape[1]
        rng = np.random.Generator(np.random.Philox(key=np.array([seed % 2**64, index], np.uint64)))
        scales = np.array(
            [self._card.noise_scale, self._card.length_scale / speed, self._card.duration_noise_scale], np.float32
        )
        duration_noise = rng.standard_normal((1, DURATION_NOISE_CHANNELS, count), np.float32)
        durations, *carried = self._text(padded, np.array([count], np.int64), scales, duration_noise)
        ends = np.cumsum(durations.reshape(-1)).astype(np.int64)
        assert ends.size == count
        prior_noise = rng.standard_normal((1, self._channels, max(1, int(ends[-1]))), np.float32)
        [z] = self._flow(durations, *carried, prior_noise)
        # A symbol sounds until the pad behind it has ended; symbol k is at 2 + 2k.
        return Encoded(z, ends[3:-1:2], int(ends[1]))

    def decode(self, encoded: Encoded, start: int, end: int) -> Pcm32f:
        """Audio of frames `start` to `end`, as a decode of the whole would have it."""
        left, right = max(0, start - CONTEXT_FRAMES), min(encoded.num_frames, end + CONTEXT_FRAMES)
        audio = self._decode(np.ascontiguousarray(encoded.z[:, :, left:right]))
        return audio[(start - left) * self.hop_samples : (end - left) * self.hop_samples]

    def _decode(self, z: NDArray[np.float32]) -> Pcm32f:
        [audio] = self._decoder(z)
        flat: Pcm32f = audio.reshape(-1)
        return flat
