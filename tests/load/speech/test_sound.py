from __future__ import annotations

import numpy as np
import pytest

from load.speech.borders import with_borders
from load.speech.sound import Silent, active_rms, labelled
from tests.load.speech.waves import TOLERANCE_S, silence, voice_like, words
from wire.pcm import to_int16

RATE_HZ = 16000


def test_speech_is_labelled_where_it_is_heard() -> None:
    sound = labelled(words([0.4, 0.5], lead_s=0.25, tail_s=0.6).pcm, RATE_HZ)
    assert sound.start / RATE_HZ == pytest.approx(0.25, abs=TOLERANCE_S)
    assert sound.end_s == pytest.approx(0.25 + 0.4 + 0.05 + 0.5, abs=TOLERANCE_S)


@pytest.mark.parametrize("size", [0, 1, 16000])
def test_silence_has_no_label(size: int) -> None:
    with pytest.raises(Silent):
        labelled(np.zeros(size, np.int16), RATE_HZ)


def test_pauses_do_not_count_for_the_level() -> None:
    tone = voice_like(0.5, RATE_HZ, dbfs=-20)
    paused = np.concatenate([tone, silence(2, RATE_HZ), tone])
    assert 20 * np.log10(active_rms(labelled(to_int16(paused), RATE_HZ))) == pytest.approx(-20, abs=0.3)


def test_borders_lie_in_the_gaps_between_words() -> None:
    sound = words([0.3, 0.42, 0.36, 0.5], gap_s=0.06)
    found = with_borders(sound, "one second third fourths").borders
    assert len(found) == 3
    assert found == pytest.approx(sound.borders, abs=0.03 * RATE_HZ)


@pytest.mark.parametrize("text", ["", "Yes.", "..."])
def test_one_word_has_no_border(text: str) -> None:
    assert with_borders(words([0.5]), text).borders == ()


def test_more_words_than_fit_leave_borders_out_and_keep_order() -> None:
    found = with_borders(words([0.12]), "a b c d e f g h").borders
    assert list(found) == sorted(set(found))
    assert len(found) < 7
