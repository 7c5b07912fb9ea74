"""Callers who pause, made of recorded sentences: turns with the truth about where they pause and where they end.

A turn is one whole sentence, sometimes two, of a real speaker, with pauses put in between words. Every caller has a
pace: his pauses lie around a length of his own, because people differ more in that than one does from himself. At least
40 % of the pauses last 0.5 to 1.5 s. What fills them is the recording's own floor; then the whole goes through a
noisy room, a telephone, both or neither. Labels are taken before that. All of it is drawn from one seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench.recordings import ABOVE_NOISE, BELOW_SPEECH, FRAME, HZ, Sentence
from load.speech.effects import at_level, by_telephone, inserted, with_noise
from load.speech.noise import noise
from load.speech.sound import Sound
from wire.pcm import Pcm16, Pcm32f

PACES_S = (0.3, 0.45, 0.65, 0.95)  # medians of callers' pauses
SPREAD = 0.35  # standard deviation of the logarithm of a caller's pauses
PAUSE_S = (0.2, 1.5)
BETWEEN_S = (0.3, 0.9)  # sentences of one turn
MIN_LABEL_S = 0.2  # a gap in the clean audio from which on it is a pause
BEFORE_S, AFTER_S = 0.5, 1.9
LEVELS_DBFS = (-30.0, -18.0)
SNRS_DB = (None, 25.0, 15.0)
TURNS_PER_CALLER = 6
WORDS_PER_PAUSE = 6


@dataclass(frozen=True)
class Turn:
    """`pauses`: samples without speech inside the turn; `end`: the last of its speech. int16, 16 kHz."""

    caller: int
    speaker: str
    text: str
    pcm: Pcm16
    end: int
    pauses: tuple[tuple[int, int], ...]
    between: int | None  # sample at which a second sentence was joined on
    snr_db: float | None
    is_telephone: bool


def turns(sentences: Sequence[Sentence], num_each: int, seed: int, most: int = 1000) -> list[Turn]:
    """Each sentence `num_each` times; callers in the order of their names, at most `most` turns in all."""
    rng = np.random.default_rng(seed)
    made: list[Turn] = []
    caller = 0
    for speaker in sorted({sentence.speaker for sentence in sentences}):
        own = [sentence for sentence in sentences if sentence.speaker == speaker]
        order = [own[i] for _ in range(num_each) for i in rng.permutation(len(own))]
        for first in range(0, len(order), TURNS_PER_CALLER):
            made += _caller(caller, order[first : first + TURNS_PER_CALLER], own, rng)
            caller += 1
    keep = sorted(rng.permutation(len(made))[:most])
    return [made[i] for i in keep]


def _caller(
    caller: int, sentences: Sequence[Sentence], own: Sequence[Sentence], rng: np.random.Generator
) -> Iterator[Turn]:
    pace_s, dbfs = float(rng.choice(PACES_S)), float(rng.uniform(*LEVELS_DBFS))
    snr_db, is_telephone = SNRS_DB[int(rng.integers(len(SNRS_DB)))], bool(rng.random() < 0.4)
    for sentence in sentences:
        sound = at_level(sentence.sound, dbfs)
        floor = _floor(sound)
        num_words = len(sentence.sound.borders) + 1
        num = 0 if num_words < 4 or rng.random() < 0.2 else 1 + int(rng.random() < num_words / WORDS_PER_PAUSE - 1)
        for _ in range(num):
            sound = _paused(sound, float(np.exp(np.log(pace_s) + SPREAD * rng.standard_normal())), floor, rng)
        text, joined = sentence.text, None
        if rng.random() < 0.12 and len(own) > 1:
            other = own[int(rng.integers(len(own)))]
            gap = _line(float(rng.uniform(*BETWEEN_S)), floor, rng)
            first = np.concatenate([sound.audio[: sound.end], gap])
            then = at_level(other.sound, dbfs)
            text, joined = f"{text} {other.text}", sound.end
            audio = np.concatenate([first, then.audio[then.start :]])
            sound = Sound(audio, HZ, sound.start, first.size + then.end - then.start)
        yield _turn(caller, sentence.speaker, text, sound, floor, joined, snr_db, is_telephone, rng)


def _paused(sound: Sound, pause_s: float, floor: float, rng: np.random.Generator) -> Sound:
    """A pause between two words, of which one at least was spoken."""
    inside = sound.borders[1:] or sound.borders
    at = inside[int(rng.integers(len(inside)))]
    made = inserted(sound, at, _line(float(np.clip(pause_s, *PAUSE_S)), floor, rng))
    return replace(made, borders=tuple(border for border in made.borders if border != at))


def _turn(
    caller: int,
    speaker: str,
    text: str,
    sound: Sound,
    floor: float,
    joined: int | None,
    snr_db: float | None,
    is_telephone: bool,
    rng: np.random.Generator,
) -> Turn:
    before = _line(BEFORE_S, floor, rng)
    audio = np.concatenate([before, sound.audio[: sound.end], _line(AFTER_S, floor, rng)])
    sound = Sound(audio, HZ, before.size + sound.start, before.size + sound.end)
    *pauses, (end, _) = _gaps(sound.audio, floor)[1:]
    if snr_db is not None:
        sound = with_noise(sound, noise("pink", sound.audio.size, HZ, rng), snr_db)
    if is_telephone:
        sound = by_telephone(sound, "mulaw")
    between = None if joined is None else before.size + joined
    return Turn(caller, speaker, text, sound.pcm, end, tuple(pauses), between, snr_db, is_telephone)


def _gaps(audio: Pcm32f, floor: float) -> list[tuple[int, int]]:
    """Samples between which there is no speech for `MIN_LABEL_S`; the first gap is before all of it, the last after."""
    frames = audio[: audio.size // FRAME * FRAME].astype(np.float64).reshape(-1, FRAME)
    levels = np.sqrt((frames**2).mean(axis=1))
    quiet = levels < max(ABOVE_NOISE * floor, BELOW_SPEECH * float(np.quantile(levels, 0.95)))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], quiet.astype(np.int8), [0]]))) * FRAME
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= MIN_LABEL_S * HZ]


def _floor(sound: Sound) -> float:
    """RMS of the softest frames of a recording."""
    frames = sound.audio[: sound.audio.size // FRAME * FRAME].astype(np.float64).reshape(-1, FRAME)
    return float(np.quantile(np.sqrt((frames**2).mean(axis=1)), 0.05))


def _line(seconds: float, floor: float, rng: np.random.Generator) -> Pcm32f:
    return floor * noise("pink", round(seconds * HZ), HZ, rng)
