from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deploy.player import Player

RATE_HZ = 1000


def _pcm(samples: int) -> np.ndarray:
    return np.ones(samples, np.int16)


def test_block_ahead_of_time_waits_for_the_one_before() -> None:
    player = Player(RATE_HZ)
    player.receive(_pcm(100), 0.0)
    player.receive(_pcm(100), 0.01)
    assert [start_s for start_s, _ in player.blocks()] == [0.0, 0.1]
    assert player.played(0.15) == 150
    assert player.is_playing(0.19)
    assert not player.is_playing(0.2)


def test_late_block_starts_when_it_arrives() -> None:
    player = Player(RATE_HZ)
    player.receive(_pcm(100), 0.0)
    player.receive(_pcm(100), 0.5)
    assert player.played(0.4) == 100
    assert player.played(0.55) == 150


def test_clear_drops_what_has_not_sounded_and_numbers_on() -> None:
    player = Player(RATE_HZ)
    player.receive(_pcm(100), 0.0)
    player.receive(_pcm(100), 0.0)
    player.clear(200, 0.05)
    assert sum(pcm.size for _, pcm in player.blocks()) == 50
    assert not player.is_playing(0.06)
    player.receive(_pcm(10), 0.3)
    assert player.played(0.305) == 205


@given(st.lists(st.tuples(st.sampled_from(["audio", "clear", "wait"]), st.integers(1, 300)), max_size=60))
def test_position_only_grows_and_never_passes_what_was_received(steps: list[tuple[str, int]]) -> None:
    player, now, received, before = Player(RATE_HZ), 0.0, 0, 0
    for kind, amount in steps:
        if kind == "audio":
            player.receive(_pcm(amount), now)
            received += amount
        elif kind == "clear":
            player.clear(received, now)
            assert not player.is_playing(now)
        else:
            now += amount / 1000
        played = player.played(now)
        assert before <= played <= received
        before = played
    starts = [start_s for start_s, _ in player.blocks()]
    ends = [start_s + pcm.size / RATE_HZ for start_s, pcm in player.blocks()]
    assert all(end <= start + 1e-9 for end, start in zip(ends, starts[1:], strict=False))
