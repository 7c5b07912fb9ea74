from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.lines.rtvi import Rtvi
from wire import calls
from wire.errors import PeerError

NO_DATA = (
    "user-started-speaking",
    "user-stopped-speaking",
    "bot-llm-started",
    "bot-llm-stopped",
    "bot-tts-started",
    "bot-tts-stopped",
    "bot-started-speaking",
    "bot-stopped-speaking",
    "bot-interrupted",
    "metrics",
)
MESSAGES = st.one_of(
    st.tuples(st.sampled_from(NO_DATA), st.just({})),
    st.tuples(st.sampled_from(("bot-llm-text", "bot-tts-text")), st.fixed_dictionaries({"text": st.text(max_size=9)})),
    st.tuples(
        st.just("user-transcription"),
        st.fixed_dictionaries({"text": st.text(max_size=9), "final": st.booleans()}),
    ),
)


def understood(*messages: tuple[str, dict[str, Any]] | str) -> list[calls.ServerMessage]:
    rtvi = Rtvi()
    return [
        told for message in messages for told in rtvi.take(*(message if isinstance(message, tuple) else (message, {})))
    ]


def said(text: str, *, final: bool = True) -> tuple[str, dict[str, Any]]:
    return "user-transcription", {"text": text, "user_id": "u", "timestamp": "t", "final": final}


def text(kind: str, words: str) -> tuple[str, dict[str, Any]]:
    return kind, {"text": words}


ANSWER = (
    "bot-llm-started",
    text("bot-llm-text", "Half past"),
    text("bot-llm-text", " nine."),
    "bot-llm-stopped",
    "bot-started-speaking",
    text("bot-tts-text", "Half"),
    text("bot-tts-text", "past"),
)


def test_a_turn_is_told_from_its_first_word_to_the_end_of_its_answer() -> None:
    told = understood(
        "user-started-speaking",
        said("what time", final=False),
        said("What time"),
        said("do you open?"),
        "user-stopped-speaking",
        *ANSWER,
        text("bot-tts-text", "nine."),
        "bot-stopped-speaking",
    )
    assert told == [
        calls.State("hearing", 1),
        calls.Partial(1, 1, "what time"),
        calls.Final(1, "What time"),
        calls.Final(1, "What time do you open?"),
        calls.State("thinking", 1),
        calls.Reply(1, "Half past"),
        calls.Reply(1, " nine."),
        calls.State("speaking", 1),
        calls.Turn(1, "answered", "What time do you open?", "Half past nine."),
        calls.State("listening", 1),
    ]


def test_an_interrupted_answer_keeps_its_turn_and_what_was_spoken_of_it() -> None:
    told = understood(
        "user-started-speaking",
        said("What time?"),
        "user-stopped-speaking",
        *ANSWER,
        "user-started-speaking",
        "bot-interrupted",
        "bot-stopped-speaking",
        said("No, wait."),
    )
    assert told[-4:] == [
        calls.State("hearing", 2),
        calls.Clear(1, 0),
        calls.Turn(1, "interrupted", "What time?", "Half past"),
        calls.Final(2, "No, wait."),
    ]


def test_a_caller_who_speaks_into_an_answer_without_interrupting_it_does_not_take_its_words() -> None:
    told = understood(
        "user-started-speaking",
        "user-stopped-speaking",
        *ANSWER,
        "user-started-speaking",
        said("Mhm."),
        text("bot-tts-text", "nine."),
        "bot-stopped-speaking",
    )
    assert calls.Final(2, "Mhm.") in told
    assert calls.Turn(1, "answered", "", "Half past nine.") in told


def test_a_pause_of_the_caller_before_any_answer_is_no_new_turn() -> None:
    told = understood(
        "user-started-speaking", "user-stopped-speaking", said("I want"), "user-started-speaking", said("two.")
    )
    assert told[-2:] == [calls.State("hearing", 1), calls.Final(1, "I want two.")]


def test_a_greeting_is_no_turn() -> None:
    told = understood(
        "bot-started-speaking", text("bot-tts-text", "Hello."), "bot-stopped-speaking", "user-started-speaking"
    )
    assert told == [calls.State("speaking", 0), calls.State("listening", 0), calls.State("hearing", 1)]


def test_an_answer_whose_model_goes_on_after_a_silence_is_not_over() -> None:
    told = understood(
        "user-started-speaking",
        "bot-llm-started",
        "bot-started-speaking",
        text("bot-tts-text", "Let me see."),
        "bot-stopped-speaking",
        "bot-started-speaking",
        text("bot-tts-text", "Yes."),
        "bot-llm-stopped",
        "bot-stopped-speaking",
    )
    assert [m for m in told if isinstance(m, calls.Turn)] == [calls.Turn(1, "answered", "", "Let me see. Yes.")]


def test_an_interruption_of_nothing_is_nothing() -> None:
    assert understood("bot-interrupted", "bot-stopped-speaking", "bot-llm-stopped") == []


def test_failures_are_told() -> None:
    told = understood(
        ("error", {"error": "no voice", "fatal": True}),
        ("error", {"error": "slow", "fatal": False}),
        ("error-response", {"error": "which?"}),
    )
    assert told == [
        calls.Error("fatal", "no voice"),
        calls.Error("error", "slow"),
        calls.Error("error-response", "which?"),
    ]


@pytest.mark.parametrize("kind", ["user-transcription", "bot-llm-text", "bot-tts-text", "error", "error-response"])
@pytest.mark.parametrize("data", [{}, {"text": 5, "final": True, "error": None, "fatal": 1}])
def test_what_is_malformed_is_an_error(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(PeerError, match=f"malformed '{kind}'"):
        Rtvi().take(kind, data)


@given(st.lists(MESSAGES, max_size=40))
def test_whatever_comes_turns_only_go_on_and_every_cleared_answer_was_begun(
    messages: list[tuple[str, dict[str, Any]]],
) -> None:
    told = understood(*messages)
    heard = [m.turn for m in told if isinstance(m, calls.State) and m.state == "hearing"]
    assert heard == sorted(heard)
    assert all(m.turn >= 1 for m in told if isinstance(m, calls.Turn))
    begun = {m.turn for m in told if isinstance(m, calls.State)} | {0}
    for message in told:
        if isinstance(message, calls.Clear | calls.Turn | calls.Reply):
            assert message.turn in begun
