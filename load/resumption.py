"""Where an answer goes on after a pause: what of it is heard twice, and what never. Pure.

A caller hears `before`, then nothing, then `after`; `dropped` had been sent as well and was taken back unheard. So

    sent by then:  [ before | dropped ]         heard next:  [ after
                            ^ stopped                   ^ goes on, somewhere in the above or behind it

The head of `after` is looked for in what was sent by then, by normalised cross-correlation. Where it is found before
the border, it is heard twice; where it is found behind, what lies between is lost. Where it is not found, it goes on
with what had not been sent: all that was dropped is lost.

What cannot be told from what a caller receives: audio that was never sent to him, and repetitions below `MIN_S`. A
vowel resembles itself, so up to `SURE_S` only a copy counts: through a codec with losses (Opus, G.711) repetitions
shorter than that are not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load.hearing import audible
from load.track import Pause
from wire.pcm import Pcm16

BACK_S = 3.0  # how far back a repetition may begin
HEAD_S = 0.25  # of what follows, by which it is recognised
SURE_S = 0.2
MIN_S = 0.04
COPY = 0.9995  # correlation; dither and a resampler that starts anew stay above, the next period of a vowel does not
SAME = 0.9  # Opus at 32 kbit/s has 10 dB and more over its noise in speech, which is 0.95


@dataclass(frozen=True)
class Resumption:
    lost_s: float
    repeated_s: float


def resumption(pause: Pause, rate_hz: int) -> Resumption:
    back = round(BACK_S * rate_hz)
    before, dropped = pause.before[-back:], pause.dropped[:back]
    spans = audible(pause.after, rate_hz)
    found = None
    if spans:
        onset = spans[0].start
        at = _find(np.concatenate([before, dropped]), pause.after[onset : onset + round(HEAD_S * rate_hz)], rate_hz)
        found = at - onset - before.size if at is not None else None
    if found is None:
        return Resumption(pause.dropped.size / rate_hz if audible(pause.dropped, rate_hz) else 0.0, 0.0)
    return Resumption(max(0, found) / rate_hz, max(0, -found) / rate_hz)


def _find(sent: Pcm16, head: Pcm16, rate_hz: int) -> int | None:
    """Where `head` begins in `sent`, whose end may cut it off; None where it is not in there."""
    least = round(MIN_S * rate_hz)
    if min(sent.size, head.size) < least:
        return None
    a, b = sent.astype(np.float64), head.astype(np.float64)
    size = 1 << (a.size + b.size - 1).bit_length()
    products = np.fft.irfft(np.fft.rfft(a, size) * np.conj(np.fft.rfft(b, size)), size)[: a.size]
    lengths = np.minimum(b.size, a.size - np.arange(a.size))
    energy_a, energy_b = (np.concatenate([[0.0], np.cumsum(each**2)]) for each in (a, b))
    starts = np.arange(a.size)
    energies = (energy_a[starts + lengths] - energy_a[starts]) * energy_b[lengths]
    similar = products / np.sqrt(np.maximum(energies, 1.0))
    similar[lengths < least] = 0.0
    enough = np.where(lengths >= round(SURE_S * rate_hz), SAME, COPY)
    candidates = np.flatnonzero(similar >= enough)
    if not candidates.size:
        return None
    return int(candidates[np.argmax(similar[candidates])])
