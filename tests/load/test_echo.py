from __future__ import annotations

import numpy as np
import pytest

from load.echo import EchoRoom
from tests.load.test_hearing import silence, tone

RATE_HZ, OUTPUT_HZ = 16000, 24000
MESSAGE_S = 0.02


def heard(room: EchoRoom, from_s: float, num_messages: int) -> np.ndarray:
    quiet = silence(MESSAGE_S, RATE_HZ)
    return np.concatenate([room.heard(quiet, from_s + i * MESSAGE_S) for i in range(num_messages)])


def test_the_agent_is_heard_later_and_softer() -> None:
    room = EchoRoom(-20.0, 0.1, RATE_HZ, OUTPUT_HZ)
    room.play(tone(0.2, OUTPUT_HZ), at_s=1.0)
    echo = heard(room, 1.0, 20)

    loud = np.flatnonzero(np.abs(echo) > 30)
    assert loud[0] / RATE_HZ == pytest.approx(0.1, abs=0.002)
    assert loud[-1] / RATE_HZ == pytest.approx(0.3, abs=0.002)
    whole = tone(0.2, RATE_HZ).astype(float)
    assert np.abs(echo).max() == pytest.approx(0.1 * np.abs(whole).max(), rel=0.05)


def test_what_was_cleared_before_it_sounded_is_not_heard() -> None:
    room = EchoRoom(-20.0, 0.0, RATE_HZ, OUTPUT_HZ)
    room.play(tone(0.1, OUTPUT_HZ), at_s=0.0)
    room.play(tone(0.1, OUTPUT_HZ), at_s=0.1)
    room.clear(0.05)
    echo = heard(room, 0.0, 10)

    assert np.flatnonzero(np.abs(echo) > 30)[-1] / RATE_HZ == pytest.approx(0.05, abs=0.002)


def test_the_caller_is_heard_as_before_where_nothing_sounds() -> None:
    piece = tone(MESSAGE_S, RATE_HZ)
    room = EchoRoom(-20.0, 0.1, RATE_HZ, OUTPUT_HZ)
    assert room.heard(piece, 5.0) is piece


def test_loud_speech_with_its_echo_is_clipped_and_does_not_wrap() -> None:
    room = EchoRoom(0.0, 0.0, RATE_HZ, OUTPUT_HZ)
    room.play(np.full(OUTPUT_HZ, 30000, np.int16), at_s=0.0)
    both = room.heard(np.full(320, 30000, np.int16), 0.1)
    assert both.min() > 32000
