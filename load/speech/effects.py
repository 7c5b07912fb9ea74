"""What turns clean speech into a caller's: level, speed, pitch, pauses, fillers, noise, the telephone. Pure.

Each takes a `Sound` and gives one whose labels are as true as before; speed and pitch want clean speech. Whatever is
drawn is drawn from the generator that is passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from load.hearing import audible
from load.speech import g711
from load.speech.resample import band_passed, resampled
from load.speech.sound import Sound, active_rms
from load.speech.stretch import stretched
from wire.pcm import Pcm32f, to_float, to_int16

FADE_S = 0.005  # at a splice: speech is cut without a click
AROUND_FILLER_S = (0.12, 0.35)  # silence before and after an "uh"
TELEPHONE_LOW_HZ, TELEPHONE_HIGH_HZ = 300.0, 3400.0  # ITU-T G.712: the passband of a voice channel
TELEPHONE_SLOPE_HZ = 150.0


def at_level(sound: Sound, dbfs: float) -> Sound:
    """Active speech at `dbfs` RMS; peaks above full scale will clip."""
    gain = 10 ** (dbfs / 20) / active_rms(sound)
    return replace(sound, audio=(sound.audio * gain).astype(np.float32))


def at_speed(sound: Sound, speed: float) -> Sound:
    """Faster above 1, slower below, at the same pitch."""
    if speed == 1:
        return sound
    made = stretched(sound.audio, sound.rate_hz, speed)
    start, end, *borders = (made.carry(at) for at in (sound.start, sound.end, *sound.borders))
    if spans := audible(to_int16(made.audio), sound.rate_hz):  # frames were moved, so the ends are listened for again
        start, end = spans[0].start, spans[-1].end
    return Sound(made.audio, sound.rate_hz, start, end, tuple(borders))


def at_pitch(sound: Sound, pitch: float) -> Sound:
    """Every frequency times `pitch`, at the same speed: slowed down, then played faster."""
    if pitch == 1:
        return sound
    slow = at_speed(sound, 1 / pitch)
    size = sound.audio.size
    audio = np.zeros(size, np.float32)
    squeezed = resampled(slow.audio, round(sound.rate_hz * pitch), sound.rate_hz)[:size]
    audio[: squeezed.size] = squeezed
    ratio = sound.rate_hz / round(sound.rate_hz * pitch)
    start, end, *borders = (min(round(at * ratio), size) for at in (slow.start, slow.end, *slow.borders))
    return Sound(audio, sound.rate_hz, start, end, tuple(borders))


def with_pauses(sound: Sound, pauses_s: Sequence[float], rng: np.random.Generator) -> Sound:
    """Silences at different borders between words; those without a border left are left out."""
    return _spliced(sound, [_silence(pause_s, sound.rate_hz) for pause_s in pauses_s], rng)


def with_fillers(sound: Sound, fillers: Sequence[Sound], rng: np.random.Generator) -> Sound:
    """Each "uh" stands between two short silences, at the caller's level."""
    level = active_rms(sound)
    pieces = []
    for filler in fillers:
        assert filler.rate_hz == sound.rate_hz
        before, after = (_silence(rng.uniform(*AROUND_FILLER_S), sound.rate_hz) for _ in range(2))
        spoken = filler.audio[filler.start : filler.end] * (level / active_rms(filler))
        pieces.append(np.concatenate([before, spoken.astype(np.float32), after]))
    return _spliced(sound, pieces, rng)


def inserted(sound: Sound, at: int, piece: Pcm32f) -> Sound:
    """`piece` between the samples before and from `at`, which fade into it."""
    fade = min(round(FADE_S * sound.rate_hz), at, sound.audio.size - at)
    before, after = sound.audio[:at].copy(), sound.audio[at:].copy()
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    before[before.size - fade :] *= ramp[::-1]
    after[:fade] *= ramp

    def moved(sample: int) -> int:
        return sample + piece.size if sample > at else sample

    return Sound(
        np.concatenate([before, piece, after]),
        sound.rate_hz,
        moved(sound.start),
        moved(sound.end),
        tuple(moved(border) for border in sound.borders),
    )


def with_noise(sound: Sound, noise: Pcm32f, snr_db: float) -> Sound:
    """`noise`, of RMS 1 and as long as the sound, `snr_db` below the active speech."""
    assert noise.size == sound.audio.size
    gain = active_rms(sound) / 10 ** (snr_db / 20)
    return replace(sound, audio=(sound.audio + gain * noise).astype(np.float32))


def by_telephone(sound: Sound, law: g711.Law) -> Sound:
    """300 to 3400 Hz, through G.711 and back, at the rate it had."""
    narrow = resampled(sound.audio, sound.rate_hz, g711.RATE_HZ)
    narrow = band_passed(narrow, g711.RATE_HZ, TELEPHONE_LOW_HZ, TELEPHONE_HIGH_HZ, TELEPHONE_SLOPE_HZ)
    coded = to_float(g711.decode(g711.encode(to_int16(narrow), law), law))
    audio = np.zeros(sound.audio.size, np.float32)
    wide = resampled(coded, g711.RATE_HZ, sound.rate_hz)[: audio.size]
    audio[: wide.size] = wide
    return replace(sound, audio=audio)


def at_rate(sound: Sound, rate_hz: int) -> Sound:
    audio = resampled(sound.audio, sound.rate_hz, rate_hz)
    start, end, *borders = (
        min(round(at * rate_hz / sound.rate_hz), audio.size) for at in (sound.start, sound.end, *sound.borders)
    )
    return Sound(audio, rate_hz, start, end, tuple(borders))


def _spliced(sound: Sound, pieces: Sequence[Pcm32f], rng: np.random.Generator) -> Sound:
    """Each piece at another border inside the speech, the last border first so that the others keep their place."""
    inside = [border for border in sound.borders if sound.start < border < sound.end]
    chosen = rng.permutation(len(inside))[: len(pieces)]
    for index, piece in sorted(zip(chosen, pieces, strict=False), key=lambda pair: -pair[0]):
        sound = inserted(sound, inside[index], piece)
    return sound


def _silence(seconds: float, rate_hz: int) -> Pcm32f:
    return np.zeros(round(seconds * rate_hz), np.float32)
