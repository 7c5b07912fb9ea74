"""A VITS voice on the CPU: phonemes in, durations out of one step, audio out of the following ones.

Runs on whichever thread calls it; one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tts_engine.vits.card import BEGIN, END, PAD, read_card
from tts_engine.vits.session import Session
from tts_engine.vits.split import split
from wire.errors import Unavailable
from wire.pcm import Pcm32f

# How far the networks see to each side. The HiFi-GAN decoder: just under 11 frames; with 12 a chunk equals the whole to
# 2e-6 (float32, peaks around 0.5), with 8 to 1e-3. The flow: 4 couplings of 4 convolutions, each of 5 frames. Held to
# it when a model is loaded, and by tests/tts_engine/vits/test_voice.py.
CONTEXT_FRAMES = 12
FLOW_CONTEXT_FRAMES = 32
FLOW_BLOCK_FRAMES = 120  # a third of the flow's work is then context
FIRST_CHUNK_FRAMES = 18  # 209 ms: a client has a jitter buffer's worth, and it costs 8 ms more than the encoder
CHUNK_FRAMES = 40  # 464 ms: context is then a third of the work
MIN_CHUNK_FRAMES = 10  # a shorter remainder joins the chunk before it
DURATION_NOISE_CHANNELS = 2  # StochasticDurationPredictor.forward, reverse: z = randn(batch, 2, phonemes)
_CHECK_FRAMES = 150  # longer than what either network sees from a border
_CHECK_TOLERANCE = 1e-4  # of full scale


@dataclass
class Encoded:
    """`frame_ends` [symbols]: the frame at which each symbol given has ended; `start_frame`: where the first begins.

    `prior` [1, channels, frames] and the masks [1, 1, frames] are what the flow takes; `z` [1, channels, ...] is as
    much as it was made to give so far.
    """

    prior: NDArray[np.float32]
    masks: Sequence[NDArray[np.float32]]
    frame_ends: NDArray[np.int64]
    start_frame: int
    z: NDArray[np.float32]

    @property
    def num_frames(self) -> int:
        return int(self.prior.shape[2])


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
        self._text, self._prior = Session(parts.text), Session(parts.prior)
        self._flow, self._decoder = Session(parts.flow), Session(parts.decoder)
        self.sample_rate_hz = self._card.sample_rate_hz
        channels = self._flow.input_shapes[0][1]
        if not isinstance(channels, int):
            raise Unavailable(f"{model}: the width of z is not fixed")
        self._channels = channels
        self.hop_samples = self._check_streaming(model)

    @property
    def symbols(self) -> Iterable[str]:
        """The alphabet that `encode` takes; others are left out."""
        return self._card.symbol_ids.keys()

    def encode(self, symbols: str, *, seed: int, index: int, speed: float = 1.0) -> Encoded:
        """One pass through the text encoder. The noise is drawn from `seed` and `index` alone."""
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
        prior, *masks = self._prior(durations, *carried, prior_noise)
        # A symbol sounds until the pad behind it has ended; symbol k is at 2 + 2k.
        return Encoded(prior, masks, ends[3:-1:2], int(ends[1]), prior[:, :, :0])

    def decode(self, encoded: Encoded, start: int, end: int) -> Pcm32f:
        """Audio of frames `start` to `end`, as a decode of the whole would have it."""
        left, right = max(0, start - CONTEXT_FRAMES), min(encoded.num_frames, end + CONTEXT_FRAMES)
        if encoded.z.shape[2] < right:
            self._extend(encoded, right)
        [audio] = self._decoder(np.ascontiguousarray(encoded.z[:, :, left:right]))
        flat: Pcm32f = audio.reshape(-1)
        hop_samples = flat.size // (right - left)
        return flat[(start - left) * hop_samples : (end - left) * hop_samples]

    def _extend(self, encoded: Encoded, end: int) -> None:
        """Have the flow give z up to frame `end` or further; the first time no further, for the first audio's sake."""
        begin = encoded.z.shape[2]
        if begin:
            end = min(encoded.num_frames, max(end, begin + FLOW_BLOCK_FRAMES))
        left, right = max(0, begin - FLOW_CONTEXT_FRAMES), min(encoded.num_frames, end + FLOW_CONTEXT_FRAMES)
        window = [np.ascontiguousarray(t[..., left:right]) for t in (encoded.prior, *encoded.masks)]
        [z] = self._flow(*window)
        encoded.z = np.concatenate([encoded.z, z[:, :, begin - left : end - left]], axis=2)

    def _check_streaming(self, model: Path) -> int:
        """Samples per frame. Raises: Unavailable when chunks of this model do not add up to the whole."""
        rng = np.random.Generator(np.random.Philox(0))
        prior = rng.standard_normal((1, self._channels, _CHECK_FRAMES), np.float32)
        masks = [np.ones((1, 1, _CHECK_FRAMES), np.float32) for _ in self._flow.input_shapes[1:]]

        def decoded(bounds: Sequence[tuple[int, int]]) -> Pcm32f:
            encoded = Encoded(prior, masks, np.zeros(0, np.int64), 0, prior[:, :, :0])
            return np.concatenate([self.decode(encoded, *chunk) for chunk in bounds])

        whole, chunked = decoded([(0, _CHECK_FRAMES)]), decoded(chunk_bounds(_CHECK_FRAMES))
        if whole.size % _CHECK_FRAMES or whole.size != chunked.size or np.abs(whole - chunked).max() > _CHECK_TOLERANCE:
            raise Unavailable(f"{model}: its networks see further than a chunk's context, so it cannot be streamed")
        return whole.size // _CHECK_FRAMES
