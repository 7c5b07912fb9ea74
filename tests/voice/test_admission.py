import pytest

from voice.admission import MAX_RETRY_S, MIN_RETRY_S, Seats
from wire.errors import Overloaded


def test_the_call_after_the_last_seat_is_refused_and_told_when_to_come_back():
    seats = Seats(2)
    with seats.take(), seats.take(), pytest.raises(Overloaded) as refused, seats.take():
        pass

    assert MIN_RETRY_S <= refused.value.retry_after_s <= MAX_RETRY_S


def test_a_seat_is_given_back_when_the_call_fails():
    seats = Seats(1)
    with pytest.raises(KeyError), seats.take():
        raise KeyError

    with seats.take():
        assert seats.num_taken == 1


def test_short_calls_bring_the_retry_time_down():
    seats = Seats(1)
    before = seats.retry_after_s()
    for _ in range(20):
        seats.note_length(5.0)

    assert seats.retry_after_s() < before / 2
