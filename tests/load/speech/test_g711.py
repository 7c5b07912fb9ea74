from __future__ import annotations

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.speech.g711 import decode, encode

EVERY_CODE = np.arange(256, dtype=np.uint8)
EVERY_SAMPLE = np.arange(-32768, 32768, dtype=np.int16)
# ITU-T G.711, tables 1a and 2a: decision values and character signals, scaled from 13 and 14 bits to 16.
MULAW = {0: 0xFF, 32124: 0x80, -32124: 0x00, 8: 0xFE, -8: 0x7E, 120: 0xF0, 132: 0xEF, 16764: 0x8F, -16764: 0x0F}
ALAW = {8: 0xD5, -8: 0x55, 32256: 0xAA, -32256: 0x2A, 24: 0xD4, 264: 0xC5, 1008: 0xFA, -1008: 0x7A, 15616: 0xBB}


@pytest.mark.parametrize(("law", "vectors"), [("mulaw", MULAW), ("alaw", ALAW)])
def test_codes_of_the_standard(law, vectors: dict[int, int]) -> None:
    samples = np.array(list(vectors), np.int16)
    assert encode(samples, law).tolist() == list(vectors.values())
    assert decode(np.array(list(vectors.values()), np.uint8), law).tolist() == samples.tolist()


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
def test_every_level_codes_as_itself(law) -> None:
    levels = decode(EVERY_CODE, law)
    again = encode(levels, law)
    negative_zero = (law == "mulaw") & (EVERY_CODE == 0x7F)  # mu-law has two zeros
    assert np.array_equal(again[~negative_zero], EVERY_CODE[~negative_zero])


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
def test_no_sample_is_further_from_its_level_than_half_a_step(law) -> None:
    levels = np.unique(decode(EVERY_CODE, law).astype(int))
    got = decode(encode(EVERY_SAMPLE, law), law).astype(int)
    at = np.searchsorted(levels, got)
    gaps = np.diff(levels, prepend=levels[0] - 1300, append=levels[-1] + 1300)  # the outermost take the overload
    half_step = np.maximum(gaps[at], gaps[at + 1]) / 2
    assert np.all(np.abs(got - EVERY_SAMPLE) <= half_step + 8)  # the line has two or three bits fewer than int16


@pytest.mark.parametrize(("law", "codec"), [("mulaw", "pcm_mulaw"), ("alaw", "pcm_alaw")])
def test_levels_are_those_of_another_implementation(law, codec: str) -> None:
    context = av.CodecContext.create(codec, "r")
    context.sample_rate, context.layout = 8000, "mono"
    [frame] = context.decode(av.Packet(EVERY_CODE.tobytes()))
    assert np.array_equal(decode(EVERY_CODE, law), frame.to_ndarray()[0])


@pytest.mark.parametrize("law", ["mulaw", "alaw"])
@given(st.integers(-32768, 32767))
def test_the_error_grows_with_the_level_only(law, sample: int) -> None:
    got = int(decode(encode(np.array([sample], np.int16), law), law)[0])
    assert abs(got - sample) <= max(16, abs(sample) / 16 * 1.1, abs(sample) - 32124)
