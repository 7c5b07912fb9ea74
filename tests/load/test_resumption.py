from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.resumption import resumption
from load.speech.g711 import decode, encode
from load.track import Pause
from tests.load.test_hearing import silence, tone
from wire.pcm import Pcm16

RATE_HZ = 16000
ANSWER = np.random.default_rng(5).normal(0, 3000, 8 * RATE_HZ).astype(np.int16)  # no part of it resembles another


def paused(stopped_s: float, sent_s: float, goes_on_s: float) -> Pause:
    """The answer was sent up to `sent_s`, heard up to `stopped_s`, and goes on at `goes_on_s`."""
    stopped, sent, goes_on = (round(at_s * RATE_HZ) for at_s in (stopped_s, sent_s, goes_on_s))
    return Pause(ANSWER[:stopped], ANSWER[stopped:sent], ANSWER[goes_on : goes_on + RATE_HZ])


@pytest.mark.parametrize(
    ("stopped_s", "sent_s", "goes_on_s", "lost_s", "repeated_s"),
    [
        (2.0, 2.16, 2.0, 0.0, 0.0),  # from the sample at which it was held
        (2.0, 2.0, 2.0, 0.0, 0.0),
        (2.0, 2.16, 2.16, 0.16, 0.0),  # what had been sent ahead is gone
        (2.0, 2.16, 2.06, 0.06, 0.0),
        (2.0, 2.16, 1.95, 0.0, 0.05),
        (2.0, 2.0, 1.95, 0.0, 0.05),
        (4.0, 4.0, 1.5, 0.0, 2.5),
        (2.0, 2.0, 1.99, 0.0, 0.0),  # shorter than can be told
    ],
)
def test_where_an_answer_goes_on_is_found_to_the_sample(
    stopped_s: float, sent_s: float, goes_on_s: float, lost_s: float, repeated_s: float
) -> None:
    found = resumption(paused(stopped_s, sent_s, goes_on_s), RATE_HZ)
    assert (found.lost_s, found.repeated_s) == (pytest.approx(lost_s, abs=1e-3), pytest.approx(repeated_s, abs=1e-3))


def test_softer_audio_is_the_same_audio() -> None:
    pause = paused(2.0, 2.16, 1.8)
    ducked = Pause(pause.before // 4, pause.dropped // 4, pause.after)
    assert resumption(ducked, RATE_HZ).repeated_s == pytest.approx(0.2, abs=1e-3)


def test_a_long_repetition_is_found_behind_a_telephone_codec() -> None:
    pause = paused(2.0, 2.0, 1.7)
    after = decode(encode(pause.after, "alaw"), "alaw")
    assert resumption(Pause(pause.before, pause.dropped, after), RATE_HZ).repeated_s == pytest.approx(0.3, abs=1e-3)


def test_silence_is_neither_lost_nor_heard_twice() -> None:
    nothing = silence(0.5, RATE_HZ)
    found = resumption(Pause(np.concatenate([tone(1.0, RATE_HZ), nothing]), nothing, nothing), RATE_HZ)
    assert (found.lost_s, found.repeated_s) == (0.0, 0.0)


def test_a_vowel_that_goes_on_is_not_taken_for_its_own_repetition() -> None:
    """Pitch and loudness drift a little, as a voice's do."""
    t = np.arange(2 * RATE_HZ) / RATE_HZ
    phase = 2 * np.pi * np.cumsum(120 + 6 * t) / RATE_HZ
    vowel = sum(np.sin(k * phase) / k for k in range(1, 12)) * (6000 - 500 * t)
    pcm = vowel.astype(np.int16)
    assert resumption(Pause(pcm[:RATE_HZ], pcm[:0], pcm[RATE_HZ:]), RATE_HZ).repeated_s == 0.0


def hiss(size: int, level: int, seed: int) -> Pcm16:
    return np.random.default_rng(seed).normal(0, level, size).clip(-32768, 32767).astype(np.int16)


samples = st.builds(hiss, st.integers(0, 3000), st.sampled_from([0, 1, 300, 20000]), st.integers(0, 3))


@given(samples, samples, samples)
def test_no_more_is_lost_or_repeated_than_there_was(before: Pcm16, dropped: Pcm16, after: Pcm16) -> None:
    found = resumption(Pause(before, dropped, after), 8000)
    assert 0 <= found.lost_s <= dropped.size / 8000
    assert 0 <= found.repeated_s <= (before.size + after.size) / 8000
    assert not (found.lost_s and found.repeated_s)
