from __future__ import annotations

import numpy as np
import pytest

from load.interruption import interruption
from load.record import Said
from load.track import track_of
from tests.load.test_hearing import silence, tone
from tests.load.test_measure import CLOSE, QUESTION, RATE_HZ, call

STOP = Said("stop", "Stop.", 3.5, 3.8, is_barge_in=True)


def clear(at_s: float) -> tuple[float, dict[str, object]]:
    return at_s, {"type": "clear", "turn": 1, "sample": 0}


def test_an_agent_that_goes_on_behind_a_short_word_has_stopped_where_it_is_silent() -> None:
    record = call([QUESTION, STOP], [(2.5, tone(2.0, RATE_HZ))])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stop_s == pytest.approx(1.0, abs=CLOSE)
    assert found.stale_s is None  # nobody said that it was to stop


def test_a_gap_between_words_at_the_onset_is_not_the_end() -> None:
    speech = np.concatenate([tone(0.95, RATE_HZ), silence(0.1, RATE_HZ), tone(0.35, RATE_HZ)])
    record = call([QUESTION, STOP], [(2.5, speech)])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stop_s == pytest.approx(0.4, abs=CLOSE)


def test_an_agent_that_takes_a_breath_and_goes_on_has_not_stopped() -> None:
    speech = np.concatenate([tone(1.1, RATE_HZ), silence(0.3, RATE_HZ), tone(0.6, RATE_HZ)])
    goes_on = Said("again", "No, no, that is not what I meant.", 3.5, 5.5, is_barge_in=True)
    record = call([QUESTION, goes_on], [(2.5, speech)])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stop_s == pytest.approx(1.0, abs=CLOSE)


def test_an_answer_that_was_over_is_not_interrupted() -> None:
    record = call([QUESTION, STOP], [(2.5, tone(0.7, RATE_HZ)), (4.2, tone(0.5, RATE_HZ))])
    assert interruption(record, track_of(record), 1) is None
    assert interruption(record, track_of(record), 0) is None


def test_what_is_cleared_in_a_pause_of_its_own_has_stopped_at_once() -> None:
    record = call([QUESTION, STOP], [(2.5, tone(0.7, RATE_HZ)), (4.4, tone(0.5, RATE_HZ))], [clear(3.75)])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert (found.stop_s, found.duck_s, found.stale_s) == (0.0, None, 0.0)


def test_what_lay_there_when_it_was_cleared_is_dropped() -> None:
    record = call([QUESTION, STOP], [(2.5, tone(1.1, RATE_HZ))], [clear(3.75)])
    record.heard.append((3.6, tone(0.3, RATE_HZ)))
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stop_s == pytest.approx(0.25, abs=CLOSE)
    assert found.stale_s == pytest.approx(0.0, abs=CLOSE)


def test_what_comes_after_the_clear_while_the_caller_speaks_is_stale() -> None:
    record = call([QUESTION, STOP], [(2.5, tone(1.4, RATE_HZ)), (4.4, tone(0.5, RATE_HZ))], [clear(3.6)])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stale_s == pytest.approx(0.3, abs=CLOSE)  # what begins at 4.4 is the new answer


@pytest.mark.parametrize(("dbfs", "duck_s"), [(-24.0, 0.1), (-15.0, 0.6)])
def test_an_agent_that_lowers_its_voice_ducks_and_one_that_does_not_ducks_with_its_end(
    dbfs: float, duck_s: float
) -> None:
    speech = np.concatenate([tone(1.1, RATE_HZ), tone(0.5, RATE_HZ, dbfs)])
    record = call([QUESTION, STOP], [(2.5, speech)])
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.duck_s == pytest.approx(duck_s, abs=0.025)


@pytest.mark.parametrize(("tells", "stop_s", "stale_s"), [(True, 0.25, 0.0), (False, 1.5, 0.4)])
def test_a_new_answer_into_a_pause_of_the_barge_in_is_none_of_the_old_one(
    tells: bool, stop_s: float, stale_s: float
) -> None:
    """Its text has been told; without that it is taken for the rest of what was interrupted."""
    pausing = Said("sorry", "Sorry, I only want to know when you close.", 3.5, 6.0, is_barge_in=True)
    messages = [clear(3.8), *([(4.4, {"type": "reply", "turn": 2, "delta": "Sure, "})] if tells else [])]
    record = call([QUESTION, pausing], [(2.5, tone(1.25, RATE_HZ)), (4.6, tone(0.4, RATE_HZ))], messages)
    found = interruption(record, track_of(record), 1)
    assert found is not None
    assert found.stop_s == pytest.approx(stop_s, abs=CLOSE)
    assert found.stale_s == pytest.approx(stale_s, abs=CLOSE)
