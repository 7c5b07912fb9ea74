import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.errors import PeerError
from wire.pcm import from_bytes, pack_utterance, to_float, to_int16, unpack_utterance


@given(st.lists(st.integers(-32768, 32767)))
def test_int16_survives_float_and_bytes(samples: list[int]):
    pcm = np.array(samples, np.int16)

    np.testing.assert_array_equal(to_int16(to_float(pcm)), pcm)
    np.testing.assert_array_equal(from_bytes(pcm.tobytes(), 16000), pcm)
    utterance, back = unpack_utterance(pack_utterance(2**32 - 1, pcm))
    assert utterance == 2**32 - 1
    np.testing.assert_array_equal(back, pcm)


def test_what_is_too_loud_is_clipped():
    np.testing.assert_array_equal(to_int16(np.array([-2.0, 2.0], np.float32)), [-32768, 32767])


@pytest.mark.parametrize("data", [b"x", b"xyz", bytes(64002)])
def test_half_samples_and_long_messages_are_refused(data: bytes):
    with pytest.raises(PeerError):
        from_bytes(data, 16000)


@pytest.mark.parametrize("data", [b"", b"abc", b"abcde"])
def test_an_utterance_without_header_or_with_half_a_sample_is_refused(data: bytes):
    with pytest.raises(PeerError):
        unpack_utterance(data)
