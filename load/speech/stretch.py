"""Faster and slower speech at the same pitch, by WSOLA. Pure.

Waveform similarity overlap-add (Verhelst and Roelands, ICASSP 1993): the output is frames of the input, each taken
from near where the new speed wants it, at the place that continues the frame before it best. Where each frame came
from is kept, so that a label can be carried over, to the search's reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wire.pcm import Pcm32f

HOP_S = 0.012  # half a frame; a frame of 24 ms holds two periods of the lowest voices
SEARCH_S = 0.008  # either way: a period of a voice of 62 Hz


@dataclass(frozen=True)
class Stretched:
    """`sources[k]` is the input sample that sounds at output sample `k * hop`."""

    audio: Pcm32f
    hop: int
    sources: NDArray[np.int64]

    def carry(self, sample: int) -> int:
        """Where a sample of the input sounds in the output."""
        rising = np.maximum.accumulate(self.sources)
        at = round(float(np.interp(sample, rising, np.arange(rising.size) * self.hop)))
        return min(at, self.audio.size)


def stretched(audio: Pcm32f, rate_hz: int, speed: float) -> Stretched:
    """`speed` above 1 is faster; the result has `audio.size / speed` samples."""
    hop, search = round(HOP_S * rate_hz), round(SEARCH_S * rate_hz)
    frame = 2 * hop
    window = np.hanning(frame + 1)[:-1]
    size = round(audio.size / speed)
    num_frames = -(-size // hop) + 1
    ends = hop + search
    padded = np.pad(audio.astype(np.float64), (ends, ends + frame + round(hop * speed)))
    output = np.zeros((num_frames + 1) * hop)
    sources = np.zeros(num_frames, np.int64)
    for k in range(num_frames):
        if k:
            # The frame before, a hop later, is what should come next; `begin` is where the search for it begins.
            wanted = padded[sources[k - 1] + ends : sources[k - 1] + ends + frame]
            wish = min(round(k * hop * speed), audio.size)
            begin = wish + ends - hop - search
            sources[k] = wish - search + _most_alike(padded[begin : begin + frame + 2 * search], wanted)
        at = sources[k] + ends - hop
        output[k * hop : k * hop + frame] += window * padded[at : at + frame]
    return Stretched(output[hop : hop + size].astype(np.float32), hop, sources)


def _most_alike(region: NDArray[np.float64], wanted: NDArray[np.float64]) -> int:
    """Offset into `region` of the piece that correlates best with `wanted`; the middle one in silence."""
    products = np.correlate(region, wanted, mode="valid")
    energy = np.convolve(region**2, np.ones(wanted.size), mode="valid")
    middle = products.size // 2
    if energy.max() < 1e-9:
        return middle
    likeness = products / np.sqrt(energy + 1e-6 * energy.max())
    return int(likeness.argmax()) if likeness.max() > 0 else middle
