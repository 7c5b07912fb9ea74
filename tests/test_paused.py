"""The corpus of bench/endpointing.py: its labels are what everything there is measured against."""

from dataclasses import replace

import numpy as np
import pytest

from bench.paused import MIN_LABEL_S, Turn, turns
from bench.recordings import HZ, Sentence
from load.speech.sound import labelled
from tests.speech import clip


def make() -> list[Turn]:
    pcm, text = clip("quick_brown_fox")
    sound = labelled(pcm, HZ)
    step = (sound.end - sound.start) // 9
    borders = tuple(range(sound.start + step, sound.end - step, step))
    return turns([Sentence("fox", text, replace(sound, borders=borders))], 60, seed=3)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made() -> list[Turn]:
    return make()


def test_the_same_seed_makes_the_same_turns(made: list[Turn]):
    again = make()

    assert [turn.pauses for turn in again] == [turn.pauses for turn in made]
    assert all(np.array_equal(a.pcm, b.pcm) for a, b in zip(again, made, strict=True))


def test_pauses_lie_in_order_inside_the_turn(made: list[Turn]):
    for turn in made:
        borders = [sample for pause in turn.pauses for sample in pause]
        assert borders == sorted(borders)
        assert all(end - start >= MIN_LABEL_S * HZ for start, end in turn.pauses)
        assert not borders or borders[-1] < turn.end < turn.pcm.size


def test_many_pauses_are_longer_than_a_hasty_agent_waits(made: list[Turn]):
    pauses_s = [(end - start) / HZ for turn in made for start, end in turn.pauses]

    assert len(pauses_s) > 40
    assert np.mean([0.5 <= pause_s <= 1.7 for pause_s in pauses_s]) >= 0.4


def test_a_pause_on_a_quiet_wide_line_is_as_quiet_as_the_line(made: list[Turn]):
    quiet = [turn for turn in made if turn.snr_db is None and not turn.is_telephone and turn.pauses]

    assert quiet
    for turn in quiet:
        speech = np.sqrt(np.mean(turn.pcm[: turn.end].astype(float) ** 2))
        for start, end in turn.pauses:
            assert np.sqrt(np.mean(turn.pcm[start:end].astype(float) ** 2)) < 0.05 * speech
