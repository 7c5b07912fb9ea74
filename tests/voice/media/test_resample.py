import itertools

import numpy as np
import pytest

from tests.speech import tone
from voice.media.resample import Resampler

RATES_HZ = (8000, 16000, 22050, 24000, 44100, 48000)
PAIRS = [pair for pair in itertools.product(RATES_HZ, RATES_HZ) if pair[0] != pair[1]]
HELD_BACK_S = 0.001


@pytest.mark.parametrize(("from_hz", "to_hz"), PAIRS)
def test_a_millisecond_is_held_back_and_nothing_is_lost(from_hz: int, to_hz: int):
    resampler = Resampler(from_hz, to_hz)
    got, frame = 0, np.zeros(from_hz // 50, np.int16)
    for i in range(1, 51):
        got += resampler.push(frame).size
        assert i * frame.size / from_hz - got / to_hz <= HELD_BACK_S + 1e-4
    got += resampler.flush().size

    assert got / to_hz == pytest.approx(50 * frame.size / from_hz, abs=1e-4)


@pytest.mark.parametrize(("from_hz", "to_hz"), PAIRS)
def test_sound_stays_where_it_was(from_hz: int, to_hz: int):
    pcm = np.zeros(from_hz // 5, np.int16)
    pcm[from_hz // 10] = 30000
    resampler = Resampler(from_hz, to_hz)

    out = np.concatenate([resampler.push(pcm), resampler.flush()]).astype(float)

    assert np.argmax(np.abs(out)) / to_hz == pytest.approx(0.1, abs=1e-4)


@pytest.mark.parametrize(("from_hz", "to_hz"), [(48000, 16000), (8000, 16000), (22050, 24000), (24000, 8000)])
def test_pieces_of_any_size_give_what_the_whole_gives(from_hz: int, to_hz: int):
    pcm = tone(0.5, 440)
    whole = Resampler(from_hz, to_hz)
    pieces = Resampler(from_hz, to_hz)
    cuts = np.sort(np.random.default_rng(7).integers(0, pcm.size, 23))

    expected = np.concatenate([whole.push(pcm), whole.flush()])
    got = np.concatenate([*(pieces.push(part) for part in np.split(pcm, cuts)), pieces.flush()])

    np.testing.assert_array_equal(got, expected)


def test_equal_rates_pass_through_untouched():
    pcm = tone(0.1, 300)

    assert Resampler(16000, 16000).push(pcm) is pcm


def test_flush_starts_afresh():
    resampler, pcm = Resampler(48000, 16000), tone(0.1, 300)
    first = np.concatenate([resampler.push(pcm), resampler.flush()])
    second = np.concatenate([resampler.push(pcm), resampler.flush()])

    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("from_hz", "to_hz", "hz", "least_db", "most_db"),
    [
        (8000, 16000, 3000, -0.1, 0.1),  # the telephone band passes ...
        (24000, 8000, 3000, -0.1, 0.1),
        (24000, 8000, 3400, -1.0, 0.1),
        (48000, 16000, 7000, -0.5, 0.1),
        (24000, 8000, 4600, -120, -30),  # ... and what lies above does not fold back into it
        (48000, 8000, 5000, -120, -60),
        (48000, 16000, 9200, -120, -80),
    ],
)
def test_the_band_of_the_lower_rate_passes_and_nothing_folds_back(
    from_hz: int, to_hz: int, hz: int, least_db: float, most_db: float
):
    t = np.arange(from_hz) / from_hz
    resampler = Resampler(from_hz, to_hz)

    out = resampler.push((20000 * np.sin(2 * np.pi * hz * t)).astype(np.int16)).astype(float)

    middle = out[to_hz // 4 : 3 * to_hz // 4]
    level_db = 20 * np.log10(max(np.sqrt(2 * (middle**2).mean()), 1e-2) / 20000)
    assert least_db <= level_db <= most_db
