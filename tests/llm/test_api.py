from __future__ import annotations

from typing import Any

import pytest

from llm.api import ChatBody, CompletionBody, parse_body
from wire.errors import PeerError

MESSAGES = [{"role": "user", "content": "Hi"}]


def chat(**fields: Any) -> ChatBody:
    return parse_body(ChatBody, {"model": "m", "messages": MESSAGES, **fields})


def test_labels_and_nulls_change_nothing():
    labels = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"}

    assert chat(**labels, temperature=None, tools=None) == chat()


@pytest.mark.parametrize(
    "harmless",
    [
        {"n": 1},
        {"tools": []},
        {"tool_choice": "none"},
        {"logprobs": False},
        {"response_format": {"type": "text"}},
        {"logit_bias": {}},
    ],
)
def test_asking_for_nothing_is_accepted(harmless: dict[str, Any]):
    assert chat(**harmless) == chat()


@pytest.mark.parametrize(
    "wanted",
    [
        {"n": 2},
        {"tools": [{"type": "function"}]},
        {"tool_choice": "required"},
        {"logprobs": True},
        {"top_logprobs": 3},
        {"response_format": {"type": "json_object"}},
        {"logit_bias": {"5": 1}},
        {"modalities": ["audio"]},
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(wanted: dict[str, Any]):
    with pytest.raises(PeerError, match=next(iter(wanted))) as refused:
        chat(**wanted)
    assert refused.value.code == "unsupported_parameter"


def test_a_misspelt_field_is_answered_with_the_right_one():
    with pytest.raises(PeerError, match="did you mean 'max_tokens'"):
        chat(max_token=5)


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [({}, 99), ({"max_tokens": 5}, 5), ({"max_tokens": 0}, 0), ({"max_tokens": 5, "max_completion_tokens": 7}, 7)],
)
def test_the_answers_length(fields: dict[str, int], tokens: int):
    assert chat(**fields).answer_tokens(default=99) == tokens


@pytest.mark.parametrize(("stop", "stops"), [(None, ()), ("a", ("a",)), (["a", "b"], ("a", "b"))])
def test_stop_is_one_string_or_several(stop: object, stops: tuple[str, ...]):
    assert chat(stop=stop).stops() == stops


@pytest.mark.parametrize(
    "wrong",
    [
        {"stop": ""},
        {"stop": [1]},
        {"stop": ["x"] * 17},
        {"stop": "x" * 257},
        {"stop": 5},
        {"max_tokens": -1},
        {"temperature": 9},
        {"temperature": "hot"},
        {"stream": "yes"},
        {"seed": 1.5},
    ],
)
def test_wrong_values_are_refused_by_name(wrong: dict[str, Any]):
    with pytest.raises(PeerError, match=next(iter(wrong))):
        chat(**wrong)


def test_contents_are_strings_or_text_parts():
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]},
    ]

    assert chat(messages=messages).conversation() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user"}],
        [{"role": "robot", "content": "x"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
        [{"role": "assistant", "content": "x", "tool_calls": []}],
        [{"role": ["user"], "content": "x"}],
    ],
)
def test_messages_that_cannot_be_read_are_refused(messages: list[dict[str, Any]]):
    with pytest.raises(PeerError, match="messages"):
        chat(messages=messages).conversation()


def test_a_prompt_is_text_or_token_ids():
    def prompt(value: object) -> object:
        return parse_body(CompletionBody, {"model": "m", "prompt": value}).text_or_tokens(vocab=10)

    assert prompt("x") == "x"
    assert prompt([0, 9]) == [0, 9]
    for wrong in ([10], [-1], [True], ["a", "b"], [[1]], 5):
        with pytest.raises(PeerError, match="prompt"):
            prompt(wrong)


def completion(**fields: Any) -> CompletionBody:
    return parse_body(CompletionBody, {"model": "m", "prompt": "x", **fields})


def test_a_completion_may_tell_what_was_likely():
    assert completion().logprobs is None
    assert completion(logprobs=5).logprobs == 5


@pytest.mark.parametrize("wrong", [{"logprobs": 21}, {"logprobs": -1}, {"logprobs": True}])
def test_so_many_likely_tokens_are_refused(wrong: dict[str, Any]):
    with pytest.raises(PeerError, match="logprobs"):
        completion(**wrong)


def test_a_stream_does_not_tell_what_was_likely():
    with pytest.raises(PeerError, match="logprobs: not in a stream"):
        completion(logprobs=1, stream=True)
