"""The callers' voices during a run: clean speech once, what a step says of it whenever it is asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from load.speech.corpus import FILLERS
from load.speech.delivery import Delivery, Extras, deliver
from load.speech.effects import at_rate
from load.speech.noise import NoiseKind, noise
from load.speech.sound import Sound
from wire.pcm import Pcm16, to_int16


class Cast:
    """Everything at one line's rate. What is drawn depends on `place` alone: seed, call, step."""

    def __init__(self, clean: Mapping[str, Sound], talkers: Sequence[str], rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._clean = {name: at_rate(sound, rate_hz) for name, sound in clean.items()}
        self._extras = Extras(
            fillers=[self._clean[name] for name in FILLERS if name in self._clean],
            talkers=[self._clean[name] for name in talkers if name in self._clean],
        )

    def say(self, utterance: str, delivery: Delivery, place: Sequence[int]) -> Sound:
        return deliver(self._clean[utterance], delivery, np.random.default_rng(place), self._extras)

    def noise(self, kind: NoiseKind, for_ms: float, level_dbfs: float, place: Sequence[int]) -> Pcm16:
        num_samples = round(for_ms / 1000 * self.rate_hz)
        made = noise(kind, num_samples, self.rate_hz, np.random.default_rng(place), self._extras.talkers)
        return to_int16(made * np.float32(10 ** (level_dbfs / 20)))
