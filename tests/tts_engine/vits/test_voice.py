"""The real voice: its split graphs against the whole, its noise, its chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.vits.voice import FIRST_CHUNK_FRAMES, MIN_CHUNK_FRAMES, VitsVoice, chunk_bounds

HELLO = "həlˈoʊ, haʊ kæn aɪ hˈɛlp juː tədˈeɪ?"


@given(st.integers(0, 3000))
def test_chunks_join_to_all_frames_without_a_tiny_one(num_frames: int):
    bounds = chunk_bounds(num_frames)

    assert [start for start, _ in bounds] == [0, *(end for _, end in bounds[:-1])] if bounds else num_frames == 0
    if bounds:
        assert bounds[-1][1] == num_frames
        assert bounds[0][1] <= FIRST_CHUNK_FRAMES + MIN_CHUNK_FRAMES
        assert all(end - start >= MIN_CHUNK_FRAMES for start, end in bounds) or len(bounds) == 1


@pytest.mark.slow
@pytest.mark.parametrize("symbols", ["jˈɛs.", HELLO, HELLO * 5])
def test_streamed_equals_whole(voice: VitsVoice, symbols: str):
    encoded, again = (voice.encode(symbols, seed=1, index=0) for _ in range(2))
    whole = voice.decode(encoded, 0, encoded.num_frames)
    streamed = np.concatenate([voice.decode(again, *bounds) for bounds in chunk_bounds(again.num_frames)])

    np.testing.assert_allclose(again.z[:, :, : encoded.num_frames], encoded.z, rtol=0, atol=1e-4)
    assert whole.size == encoded.num_frames * voice.hop_samples
    np.testing.assert_allclose(streamed, whole, rtol=0, atol=1e-5)
    assert np.abs(whole).max() > 0.1


@pytest.mark.slow
def test_noise_depends_on_seed_and_index_alone(voice: VitsVoice):
    def z(seed: int, index: int) -> np.ndarray:
        return voice.encode(HELLO, seed=seed, index=index).prior

    assert np.array_equal(z(5, 2), z(5, 2))
    assert not np.array_equal(z(5, 2)[:, :, :40], z(6, 2)[:, :, :40])
    assert not np.array_equal(z(5, 2)[:, :, :40], z(5, 3)[:, :, :40])
    assert np.array_equal(z(-1, 0), z(2**64 - 1, 0))  # any int is a seed


@pytest.mark.slow
def test_durations_are_one_per_symbol_and_end_with_the_audio(voice: VitsVoice):
    encoded = voice.encode(HELLO, seed=1, index=0)

    assert encoded.frame_ends.size == len(HELLO)
    assert np.all(np.diff(encoded.frame_ends) > 0)
    assert 0 < encoded.start_frame < encoded.frame_ends[0]
    assert encoded.frame_ends[-1] < encoded.num_frames


@pytest.mark.slow
def test_slower_speech_has_more_frames(voice: VitsVoice):
    slow, fast = (voice.encode(HELLO, seed=1, index=0, speed=speed).num_frames for speed in (0.5, 2.0))

    assert slow > 2 * fast


@pytest.mark.slow
def test_symbols_that_the_voice_lacks_are_silent_but_counted(voice: VitsVoice):
    assert voice.encode("jˈɛs한.", seed=1, index=0).frame_ends.size == 6


@pytest.mark.slow
def test_chunk_borders_do_not_click(voice: VitsVoice):
    encoded = voice.encode(HELLO * 3, seed=1, index=0)
    bounds = chunk_bounds(encoded.num_frames)
    jumps = np.abs(np.diff(np.concatenate([voice.decode(encoded, *b) for b in bounds])))
    at_borders = [jumps[end * voice.hop_samples - 1] for _, end in bounds[:-1]]

    assert max(at_borders) <= jumps.max()
    assert np.median(at_borders) <= 3 * np.median(jumps)
