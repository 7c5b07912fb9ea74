from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.replay.words import PROBES, WORDS, Calibration, fit, messages, probe, text
from load.traces.trace import Part


@given(st.text(max_size=20), st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**32))
def test_a_text_of_a_name_is_always_the_same_and_more_begins_with_less(
    name: str, few: int, more: int, seed: int
) -> None:
    few, more = sorted((few, more))
    assert text(name, more, seed).split()[:few] == text(name, few, seed).split()
    assert len(text(name, more, seed).split()) == more


def test_other_names_and_seeds_have_other_texts() -> None:
    texts = {text("a", 30, 1), text("b", 30, 1), text("a", 30, 2)}
    assert len(texts) == 3
    assert len(set(WORDS)) == len(WORDS)


@given(st.floats(0.5, 4), st.integers(0, 40), st.integers(0, 40))
def test_a_fit_finds_what_words_messages_and_requests_cost(tokens_per_word: float, message: int, request: int) -> None:
    found = fit([round(request + message * len(p) + tokens_per_word * sum(p)) for p in PROBES])
    assert found.is_measured
    assert found.tokens_per_word == pytest.approx(tokens_per_word, abs=0.01)
    assert found.message_tokens == pytest.approx(message, abs=1)
    assert found.request_tokens == pytest.approx(request, abs=3)


def test_a_count_that_does_not_grow_is_no_measurement() -> None:
    assert fit([50, 50, 50]) == Calibration()
    assert "estimate" in str(fit([50, 50, 50]))
    assert "1.500 tokens a word, 4 a message, 9 a request" in str(fit([113, 401, 217]))


def test_probes_are_messages_in_turn() -> None:
    for lengths in PROBES:
        assert [len(message["content"].split()) for message in probe(lengths, 1)] == list(lengths)
    assert [message["role"] for message in probe(PROBES[2], 1)] == ["system", "user", "assistant", "user"]


def test_prompts_have_the_tokens_that_were_wanted() -> None:
    parts = (Part("system", "agent", 1500), Part("user", "a", 40), Part("assistant", "b", 60), Part("user", "c", 25))
    found = messages(parts, Calibration(1.5, 6, 30, is_measured=True), seed=3)
    assert [message["role"] for message in found] == ["system", "user", "assistant", "user"]
    tokens = [6 + 1.5 * len(message["content"].split()) for message in found]
    assert tokens == pytest.approx([1500 - 30, 40, 60, 25], abs=1)


def test_parts_of_one_role_are_one_message_and_share_its_beginning() -> None:
    blocks = tuple(Part("user", f"block {i}", 512) for i in range(3))
    (one,), (two,) = (messages(blocks[:n], Calibration(), 0) for n in (2, 3))
    assert two["content"].startswith(one["content"])


def test_a_part_shorter_than_its_message_costs_is_still_a_word() -> None:
    (one,) = messages((Part("user", "a", 3),), Calibration(1.0, 20, 5, is_measured=True), 0)
    assert len(one["content"].split()) == 1
