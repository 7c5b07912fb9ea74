from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from load.lines.playout import Cut, Playout

RATE_HZ = 24000


def test_what_came_in_a_burst_is_cut_where_it_plays() -> None:
    playout = Playout(RATE_HZ)
    for _ in range(10):
        playout.add("a", 0, RATE_HZ // 2, 100.0)
    assert playout.cut(101.25) == [Cut("a", 0, 1250)]


def test_an_item_that_ran_dry_in_between_is_cut_at_what_was_played_of_it() -> None:
    playout = Playout(RATE_HZ)
    playout.add("a", 0, RATE_HZ, 0.0)
    playout.add("a", 0, RATE_HZ, 5.0)
    assert playout.cut(5.5) == [Cut("a", 0, 1500)]


def test_items_behind_the_one_that_plays_were_not_heard_at_all() -> None:
    playout = Playout(RATE_HZ)
    playout.add("a", 0, RATE_HZ, 0.0)
    playout.add("b", 1, RATE_HZ, 0.0)
    playout.add("c", 0, RATE_HZ, 0.0)
    assert playout.cut(1.5) == [Cut("b", 1, 500), Cut("c", 0, 0)]


def test_what_was_played_to_its_end_is_not_cut() -> None:
    playout = Playout(RATE_HZ)
    playout.add("a", 0, RATE_HZ, 0.0)
    assert playout.cut(1.0) == []
    assert playout.cut(2.0) == []


def test_after_a_cut_playing_begins_anew() -> None:
    playout = Playout(RATE_HZ)
    playout.add("a", 0, 10 * RATE_HZ, 0.0)
    playout.cut(1.0)
    playout.add("b", 0, RATE_HZ, 1.0)
    assert playout.cut(1.5) == [Cut("b", 0, 500)]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5 * RATE_HZ), st.floats(0, 3))),
    st.floats(0, 30),
)
def test_no_item_is_cut_behind_its_end(pieces: list[tuple[str, int, float]], wait_s: float) -> None:
    playout, now, received = Playout(RATE_HZ), 0.0, dict.fromkeys("abc", 0)
    for item, num_samples, later_s in pieces:
        now += later_s
        playout.add(item, 0, num_samples, now)
        received[item] += num_samples
    for cut in playout.cut(now + wait_s):
        assert 0 <= cut.audio_end_ms <= 1000 * received[cut.item] / RATE_HZ
    assert playout.cut(now + wait_s) == []
