from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from load.errors import LoadError
from load.record import CallRecord, Said
from load.recording_wav import stereo, write_call, write_stereo
from load.track import Track
from tests.load.test_hearing import silence, tone

CALLER_HZ, AGENT_HZ = 16000, 24000


def call_of() -> CallRecord:
    """The caller speaks at 11 s, the agent at 12 s, in packets that come in one burst."""
    call = CallRecord(3, "test", "websocket", 0, CALLER_HZ, AGENT_HZ, scheduled_s=9.0, placed_s=10.0, ended_s=14.0)
    call.sent = [(11.0 + 0.02 * i, tone(0.02, CALLER_HZ)) for i in range(20)]
    call.heard = [(12.0, tone(0.02, AGENT_HZ)) for _ in range(25)]
    return call


def audible_s(side: np.ndarray) -> tuple[float, float]:
    loud = np.flatnonzero(np.abs(side.astype(int)) > 1000)
    return loud[0] / AGENT_HZ, loud[-1] / AGENT_HZ


def test_both_sides_are_where_they_sounded(tmp_path: Path) -> None:
    path = write_call(tmp_path / "calls", call_of())
    both, rate_hz = soundfile.read(path, dtype="int16")
    assert path.name == "call-0003.wav"
    assert (rate_hz, both.shape) == (AGENT_HZ, (4 * AGENT_HZ, 2))
    assert audible_s(both[:, 0]) == pytest.approx((1.0, 1.4), abs=0.005)
    assert audible_s(both[:, 1]) == pytest.approx((2.0, 2.5), abs=0.005)


def test_what_the_server_took_back_is_not_heard(tmp_path: Path) -> None:
    call = call_of()
    call.messages.append((12.2, {"type": "clear", "sample": 0}))
    both, _ = soundfile.read(write_call(tmp_path, call), dtype="int16")
    assert audible_s(both[:, 1]) == pytest.approx((2.0, 2.2), abs=0.005)


def test_what_was_said_and_told_stands_beside_in_the_order_of_time(tmp_path: Path) -> None:
    call = call_of()
    call.said.append(Said("hello", "Hello.", 11.0, 11.4))
    call.messages += [(10.1, {"type": "ready"}), (11.9, {"type": "final", "turn": 1, "text": "Hallo, 안녕."})]
    lines = write_call(tmp_path, call).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    assert [(each["at_s"], each["type"]) for each in map(json.loads, lines)] == [
        (0.1, "ready"),
        (1.4, "said"),
        (1.9, "final"),
    ]


def test_a_call_of_which_nothing_came_is_an_empty_file(tmp_path: Path) -> None:
    call = CallRecord(0, "test", "webrtc", 0, CALLER_HZ, AGENT_HZ, scheduled_s=1.0, placed_s=1.0)
    assert soundfile.info(write_call(tmp_path, call)).frames == 0


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LoadError, match="cannot make this folder"):
        write_call(tmp_path / "file", call_of())


def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    track = Track([(0.0, silence(0.1, AGENT_HZ))], AGENT_HZ)
    for name in ("none/call.wav", "call.nothing"):
        with pytest.raises(LoadError, match="cannot write the recording"):
            write_stereo(tmp_path / name, track, track, 0.0, 1.0)


placed = st.lists(st.tuples(st.floats(0, 5), st.integers(0, 400)), max_size=8)


@given(placed, placed, st.sampled_from([8000, 16000, 48000]), st.floats(0, 6), st.floats(0, 6))
def test_the_agents_side_is_kept_to_the_sample(
    sent: list[tuple[float, int]], heard: list[tuple[float, int]], rate_hz: int, start_s: float, end_s: float
) -> None:
    left = Track([(at_s, np.full(size, 9000, np.int16)) for at_s, size in sorted(sent)], rate_hz)
    right = Track([(at_s, np.full(size, 9000, np.int16)) for at_s, size in sorted(heard)], 8000)
    both = stereo(left, right, start_s, end_s)
    agent = right.render(start_s, max(start_s, end_s, left.end_s, right.end_s))
    assert np.array_equal(both[: agent.size, 1], agent)
    assert not both[agent.size :, 1].any()
    assert len(both) - agent.size <= 1
