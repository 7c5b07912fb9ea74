from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.hearing import HOLD_S, OFF_DBFS, ON_DBFS, audible, clicks, softer_from

RATES_HZ = (8000, 16000, 24000, 48000)
TOLERANCE_S = 0.01


def tone(seconds: float, rate_hz: int, dbfs: float = -12.0, hz: float = 300.0) -> np.ndarray:
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return (np.sin(2 * np.pi * hz * t) * 32767 * 10 ** (dbfs / 20)).astype(np.int16)


def silence(seconds: float, rate_hz: int) -> np.ndarray:
    return np.zeros(round(seconds * rate_hz), np.int16)


def noise(seconds: float, rate_hz: int, dbfs: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return (rng.standard_normal(round(seconds * rate_hz)) * 32768 * 10 ** (dbfs / 20)).astype(np.int16)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("start_s", [0.0, 0.0031, 0.2, 0.7777])
def test_onset_and_end_are_found_to_ten_milliseconds(rate_hz: int, start_s: float) -> None:
    pcm = np.concatenate([silence(start_s, rate_hz), tone(0.5, rate_hz), silence(0.6, rate_hz)])
    [span] = audible(pcm, rate_hz)
    assert span.start / rate_hz == pytest.approx(start_s, abs=TOLERANCE_S)
    assert span.end / rate_hz == pytest.approx(start_s + 0.5, abs=TOLERANCE_S)


def test_a_soft_attack_counts_from_where_it_crosses_the_threshold() -> None:
    rate_hz = 24000
    attack = tone(0.2, rate_hz, 0.0) * np.linspace(0, 0.25, round(0.2 * rate_hz))
    pcm = np.concatenate([silence(0.3, rate_hz), attack.astype(np.int16), tone(0.3, rate_hz)])
    [span] = audible(pcm, rate_hz)
    crossed_s = 0.3 + 0.2 * 10 ** (-42 / 20) * np.sqrt(2) / 0.25
    assert span.start / rate_hz == pytest.approx(crossed_s, abs=TOLERANCE_S)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("attack_s", [0.005, 0.02, 0.08, 0.3])
@pytest.mark.parametrize("floor_dbfs", [None, -65.0, -50.0])
def test_however_slow_the_attack_and_loud_the_floor_the_onset_is_where_it_becomes_audible(
    rate_hz: int, attack_s: float, floor_dbfs: float | None
) -> None:
    """Amplitude grows linearly, as a voice's does; the level of the threshold is crossed on the way."""
    swell = np.linspace(0, 1, round(attack_s * rate_hz))
    speech = np.concatenate([tone(attack_s, rate_hz) * swell, tone(0.4, rate_hz)])
    pcm = np.concatenate([silence(0.5, rate_hz), speech.astype(np.int16), silence(0.6, rate_hz)])
    if floor_dbfs is not None:
        pcm += noise(pcm.size / rate_hz + 1, rate_hz, floor_dbfs)[: pcm.size]
    [span] = audible(pcm, rate_hz)
    crossed_s = 0.5 + attack_s * 10 ** ((ON_DBFS + 12) / 20) * np.sqrt(2)
    assert span.start / rate_hz == pytest.approx(crossed_s, abs=TOLERANCE_S)
    assert span.end / rate_hz == pytest.approx(0.5 + attack_s + 0.4, abs=TOLERANCE_S)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("dbfs", [-120.0, -70.0, -50.0])
def test_comfort_noise_is_not_audible_and_does_not_hide_speech(rate_hz: int, dbfs: float) -> None:
    assert audible(noise(20.0, rate_hz, dbfs), rate_hz) == []
    pcm = noise(3.0, rate_hz, dbfs)
    pcm[rate_hz // 2 : rate_hz] += tone(0.5, rate_hz)
    [span] = audible(pcm, rate_hz)
    assert span.start / rate_hz == pytest.approx(0.5, abs=TOLERANCE_S)
    assert span.end / rate_hz == pytest.approx(1.0, abs=TOLERANCE_S)


def test_noise_above_the_lower_threshold_holds_on_behind_speech_and_does_not_begin_it() -> None:
    rate_hz = 16000
    floor = noise(2.0, rate_hz, OFF_DBFS + 1.5)
    assert audible(floor, rate_hz) == []
    floor[8000:16000] += tone(0.5, rate_hz)
    [span] = audible(floor, rate_hz)
    assert span.start / rate_hz == pytest.approx(0.5, abs=TOLERANCE_S)
    assert span.end == pytest.approx(floor.size, abs=HOLD_S * rate_hz)


@pytest.mark.parametrize(("dbfs", "from_s"), [(-30.0, 0.3), (-19.0, 0.3), (-16.0, 0.8), (-120.0, 0.3)])
def test_six_decibels_less_are_softer(dbfs: float, from_s: float) -> None:
    rate_hz = 24000
    during = np.concatenate([tone(0.3, rate_hz), tone(0.5, rate_hz, dbfs)])
    assert softer_from(tone(1.0, rate_hz), during, rate_hz) / rate_hz == pytest.approx(from_s, abs=0.02)


def test_a_pause_between_words_is_not_softer_speech_when_it_comes_back() -> None:
    rate_hz = 24000
    during = np.concatenate([tone(0.1, rate_hz), silence(0.1, rate_hz), tone(0.1, rate_hz), silence(0.3, rate_hz)])
    assert softer_from(tone(1.0, rate_hz), during, rate_hz) / rate_hz == pytest.approx(0.3, abs=0.02)
    assert softer_from(tone(1.0, rate_hz), silence(0.0, rate_hz), rate_hz) == 0


@pytest.mark.parametrize(("pause_s", "tells"), [(0.06, True), (0.15, False), (1.0, False)])
def test_who_pauses_right_before_tells_nothing_of_ducking(pause_s: float, tells: bool) -> None:
    rate_hz = 24000
    before = np.concatenate([tone(1.0, rate_hz), silence(pause_s, rate_hz)])[-rate_hz:]
    assert (softer_from(before, silence(0.5, rate_hz), rate_hz) is not None) == tells


def test_a_gap_within_a_word_does_not_split_it_and_a_pause_does() -> None:
    rate_hz = 24000
    piece = tone(0.3, rate_hz)
    within = np.concatenate([piece, silence(HOLD_S - 0.05, rate_hz), piece])
    between = np.concatenate([piece, silence(HOLD_S + 0.05, rate_hz), piece])
    assert len(audible(within, rate_hz)) == 1
    assert len(audible(between, rate_hz)) == 2


def test_a_click_is_not_speech() -> None:
    pcm = silence(1.0, 16000)
    pcm[8000] = 30000
    assert audible(pcm, 16000) == []


@given(st.lists(st.tuples(st.floats(0.25, 0.6), st.floats(0.05, 0.5)), max_size=4))
def test_every_burst_is_found_once_and_in_order(bursts: list[tuple[float, float]]) -> None:
    rate_hz = 8000
    parts, expected, at = [silence(0.1, rate_hz)], [], 0.1
    for gap_s, length_s in bursts:
        parts += [silence(gap_s, rate_hz), tone(length_s, rate_hz)]
        expected.append((at + gap_s, at + gap_s + length_s))
        at += gap_s + length_s
    found = audible(np.concatenate(parts), rate_hz)
    assert len(found) == len(expected)
    for span, (start_s, end_s) in zip(found, expected, strict=True):
        assert span.start / rate_hz == pytest.approx(start_s, abs=TOLERANCE_S)
        assert span.end / rate_hz == pytest.approx(end_s, abs=TOLERANCE_S)


def test_nothing_is_heard_in_nothing() -> None:
    assert audible(np.zeros(0, np.int16), 16000) == []
    assert clicks(np.zeros(0, np.int16), 16000) == []


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_pieces_that_do_not_fit_click_and_those_that_do_are_quiet(rate_hz: int) -> None:
    piece = tone(0.5, rate_hz, -6.0, 200.0)
    assert clicks(np.concatenate([piece, piece]), rate_hz) == []
    quarter = round(rate_hz / 200 / 4)
    cut = np.concatenate([piece[: round(0.25 * rate_hz) + quarter], -piece[round(0.25 * rate_hz) + quarter :]])
    assert clicks(cut, rate_hz) == [pytest.approx(round(0.25 * rate_hz) + quarter, abs=2)]


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize("pulse_hz", [75, 100, 200])
def test_a_loud_voice_does_not_click(rate_hz: int, pulse_hz: int) -> None:
    """Its pulses jump, and come again."""
    t = np.arange(rate_hz) / rate_hz
    pulses = (0.6 * (0.5 - np.mod(t * pulse_hz, 1)) * 32767).astype(np.int16)
    assert clicks(pulses, rate_hz) == []


@pytest.mark.parametrize("rate_hz", [16000, 24000, 48000])
def test_a_jump_that_a_resampler_has_spread_still_clicks(rate_hz: int) -> None:
    quiet = tone(0.1, rate_hz, -40.0).astype(float)
    jumped = np.concatenate([quiet, quiet + 20000])
    spread = np.convolve(jumped, [0.3, 0.5, 0.2], mode="valid").astype(np.int16)
    assert clicks(spread, rate_hz) == [pytest.approx(round(0.1 * rate_hz), abs=2)]
