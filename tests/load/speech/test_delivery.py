from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load.hearing import audible
from load.speech.delivery import Background, Delivery, Extras, deliver, varied
from load.speech.sound import active_rms
from tests.load.speech.waves import TOLERANCE_S, words

RATE_HZ = 16000
EXTRAS = Extras(fillers=[words([0.25]), words([0.3])], talkers=[words([0.4, 0.5]), words([0.6])])

deliveries = st.builds(
    Delivery,
    level_dbfs=st.floats(-32, -14),
    speed=st.floats(0.7, 1.4),
    pitch=st.floats(0.8, 1.25),
    num_pauses=st.integers(0, 2),
    num_fillers=st.integers(0, 2),
    telephone=st.sampled_from(["none", "mulaw", "alaw"]),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(deliveries, st.integers(0, 100))
def test_the_labelled_end_of_speech_is_the_heard_one_whatever_is_combined(delivery: Delivery, seed: int) -> None:
    sound = words([0.4, 0.3, 0.5])
    made = deliver(sound, delivery, np.random.default_rng(seed), EXTRAS)
    spans = audible(made.pcm, RATE_HZ)
    assert made.start / RATE_HZ == pytest.approx(spans[0].start / RATE_HZ, abs=2 * TOLERANCE_S)
    assert made.end_s == pytest.approx(spans[-1].end / RATE_HZ, abs=2 * TOLERANCE_S)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(deliveries, st.integers(0, 100))
def test_same_seed_same_samples(delivery: Delivery, seed: int) -> None:
    first, second = (deliver(words([0.4, 0.3]), delivery, np.random.default_rng(seed), EXTRAS) for _ in range(2))
    assert np.array_equal(first.audio, second.audio)


@pytest.mark.parametrize("kind", ["white", "pink", "babble", "hum"])
def test_background_is_there_before_between_and_after_the_words(kind) -> None:
    sound = words([0.4, 0.3])
    made = deliver(sound, Delivery(background=Background(kind, 15)), np.random.default_rng(3), EXTRAS)
    behind = made.audio[: sound.start]
    level_db = 20 * np.log10(
        np.sqrt(np.mean(behind**2)) / active_rms(deliver(sound, Delivery(), np.random.default_rng(3)))
    )
    assert level_db == pytest.approx(-15, abs=4)
    assert (made.start, made.end) == (sound.start, sound.end)


@pytest.mark.parametrize(
    "values",
    [
        {"level_dbfs": 0},
        {"speed": 0.2},
        {"pitch": 3},
        {"num_pauses": 6},
        {"min_pause_ms": 900, "max_pause_ms": 800},
    ],
)
def test_values_out_of_range_are_refused(values) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        Delivery(**values)
    with pytest.raises(ValueError, match="snr_db"):
        Background("white", 100)


def test_varied_callers_differ_and_come_out_the_same_again() -> None:
    callers = [varied(np.random.default_rng(seed)) for seed in range(200)]
    assert callers == [varied(np.random.default_rng(seed)) for seed in range(200)]
    assert len({caller.speed for caller in callers}) == len({caller.pitch for caller in callers}) == 200
    assert {caller.telephone for caller in callers} == {"none", "mulaw", "alaw"}
    assert {caller.num_pauses for caller in callers} == {caller.num_fillers for caller in callers} == {0, 1}
    assert {caller.background is None for caller in callers} == {True, False}
