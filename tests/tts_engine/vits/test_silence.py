from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.vits.silence import AUDIBLE, SilenceTrimmer

RATE_HZ = 1000
LEAD, TAIL = 10, 20  # samples
AUDIO = st.lists(st.sampled_from([0.0, AUDIBLE / 2, -AUDIBLE, 0.5]), max_size=120)


def trimmed(audio: list[float], size: int, at_least: int = 0) -> tuple[np.ndarray, int]:
    trimmer = SilenceTrimmer(RATE_HZ, LEAD / RATE_HZ, TAIL / RATE_HZ)
    array = np.array(audio, np.float32)
    parts = [trimmer.push(array[i : i + size]) for i in range(0, len(audio), size)]
    return np.concatenate([np.zeros(0, np.float32), *parts, trimmer.finish(at_least)]), trimmer.num_trimmed


@given(AUDIO, st.integers(1, 40))
def test_chunks_give_what_the_whole_gives(audio: list[float], size: int):
    chunked, whole = trimmed(audio, size), trimmed(audio, max(1, len(audio)))

    assert np.array_equal(chunked[0], whole[0])
    assert chunked[1] == whole[1]


@given(AUDIO, st.integers(1, 40))
def test_only_silence_at_the_ends_is_taken(audio: list[float], size: int):
    array = np.array(audio, np.float32)
    audible = np.flatnonzero(np.abs(array) >= np.float32(AUDIBLE))
    result, num_trimmed = trimmed(audio, size)
    if audible.size == 0:
        assert result.size <= TAIL
        return
    first, last = int(audible[0]), int(audible[-1])

    assert num_trimmed == max(0, first - LEAD)
    assert np.array_equal(result, array[num_trimmed : last + 1 + TAIL])


def test_the_tail_is_kept_as_long_as_a_word_lasts():
    audio = [0.5] * 5 + [0.0] * 95

    assert trimmed(audio, 7)[0].size == 5 + TAIL
    assert trimmed(audio, 7, at_least=60)[0].size == 60
    assert trimmed(audio, 7, at_least=500)[0].size == 100
