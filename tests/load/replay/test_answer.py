from __future__ import annotations

import json

import pytest

from load.replay.answer import Answer
from wire.errors import PeerError


def delta(text: str | None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})


def usage(prompt: object = 100, completion: object = 10, cached: object = 40) -> str:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return json.dumps({"choices": [], "usage": counts | {"prompt_tokens_details": {"cached_tokens": cached}}})


def test_figures_count_from_the_scheduled_time() -> None:
    answer = Answer()
    for i, event in enumerate([delta(""), delta("a"), delta("b"), delta("c"), usage(completion=5), "[DONE]"]):
        answer.take(event, 10 + 0.1 * i)
    assert answer.is_over
    found = answer.figures(scheduled_s=9.0, sent_s=9.5, wanted_tokens=80, is_whole=True)
    assert found == {
        "ttft_s": pytest.approx(1.1),
        "ttft_from_sent_s": pytest.approx(0.6),
        "tpot_s": pytest.approx(0.05),
        "latency_s": pytest.approx(1.3),
        "output_tokens": 5,
        "prompt_tokens": 100,
        "prompt_to_wanted": 1.25,
        "cached_tokens": 40,
        "cached_share": 0.4,
    }


def test_without_usage_events_are_counted_and_nothing_is_said_of_the_prompt() -> None:
    answer = Answer()
    for i in range(3):
        answer.take(delta("x"), float(i))
    found = answer.figures(0.0, 0.0, 10, is_whole=False)
    assert found["output_tokens"] == 3
    assert found["tpot_s"] == 1.0
    assert "latency_s" not in found
    assert "prompt_tokens" not in found


@pytest.mark.parametrize("count", [None, "many", -1, True, 1.5, 10**400])
def test_a_count_that_is_none_is_left_out(count: object) -> None:
    answer = Answer()
    answer.take(delta("x"), 1.0)
    answer.take(usage(prompt=count, cached=count), 2.0)
    assert not {"prompt_tokens", "cached_tokens"} & set(answer.figures(0.0, 0.0, 10, is_whole=True))


def test_an_answer_without_text_has_no_figures() -> None:
    answer = Answer()
    answer.take(delta(None), 1.0)
    assert answer.figures(0.0, 0.0, 10, is_whole=True) == {}


@pytest.mark.parametrize(
    "event", ["{", "[]", "{}", '{"choices": 3}', '{"choices": [1]}', '{"choices": [{}]}', '{"error": {"message": "x"}}']
)
def test_what_is_no_event_is_the_servers_mistake(event: str) -> None:
    with pytest.raises(PeerError):
        Answer().take(event, 0.0)
