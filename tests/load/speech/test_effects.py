from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from load.hearing import audible, clicks
from load.speech.effects import (
    at_level,
    at_pitch,
    at_rate,
    at_speed,
    by_telephone,
    inserted,
    with_fillers,
    with_noise,
    with_pauses,
)
from load.speech.noise import noise
from load.speech.sound import Sound, active_rms
from tests.load.speech.waves import TOLERANCE_S, pitch_hz, silence, voice_like, words
from wire.pcm import to_int16

RATE_HZ = 16000


def assert_labels_are_heard(sound: Sound) -> None:
    """The labelled ends of speech are those that a listener hears."""
    spans = audible(sound.pcm, sound.rate_hz)
    assert sound.start / sound.rate_hz == pytest.approx(spans[0].start / sound.rate_hz, abs=TOLERANCE_S)
    assert sound.end / sound.rate_hz == pytest.approx(spans[-1].end / sound.rate_hz, abs=TOLERANCE_S)


@given(st.floats(-45, -12))
def test_active_speech_has_the_level_asked_for_however_long_the_pauses(dbfs: float) -> None:
    sound = with_pauses(words([0.4, 0.3, 0.5]), [1.5], np.random.default_rng(0))
    assert 20 * np.log10(active_rms(at_level(sound, dbfs))) == pytest.approx(dbfs, abs=0.1)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.floats(0.6, 1.8), st.lists(st.floats(0.15, 0.6), min_size=1, max_size=4))
@example(1.71875, [0.15625])
def test_speed_changes_the_length_and_carries_the_labels(speed: float, lengths_s: list[float]) -> None:
    sound = words(lengths_s, gap_s=0.08)
    made = at_speed(sound, speed)
    assert made.duration_s == pytest.approx(sound.duration_s / speed, abs=0.001)
    before_s, after_s = ((each.end - each.start) / each.rate_hz for each in (sound, made))
    assert after_s == pytest.approx(before_s / speed, rel=0.1, abs=0.02)  # pieces of 20 ms are laid where they fit
    assert_labels_are_heard(made)


@pytest.mark.parametrize("speed", [0.75, 0.9, 1.15, 1.5])
def test_speed_leaves_the_pitch_and_the_level_alone(speed: float) -> None:
    tone = voice_like(1.0, RATE_HZ, 130)
    sound = Sound(tone, RATE_HZ, 0, tone.size)
    made = at_speed(sound, speed)
    assert pitch_hz(made.audio, RATE_HZ) == pytest.approx(130, rel=0.02)
    assert active_rms(made) == pytest.approx(active_rms(sound), rel=0.05)
    assert clicks(made.pcm, RATE_HZ) == []


@pytest.mark.parametrize("pitch", [0.8, 0.93, 1.1, 1.3])
def test_pitch_moves_every_frequency_and_no_label(pitch: float) -> None:
    sound = words([0.6])
    made = at_pitch(sound, pitch)
    assert made.audio.size == sound.audio.size
    middle = (sound.start + sound.end) // 2
    around = slice(middle - RATE_HZ // 8, middle + RATE_HZ // 8)
    assert pitch_hz(made.audio[around], RATE_HZ) == pytest.approx(110 * pitch, rel=0.03)
    assert made.end == pytest.approx(sound.end, abs=2 * TOLERANCE_S * RATE_HZ)
    assert_labels_are_heard(made)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.5, 1.5), max_size=4), st.integers(0, 1000))
def test_pauses_stand_between_words_and_move_the_end(pauses_s: list[float], seed: int) -> None:
    sound = words([0.3, 0.4, 0.2, 0.5])
    made = with_pauses(sound, pauses_s, np.random.default_rng(seed))
    fitting_s = pauses_s[: len(sound.borders)]
    samples = sum(round(pause_s * RATE_HZ) for pause_s in fitting_s)
    assert made.audio.size == sound.audio.size + samples
    assert (made.start, made.end) == (sound.start, sound.end + samples)
    spans = audible(made.pcm, RATE_HZ)
    assert len(spans) == 1 + len(fitting_s)
    gaps_s = sorted((after.start - before.end) / RATE_HZ for before, after in itertools.pairwise(spans))
    assert gaps_s == pytest.approx([pause_s + 0.05 for pause_s in sorted(fitting_s)], abs=2 * TOLERANCE_S)
    assert_labels_are_heard(made)
    assert list(made.borders) == sorted(made.borders)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.floats(0.5, 1.5), st.integers(0, 20), st.floats(0.7, 1.4))
def test_same_seed_same_samples(pause_s: float, seed: int, speed: float) -> None:
    def made() -> Sound:
        return with_pauses(at_speed(words([0.3, 0.3, 0.3]), speed), [pause_s], np.random.default_rng(seed))

    assert np.array_equal(made().audio, made().audio)


def test_fillers_are_heard_at_the_level_of_the_caller() -> None:
    sound = at_level(words([0.5, 0.5]), -30)
    filler = words([0.3])
    made = with_fillers(sound, [filler], np.random.default_rng(1))
    [border] = sound.borders
    spliced = made.audio[border : border + made.audio.size - sound.audio.size]
    loud = np.flatnonzero(np.abs(spliced) > 0)
    assert np.sqrt(np.mean(spliced[loud[0] : loud[-1]] ** 2)) == pytest.approx(active_rms(sound), rel=0.05)
    assert loud.size / RATE_HZ == pytest.approx(0.3, abs=0.01)
    assert made.end - sound.end == made.audio.size - sound.audio.size
    assert_labels_are_heard(made)


def test_a_splice_within_a_vowel_does_not_click() -> None:
    tone = voice_like(1.0, RATE_HZ)
    made = inserted(Sound(tone, RATE_HZ, 0, tone.size), tone.size // 2, silence(0.5, RATE_HZ))
    assert clicks(made.pcm, RATE_HZ) == []


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.floats(-5, 40), st.sampled_from(["white", "pink", "hum"]))
def test_noise_lies_at_the_stated_ratio_below_the_active_speech(snr_db: float, kind: str) -> None:
    sound = with_pauses(words([0.4, 0.4]), [1.2], np.random.default_rng(0))
    made = with_noise(sound, noise(kind, sound.audio.size, RATE_HZ, np.random.default_rng(5)), snr_db)  # type: ignore[arg-type]
    added = made.audio.astype(np.float64) - sound.audio
    ratio = active_rms(sound) / np.sqrt(np.mean(added**2))
    assert 20 * np.log10(ratio) == pytest.approx(snr_db, abs=0.1)
    assert (made.start, made.end) == (sound.start, sound.end)


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 48000])
def test_telephone_keeps_its_band_and_the_labels(law: str, rate_hz: int) -> None:
    sound = words([0.5, 0.4], rate_hz)
    made = by_telephone(sound, law)  # type: ignore[arg-type]
    assert made.audio.size == sound.audio.size
    assert_labels_are_heard(made)


@pytest.mark.parametrize(("hz", "passes"), [(100, False), (350, True), (1000, True), (3300, True), (3700, False)])
def test_telephone_takes_away_what_lies_outside_its_band(hz: float, *, passes: bool) -> None:
    t = np.arange(RATE_HZ) / RATE_HZ
    tone = (0.3 * np.sin(2 * np.pi * hz * t)).astype(np.float32)
    made = by_telephone(Sound(tone, RATE_HZ, 0, tone.size), "mulaw")
    kept = np.sqrt(np.mean(made.audio**2) / np.mean(tone**2))
    assert kept == pytest.approx(1, abs=0.1) if passes else kept < 0.05


@pytest.mark.parametrize("to_hz", [8000, 22050, 24000, 48000])
def test_another_rate_is_the_same_sound(to_hz: int) -> None:
    sound = words([0.5, 0.3])
    made = at_rate(sound, to_hz)
    assert made.duration_s == pytest.approx(sound.duration_s, abs=0.001)
    assert made.end_s == pytest.approx(sound.end_s, abs=0.001)
    assert_labels_are_heard(made)


@given(st.integers(0, 300), st.integers(0, 300))
def test_what_is_too_loud_clips_as_on_a_line(gain_db: int, seed: int) -> None:
    sound = at_level(words([0.2]), min(gain_db, 30) - 20)
    assert np.array_equal(sound.pcm, to_int16(sound.audio))
    assert np.abs(sound.pcm.astype(int)).max() <= 32768
