"""Where the words of an utterance meet, estimated from its text and its loudness. Pure.

Voices that tell the times of their words are rare, files never do. Each word gets a share of the speech by its
letters; around the place where two words should then meet, the quietest place is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load.speech.sound import Sound

FRAME_S = 0.01
REACH_S = 0.16  # how far a border may lie from its expected place
DISTANCE_DB = 12.0  # a place at the end of the reach must be quieter by this much than one in the middle
MIN_WORD_S = 0.04
COMMA_LETTERS, STOP_LETTERS = 3.0, 5.0  # pauses at punctuation, in letters of speech
WORD_LETTERS = 1.0  # every word takes a little longer than its letters


def with_borders(sound: Sound, text: str) -> Sound:
    """The same sound with one border fewer than the text has words, or fewer still where it is too short."""
    words = text.split()
    weights = np.array([_letters(word) for word in words])
    if len(words) < 2:
        return replace(sound, borders=())
    weights[-1] = _letters(words[-1].rstrip(".,?!;:"))
    expected = sound.start + np.cumsum(weights)[:-1] / weights.sum() * (sound.end - sound.start)
    frame, reach = round(FRAME_S * sound.rate_hz), round(REACH_S * sound.rate_hz)
    levels_db = _levels_db(sound, frame)
    borders: list[int] = []
    shortest = round(MIN_WORD_S * sound.rate_hz)
    earliest = sound.start + shortest
    for place in expected:
        first = max(earliest, round(place) - reach)
        last = min(sound.end - shortest, round(place) + reach)
        if last <= first:
            continue
        at = np.arange(first, last, frame)
        cost = levels_db[at // frame] + DISTANCE_DB * np.abs(at - place) / reach
        borders.append(int(at[int(cost.argmin())]))
        earliest = borders[-1] + shortest
    return replace(sound, borders=tuple(borders))


def _letters(word: str) -> float:
    pause = STOP_LETTERS if word.endswith((".", "?", "!", ";", ":")) else COMMA_LETTERS if word.endswith(",") else 0.0
    return sum(c.isalnum() for c in word) + WORD_LETTERS + pause


def _levels_db(sound: Sound, frame: int) -> np.ndarray:
    """Of three frames around each, so that the zero crossing of a vowel is no gap."""
    padded = np.pad(sound.audio.astype(np.float64), (frame, 2 * frame))
    sums = np.concatenate([[0.0], np.cumsum(padded**2)])
    begins = np.arange(0, sound.audio.size, frame)
    power = (sums[begins + 3 * frame] - sums[begins]) / (3 * frame)
    return np.asarray(10 * np.log10(np.maximum(power, 1e-9)))
