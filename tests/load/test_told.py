from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from load.record import Said
from load.told import Messages, Reply, claimed, ended_by_server_s, replies, reply_text, state_at, understood
from tests.load.test_measure import call
from wire import calls

INFINITE = float("inf")


def told(*messages: tuple[float, calls.ServerMessage]) -> list[tuple[float, dict[str, object]]]:
    return [(at_s, {"type": message.TYPE, **asdict(message)}) for at_s, message in messages]


def test_a_reply_lasts_from_its_first_text_to_the_report_of_its_turn() -> None:
    messages = told(
        (1.0, calls.Reply(1, "We ")), (1.1, calls.Reply(1, "open.")), (2.0, calls.Turn(1, "answered", "", "")),
        (5.0, calls.Reply(2, "Yes.")),
    )  # fmt: skip
    assert replies(messages) == [Reply(1, 1.0, 2.0), Reply(2, 5.0, INFINITE)]


def test_a_withdrawn_reply_and_the_one_after_it_are_two() -> None:
    messages = told(
        (1.0, calls.Reply(1, "We")), (1.2, calls.State("hearing", 1)), (2.0, calls.Reply(1, "Oh")),
        (2.5, calls.Reply(2, "Yes")),
    )  # fmt: skip
    assert replies(messages) == [Reply(1, 1.0, 1.2), Reply(1, 2.0, 2.5), Reply(2, 2.5, INFINITE)]


def test_a_transcript_belongs_to_the_utterance_that_began_before_it() -> None:
    record = call(
        [Said("a", "One two three.", 1.0, 2.0), Said("b", "Four.", 4.0, 4.5)],
        [],
        told(
            (1.6, calls.Final(1, "one")), (1.8, calls.Final(1, "one two")), (2.2, calls.Final(2, "three")),
            (2.3, calls.Reply(2, "Yes")), (3.0, calls.Turn(2, "answered", "", "Yes")), (4.7, calls.Final(3, "for")),
        ),
    )  # fmt: skip
    assert understood(record, 0) == "one two three"
    assert (understood(record, 1), claimed(record, 1)) == ("for", (3, {}))
    number, claim = claimed(record, 0)
    assert (number, claim["heard"], reply_text(record, number)) == (2, "Yes", "Yes")


def test_the_state_is_the_last_that_was_told_by_then() -> None:
    messages = told((1.0, calls.State("hearing", 1)), (2.0, calls.State("thinking", 1)))
    assert [state_at(messages, at_s) for at_s in (0.5, 1.0, 3.0)] == [None, "hearing", "thinking"]


def test_only_a_call_that_the_caller_did_not_end_was_ended_by_the_server() -> None:
    assert ended_by_server_s(call([], [], told((4.0, calls.Bye("idle"))))) == 4.0
    assert ended_by_server_s(call([], [], told((4.0, calls.Bye("hangup"))))) is None
    lost = call([], [])
    lost.outcome, lost.ended_s = "broken", 7.0
    assert ended_by_server_s(lost) == 7.0


turns = st.integers(0, 3)
messages = st.lists(
    st.one_of(
        st.builds(calls.Reply, turns, st.sampled_from(["a", " b"])),
        st.builds(calls.State, st.sampled_from(["listening", "hearing", "thinking", "speaking", "closing"]), turns),
        st.builds(
            calls.Turn,
            turns,
            st.sampled_from(["answered", "interrupted", "failed", "empty"]),
            st.just("a"),
            st.just("b"),
        ),
        st.builds(calls.Clear, turns, st.integers(0, 10)),
    ),
    max_size=20,
).map(lambda found: told(*((float(i), message) for i, message in enumerate(found))))


@given(messages)
def test_replies_follow_one_another_and_every_text_is_in_one(given_messages: Messages) -> None:
    found = replies(given_messages)
    for reply in found:
        assert reply.from_s < reply.until_s
    for before, after in pairwise(found):
        assert before.until_s <= after.from_s
    for at_s, message in given_messages:
        if message["type"] == "reply":
            [around] = [reply for reply in found if reply.from_s <= at_s < reply.until_s]
            assert around.turn == message["turn"]
