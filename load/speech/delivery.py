"""How a caller speaks: the keys of a scenario's `caller` and `delivery`, and what they do to clean speech. Pure.

Order: level, speed and pitch, then what is spliced in, then what the room adds, then the telephone, as in a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from load.speech import effects
from load.speech.g711 import Law
from load.speech.noise import KINDS, NoiseKind, noise
from load.speech.sound import Sound

MAX_SPLICES = 5


@dataclass(frozen=True)
class Background:
    """Noise behind the speech, `snr_db` below its active level."""

    kind: NoiseKind
    snr_db: float

    def __post_init__(self) -> None:
        if not -10 <= self.snr_db <= 60:
            raise ValueError(f"snr_db must be -10 to 60, got {self.snr_db}")


@dataclass(frozen=True)
class Delivery:
    """Pauses and fillers stand at borders between words, as far as the utterance has enough of them."""

    level_dbfs: float = -23.0  # of active speech; ITU-T G.100.1 takes -26 dBov as nominal
    speed: float = 1.0
    pitch: float = 1.0
    num_pauses: int = 0
    min_pause_ms: float = 500.0
    max_pause_ms: float = 1500.0
    num_fillers: int = 0
    background: Background | None = None
    telephone: Literal["none", "mulaw", "alaw"] = "none"

    def __post_init__(self) -> None:
        if not -50 <= self.level_dbfs <= -5:
            raise ValueError(f"level_dbfs must be -50 to -5, got {self.level_dbfs}")
        if not 0.5 <= self.speed <= 2 or not 0.5 <= self.pitch <= 2:
            raise ValueError("speed and pitch must be 0.5 to 2")
        if not 0 <= self.num_pauses <= MAX_SPLICES or not 0 <= self.num_fillers <= MAX_SPLICES:
            raise ValueError(f"num_pauses and num_fillers must be 0 to {MAX_SPLICES}")
        if not 0 < self.min_pause_ms <= self.max_pause_ms <= 10_000:
            raise ValueError("needs 0 < min_pause_ms <= max_pause_ms <= 10000")

    @property
    def law(self) -> Law | None:
        return None if self.telephone == "none" else self.telephone


@dataclass(frozen=True)
class Extras:
    """Speech that other speech is made with, all at its sample rate: "uh" and "um", and who talks behind the caller."""

    fillers: Sequence[Sound] = field(default=())
    talkers: Sequence[Sound] = field(default=())


def varied(rng: np.random.Generator) -> Delivery:
    """Somebody who calls a call centre: half of them by telephone, some with noise behind them, some hesitating."""
    background = Background(KINDS[int(rng.integers(len(KINDS)))], float(rng.uniform(15, 30)))
    return Delivery(
        level_dbfs=float(np.clip(rng.normal(-24, 4), -36, -14)),
        speed=float(rng.uniform(0.85, 1.15)),
        pitch=float(rng.uniform(0.85, 1.2)),
        num_pauses=int(rng.random() < 0.3),
        min_pause_ms=200.0,
        max_pause_ms=700.0,
        num_fillers=int(rng.random() < 0.2),
        background=background if rng.random() < 0.4 else None,
        telephone=("none", "none", "mulaw", "alaw")[int(rng.integers(4))],
    )


def deliver(sound: Sound, delivery: Delivery, rng: np.random.Generator, extras: Extras = Extras()) -> Sound:
    """`sound` is clean; the labels of the result are where its speech begins and ends."""
    sound = effects.at_pitch(effects.at_speed(sound, delivery.speed), delivery.pitch)
    sound = effects.at_level(sound, delivery.level_dbfs)
    if delivery.num_pauses:
        pauses_ms = rng.uniform(delivery.min_pause_ms, delivery.max_pause_ms, delivery.num_pauses)
        sound = effects.with_pauses(sound, [float(ms) / 1000 for ms in pauses_ms], rng)
    if delivery.num_fillers:
        assert extras.fillers, "fillers are speech"
        fillers = [extras.fillers[int(rng.integers(len(extras.fillers)))] for _ in range(delivery.num_fillers)]
        sound = effects.with_fillers(sound, fillers, rng)
    if (background := delivery.background) is not None:
        behind = noise(background.kind, sound.audio.size, sound.rate_hz, rng, extras.talkers)
        sound = effects.with_noise(sound, behind, background.snr_db)
    return effects.by_telephone(sound, delivery.law) if delivery.law is not None else sound
