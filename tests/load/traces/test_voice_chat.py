from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.errors import LoadError
from load.traces.trace import reuse_bound
from load.traces.voice_chat import ChatTurn, VoiceChat, generate, read_voice_chat, to_lines

small = st.builds(VoiceChat, seed=st.integers(0, 2**32), num_calls=st.integers(1, 8), num_agents=st.integers(1, 3))


@pytest.mark.slow
@given(small)
def test_the_same_seed_gives_the_same_trace_and_every_turn_is_in_its_ranges(config: VoiceChat) -> None:
    turns = generate(config)
    assert turns == generate(config)
    for turn in turns:
        assert config.min_agent_tokens <= turn.agent_tokens <= config.max_agent_tokens
        assert config.min_new_tokens <= turn.new_tokens <= config.max_new_tokens
        assert config.min_output_tokens <= turn.output_tokens <= config.max_output_tokens
        assert turn.abort_after_tokens is None or 1 <= turn.abort_after_tokens < turn.output_tokens
    for call in {turn.call for turn in turns}:
        times = [turn.at_s for turn in turns if turn.call == call]
        pauses = [b - a for a, b in pairwise(times)]
        assert all(config.min_pause_s - 0.002 <= pause <= config.max_pause_s + 0.002 for pause in pauses)
        assert config.min_turns <= len(times) <= config.max_turns


@pytest.mark.slow
@given(small)
def test_a_trace_reads_back_as_it_was_written(config: VoiceChat) -> None:
    turns = generate(config)
    lines = list(to_lines(config, turns))
    assert len(lines) == len(turns) + 1
    trace = read_voice_chat(lines, "t")
    assert trace.seed == config.seed
    assert [r.at_s for r in trace.requests] == [t.at_s for t in turns]
    assert [r.abort_after_tokens for r in trace.requests] == [t.abort_after_tokens for t in turns]


def test_a_request_repeats_its_call_as_it_was_heard() -> None:
    config = VoiceChat(seed=1)
    turns = [
        ChatTurn(0, 0, 1.0, 2, 1000, 20, 50),
        ChatTurn(0, 1, 5.0, 2, 1000, 30, 60, 7),
        ChatTurn(0, 2, 9.0, 2, 1000, 10, 40),
    ]
    first, second, third = read_voice_chat(to_lines(config, turns), "t").requests
    assert (first.input_tokens, second.input_tokens) == (1020, 1000 + 20 + 50 + 30)
    assert third.input_tokens == 1000 + 20 + 50 + 30 + 7 + 10
    assert [part.role for part in third.parts] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert third.parts[: len(second.parts)] == second.parts


@pytest.mark.slow
def test_aborts_and_arrivals_are_as_often_as_asked_and_most_of_a_prompt_is_known() -> None:
    config = VoiceChat(seed=5, num_calls=600)
    turns = generate(config)
    aborted = sum(turn.abort_after_tokens is not None for turn in turns)
    assert aborted / len(turns) == pytest.approx(0.2, abs=0.02)
    starts = sorted(min(t.at_s for t in turns if t.call == call) for call in range(config.num_calls))
    assert np.mean(np.diff(starts)) == pytest.approx(3.0, rel=0.1)
    assert reuse_bound(read_voice_chat(to_lines(config, turns), "t")) > 0.9


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"num_calls": 0}, "above 0"),
        ({"min_pause_s": 5, "max_pause_s": 4}, "is no range"),
        ({"max_abort_share": 1.5}, "at most 1"),
        ({"seed": -1}, "seed"),
        ({"version": 2}, "not offhook-voice-chat 1"),
        ({"num_cals": 3}, "did you mean 'num_calls'"),
    ],
)
def test_a_bad_header_is_named(change: dict[str, object], problem: str) -> None:
    header, *lines = to_lines(VoiceChat(seed=1), generate(VoiceChat(seed=1, num_calls=1)))
    with pytest.raises(LoadError, match=problem) as failed:
        read_voice_chat([json.dumps({**json.loads(header), **change}), *lines], "calls.jsonl")
    assert str(failed.value).startswith("calls.jsonl:1: ")


def test_a_call_with_a_turn_missing_is_named() -> None:
    lines = list(to_lines(VoiceChat(seed=1), generate(VoiceChat(seed=1, num_calls=1))))
    with pytest.raises(LoadError, match=r"calls.jsonl:3: turn 2 of call 0 comes after 1"):
        read_voice_chat([*lines[:2], *lines[3:]], "calls.jsonl")
