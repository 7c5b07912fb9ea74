"""Takes silence from both ends of a stream of audio. Pure.

Leading silence counts against the first audible sample, trailing silence against the next turn. Silence inside is a
pause of the speaker and stays.
"""

from __future__ import annotations

import numpy as np

from wire.pcm import Pcm32f

AUDIBLE = 0.02  # of full scale, -34 dBFS; the voice's own noise between words stays below 0.01
LEAD_S = 0.010  # kept before the first audible sample: a plosive must not start with a click
TAIL_S = 0.200  # kept after the last one: the pause between two sentences of an utterance


class SilenceTrimmer:
    """`num_trimmed` is how much of the start was taken, known with the first audio that comes out."""

    def __init__(self, sample_rate_hz: int, lead_s: float = LEAD_S, tail_s: float = TAIL_S) -> None:
        self._lead = round(lead_s * sample_rate_hz)
        self._tail = round(tail_s * sample_rate_hz)
        self._held = np.zeros(0, np.float32)  # silence of which it is not known yet whether speech follows
        self._begun = False
        self.num_trimmed = 0
        self._num_out = 0

    def push(self, audio: Pcm32f) -> Pcm32f:
        """What is certain to be kept."""
        audible = np.flatnonzero(np.abs(audio) >= AUDIBLE) + self._held.size
        held = np.concatenate([self._held, audio])
        end = int(audible[-1]) + 1 if audible.size else 0
        start = 0
        if not self._begun:
            start = max(0, (int(audible[0]) if audible.size else held.size) - self._lead)
            self.num_trimmed += start
            self._begun = audible.size > 0
        self._held = held[max(start, end) :]
        return self._out(held[start:end])

    def finish(self, at_least: int = 0) -> Pcm32f:
        """The tail, so long that at least `at_least` samples came out in all, if there are that many."""
        keep = max(self._tail, at_least - self._num_out)
        held, self._held = self._held, self._held[:0]
        return self._out(held[:keep])

    def _out(self, audio: Pcm32f) -> Pcm32f:
        self._num_out += audio.size
        return audio
