from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stt.segments import MAX_PIECE_S, cuts
from tests.speech import RATE_HZ, silence, white_noise


@given(st.integers(0, 100 * RATE_HZ), st.integers(0, 3))
def test_pieces_join_to_the_whole_and_fit_the_model(num_samples: int, seed: int) -> None:
    pcm = np.random.default_rng(seed).integers(-9000, 9000, num_samples, np.int16)
    edges = [0, *cuts(pcm)]
    sizes = np.diff(edges)
    assert edges[-1] == num_samples
    assert (sizes > 0).all()
    assert (sizes <= MAX_PIECE_S * RATE_HZ).all()


def test_short_audio_is_one_piece() -> None:
    assert cuts(white_noise(28, -20)) == [28 * RATE_HZ]


def test_the_cut_falls_into_the_pause() -> None:
    pcm = np.concatenate([white_noise(20, -20), silence(0.5), white_noise(20, -20)])
    first, last = cuts(pcm)
    assert 20.0 < first / RATE_HZ < 20.5
    assert last == pcm.size


def test_the_latest_of_equal_pauses_is_taken() -> None:
    pcm = np.concatenate([white_noise(17, -20), silence(0.5), white_noise(5, -20), silence(0.5), white_noise(15, -20)])
    assert 22.5 < cuts(pcm)[0] / RATE_HZ < 23.0
