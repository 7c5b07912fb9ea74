from __future__ import annotations

import numpy as np
import pytest

from load.speech.cast import Cast
from load.speech.delivery import Background, Delivery
from tests.load.speech.waves import words

CLEAN = {"doctor/1": words([0.4, 0.5], 22050), "hotel/1": words([0.6], 22050), "uh": words([0.2], 22050)}
RATE_HZ = 16000


def cast() -> Cast:
    return Cast(CLEAN, ["hotel/1"], RATE_HZ)


def test_speech_has_the_rate_of_the_line_and_its_true_end() -> None:
    sound = cast().say("doctor/1", Delivery(), (1, 0, 0))
    assert sound.rate_hz == RATE_HZ
    assert sound.end_s == pytest.approx(CLEAN["doctor/1"].end_s, abs=0.001)


def test_the_same_place_sounds_the_same_and_another_does_not() -> None:
    delivery = Delivery(num_pauses=1, num_fillers=1, background=Background("babble", 12))
    first, again, other = (cast().say("doctor/1", delivery, place) for place in ((1, 2, 3), (1, 2, 3), (1, 2, 4)))
    assert np.array_equal(first.audio, again.audio)
    assert first.audio.size != other.audio.size or not np.array_equal(first.audio, other.audio)


@pytest.mark.parametrize("kind", ["white", "babble"])
def test_noise_has_its_length_and_level(kind) -> None:
    pcm = cast().noise(kind, 500, -30, (4, 0, 1))
    assert pcm.size == RATE_HZ // 2
    assert 20 * np.log10(np.sqrt(np.mean((pcm / 32768) ** 2))) == pytest.approx(-30, abs=0.2)
