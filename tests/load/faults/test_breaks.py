from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.faults.breaks import ByteCount, HalfClose, Reset, Stall, timed


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Stall(), "give one of at_s and after_bytes"),
        (lambda: Reset(at_s=1, after_bytes=1), "give one of"),
        (lambda: HalfClose(at_s=-1), "at_s must be"),
        (lambda: Reset(after_bytes=-1), "after_bytes"),
        (lambda: Stall(at_s=1, for_s=float("nan")), "for_s"),
        (lambda: Stall(after_bytes=1), "set direction"),
        (lambda: Reset(at_s=1, connection=0), "counts from 1"),
    ],
)
def test_a_value_out_of_range_says_which(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_timed_breaks_come_in_order_and_only_to_their_connection() -> None:
    late, early, other = Reset(at_s=2), HalfClose(at_s=1), Reset(at_s=1, connection=2)
    assert timed([late, other, early, Reset(after_bytes=1)], 1) == [(1, early), (2, late)]


@given(st.lists(st.binary(max_size=20), max_size=20), st.lists(st.integers(0, 150), max_size=5))
def test_bytes_pass_unchanged_and_every_break_comes_where_it_was_set(chunks, places: list[int]) -> None:
    breaks = [Reset(after_bytes=place) for place in places]
    count, passed, done = ByteCount(breaks, 1, "down"), b"", []
    for chunk in chunks:
        for piece in count.cut(chunk):
            if isinstance(piece, bytes):
                assert piece
                passed += piece
            else:
                assert piece.after_bytes == len(passed)
                done.append(piece)
    assert passed == b"".join(chunks)
    assert count.num_bytes == len(passed)
    if chunks:
        assert len(done) == sum(place <= len(passed) for place in places)


def test_breaks_of_the_other_direction_or_connection_do_not_cut() -> None:
    breaks = [Reset(after_bytes=1, direction="up"), Reset(after_bytes=1, connection=2)]
    assert ByteCount(breaks, 1, "down").cut(b"abc") == [b"abc"]
