"""Golden calls, and what a scenario that expects something of them must be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.alignment import HeardWord
from load.expectations import Checkpoint, Verdict, judge
from load.record import CallOutcome, CallRecord, Said
from load.steps import CHECKS, Expect
from tests.load.test_hearing import silence, tone
from tests.load.test_measure import ANSWER, QUESTION, RATE_HZ, REPLY, call, report, spoken
from wire import calls

BARGE = Said("q2", "Sorry, when do you close?", 3.5, 5.0, is_barge_in=True)
YES = Said("mm", "Mm-hm.", 3.0, 3.2, is_backchannel=True)
ANSWERED = [(2.5, tone(1.2, RATE_HZ))]
INTERRUPTED = [(2.5, tone(1.4, RATE_HZ)), (5.5, tone(0.8, RATE_HZ))]
TOLD = [*REPLY, report(3.9)]
BARGED = [
    *REPLY,
    report(3.75, "interrupted", "We open"),
    (3.75, {"type": "clear", "turn": 1, "sample": 0}),
    (3.76, {"type": "state", "state": "hearing", "turn": 2}),
    (5.2, {"type": "final", "turn": 2, "text": "sorry when do you close"}),
    (5.4, {"type": "reply", "turn": 2, "delta": "At five."}),
]


def verdicts(
    record: CallRecord,
    recognised: Mapping[int, Sequence[HeardWord]] | None = None,
    *,
    from_s: float = 8.0,
    at_s: float = 8.0,
    **expected: Any,
) -> list[Verdict]:
    checkpoint = Checkpoint("steps[1].expect", Expect(**expected), len(record.said), from_s, at_s)
    return judge(record, [checkpoint], recognised)


def verdict(
    record: CallRecord, recognised: Mapping[int, Sequence[HeardWord]] | None = None, **expected: Any
) -> Verdict:
    [found] = verdicts(record, recognised, **expected)
    return found


def clock(latency_ms: float) -> tuple[float, dict[str, Any]]:
    return 3.9, {**report(3.9)[1], "latency_ms": latency_ms}


def test_there_is_one_verdict_for_each_key() -> None:
    expected = {"within_ms": 700.0, "outcome": "answered", "max_gap_ms": 20.0, "num_answers": 1}
    found = verdicts(call([QUESTION], ANSWERED, TOLD), **expected)
    assert [each.passed for each in found] == [True] * 4
    assert {each.step for each in found} == {"steps[1].expect"}
    assert found[0].check == "answer within 700 ms"
    assert found[0].found == "500 ms"


@pytest.mark.parametrize(
    ("heard", "messages", "expected", "found"),
    [
        ([(2.9, tone(1.0, RATE_HZ))], TOLD, {"within_ms": 700}, "900 ms"),
        ([], TOLD, {"within_ms": 700}, "no answer was heard"),
        ([(1.5, tone(1.0, RATE_HZ))], TOLD, {"within_ms": 700}, "the agent spoke before the caller's turn was over"),
        ([], TOLD, {"what": "speech", "within_ms": 700}, "nothing was heard"),
        ([], TOLD, {"outcome": "answered"}, "missed"),
        (ANSWERED, TOLD, {"outcome": "missed"}, "answered"),
        (ANSWERED, TOLD, {"num_answers": 2}, "1"),
        (ANSWERED, TOLD, {"state": "listening"}, "the server told no state"),
        (ANSWERED, [(1.0, {"type": "state", "state": "hearing"})], {"state": "listening"}, "hearing"),
        (ANSWERED, [], {"understood_word_errors": 0.5}, "the server told no transcript"),
        (ANSWERED, TOLD, {"contains": "we open"}, "not known: what was heard was not recognised"),
        (ANSWERED, TOLD, {"heard_word_errors": 0.5}, "not known: what was heard was not recognised"),
        ([*ANSWERED, (3.8, tone(0.5, RATE_HZ))], [], {"max_gap_ms": 50}, "100 ms"),
        ([], TOLD, {"max_gap_ms": 50}, "no answer was heard"),
        ([], TOLD, {"max_lost_ms": 50}, "no answer was heard"),
        ([(2.5, ANSWER[:RATE_HZ]), (4.0, ANSWER[RATE_HZ // 2 :])], [], {"max_repeated_ms": 50}, "500 ms"),
        (ANSWERED, TOLD, {"max_stale_ms": 50}, "the agent was not speaking when the caller began"),
        (ANSWERED, TOLD, {"what": "stop", "within_ms": 500}, "the agent was not speaking when the caller began"),
        (ANSWERED, TOLD, {"max_misreport_ms": 30}, "the server told no latency"),
        (ANSWERED, [*REPLY, clock(420.0)], {"max_misreport_ms": 30}, "-80 ms"),
        (ANSWERED, TOLD, {"max_lead_ms": 10}, "20 ms"),
        ([], TOLD, {"max_lead_ms": 10}, "no answer was heard"),
        ([], TOLD, {"max_clicks": 0}, "no answer was heard"),
        (ANSWERED, TOLD, {"what": "end_of_call", "within_ms": 500}, "the call went on"),
    ],
)
def test_what_is_not_so_fails_and_says_what_was(
    heard: list[tuple[float, np.ndarray]], messages: list[Any], expected: dict[str, Any], found: str
) -> None:
    got = verdict(call([QUESTION], heard, messages), **expected)
    assert (got.passed, got.found) == (False, found)


@pytest.mark.parametrize(
    "expected",
    [
        {"within_ms": 700},
        {"what": "speech", "within_ms": 700},
        {"outcome": "answered"},
        {"num_answers": 1},
        {"understood_word_errors": 0.0},
        {"max_gap_ms": 20},
        {"max_lost_ms": 50},
        {"max_repeated_ms": 50},
        {"max_lead_ms": 30},
        {"max_clicks": 0},
        {"max_misreport_ms": 30},
        {"contains": "we open at nine"},
        {"heard_word_errors": 0.0},
        {"what": "speech", "within_ms": 2000, "absent": True},
        {"what": "answer", "within_ms": 2000, "absent": True},
        {"what": "end_of_call", "within_ms": 2000, "absent": True},
        {"what": "stop", "within_ms": 2000, "absent": True},
        {"what": "duck", "within_ms": 2000, "absent": True},
    ],
)
def test_a_good_answer_passes(expected: dict[str, Any]) -> None:
    record = call([QUESTION], ANSWERED, [*REPLY, clock(495.0)])
    record.ready_s = 0.1
    assert verdict(record, {0: spoken("We open at nine.", 2.5)}, **expected).passed


@pytest.mark.parametrize(
    "expected",
    [
        {"what": "stop", "within_ms": 410},
        {"what": "duck", "within_ms": 410},
        {"max_stale_ms": 160},
        {"heard_word_errors": 0.34},
        {"within_ms": 700},
        {"outcome": "answered"},
        {"num_answers": 1},
        {"understood_word_errors": 0.0},
    ],
)
def test_after_a_barge_in_the_end_of_the_old_answer_and_the_new_one_are_judged(expected: dict[str, Any]) -> None:
    record = call([QUESTION, BARGE], INTERRUPTED, BARGED)
    words = {0: spoken("We open at", 2.5), 1: spoken("At five.", 5.5)}
    assert verdict(record, words, **expected).passed


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"what": "stop", "within_ms": 380}, "400 ms"),
        ({"what": "duck", "within_ms": 100}, "400 ms"),
        ({"max_stale_ms": 20}, "150 ms"),
        ({"heard_word_errors": 0.25}, "33% wrong: 'We open'"),
        ({"num_answers": 2}, "1"),
    ],
)
def test_a_barge_in_that_is_badly_met_fails(expected: dict[str, Any], found: str) -> None:
    record = call([QUESTION, BARGE], INTERRUPTED, BARGED)
    got = verdict(record, {0: spoken("We open at", 2.5), 1: spoken("At five.", 5.5)}, **expected)
    assert (got.passed, got.found) == (False, found)


def test_stale_audio_cannot_be_told_where_nothing_was_cleared() -> None:
    untold = verdict(call([QUESTION, BARGE], INTERRUPTED), max_stale_ms=500)
    assert (untold.passed, untold.found) == (False, "the server did not say that it had cleared its answer")


def test_what_was_heard_of_a_greeting_is_not_told() -> None:
    got = verdict(call([BARGE], INTERRUPTED, BARGED), {}, heard_word_errors=1)
    assert (got.passed, got.found) == (False, "the server does not tell what was heard of what it says by itself")


def test_a_backchannel_is_about_the_answer_that_goes_on() -> None:
    goes_on = call([QUESTION, YES], [(2.5, tone(2.0, RATE_HZ))], [*REPLY, report(4.6)])
    expected = {"num_answers": 1, "max_lost_ms": 50, "max_repeated_ms": 50, "outcome": "answered"}
    assert all(each.passed for each in verdicts(goes_on, **expected))
    assert verdict(goes_on, what="stop", within_ms=1000, absent=True, from_s=3.2).passed
    given_up = [*REPLY, report(3.3, "interrupted", "We"), (3.3, {"type": "clear", "turn": 1, "sample": 0})]
    broken_off = call([QUESTION, YES], [(2.5, tone(0.8, RATE_HZ))], given_up)
    lost = verdict(broken_off, max_lost_ms=50)
    assert (lost.passed, lost.found) == (False, "the answer was broken off")
    assert not verdict(broken_off, what="stop", within_ms=1000, absent=True, from_s=3.2).passed


def test_what_is_heard_after_the_step_does_not_count() -> None:
    record = call([QUESTION], [*ANSWERED, (6.0, tone(1.0, RATE_HZ))], TOLD)
    words = {0: [*spoken("We open at nine.", 2.5), *spoken("Still there?", 6.0)]}
    assert not verdict(record, words, contains="still there", at_s=5.9).passed
    assert verdict(record, words, contains="still there").passed
    assert verdict(record, what="speech", within_ms=3000, absent=True, from_s=4.0, at_s=5.9).passed
    assert not verdict(record, within_ms=700, at_s=2.4).passed


@pytest.mark.parametrize("what", ["speech", "answer"])
def test_speech_that_must_not_come_is_waited_for_from_the_step_on(what: str) -> None:
    record = call([QUESTION], [*ANSWERED, (6.0, tone(1.0, RATE_HZ))])
    early = verdict(record, what=what, within_ms=3000, absent=True, from_s=4.0)
    assert (early.passed, early.check, early.found) == (False, f"no {what} for 3000 ms", "after 2000 ms")
    assert verdict(record, what=what, within_ms=1500, absent=True, from_s=4.0).passed


def test_a_prompt_that_is_no_reply_is_no_answer() -> None:
    record = call([QUESTION], [*ANSWERED, (6.0, tone(1.0, RATE_HZ))], TOLD)
    assert verdict(record, what="answer", within_ms=3000, absent=True, from_s=4.0).passed


def test_words_may_be_misheard_as_far_as_is_said() -> None:
    record, words = call([QUESTION], ANSWERED, TOLD), {0: spoken("Well sorry I did hot get that. Hm.", 2.5)}
    wanted = {"contains": "sorry, I did not get that"}
    assert verdict(record, words, **wanted).found == "'sorry i did hot get that'"
    assert not verdict(record, words, **wanted, word_errors=0.1).passed
    other = verdict(record, {0: spoken("We open at nine in the morning", 2.5)}, **wanted)
    assert (other.passed, other.found) == (False, "'We open at nine in the morning'")
    assert not verdict(record, {0: []}, **wanted, word_errors=1.0).passed


def test_a_greeting_is_heard_before_anything_is_said() -> None:
    record = call([], [(0.6, tone(1.0, RATE_HZ))])
    record.ready_s = 0.2
    assert verdict(record, {-1: spoken("Hello there", 0.6)}, contains="hello").passed
    greeted = verdict(record, what="speech", within_ms=500)
    assert (greeted.passed, greeted.found) == (True, "400 ms")
    assert not verdict(record, within_ms=900).passed


@pytest.mark.parametrize(
    ("outcome", "ended_s", "from_s", "passed"),
    [
        ("broken", 9.0, 8.0, True),
        ("broken", 7.0, 8.0, True),
        ("broken", 12.0, 8.0, False),
        ("completed", 9.0, 8.0, False),
    ],
)
def test_a_call_ends_when_the_server_ends_it(outcome: CallOutcome, ended_s: float, from_s: float, passed: bool) -> None:
    record = replace(call([QUESTION], ANSWERED, TOLD), ready_s=0.1, outcome=outcome, ended_s=ended_s)
    assert verdict(record, what="end_of_call", within_ms=2000, from_s=from_s, at_s=10.0).passed == passed
    absent = verdict(record, what="end_of_call", within_ms=2000, absent=True, from_s=from_s, at_s=10.0)
    assert absent.passed != passed


def test_an_utterance_that_was_not_said_to_its_end_passes_nothing() -> None:
    checkpoint = Checkpoint("steps[1].expect", Expect(within_ms=900, outcome="answered"), 2, 8.0, 8.0)
    found = judge(call([QUESTION], ANSWERED, TOLD), [checkpoint])
    assert [(each.passed, each.found) for each in found] == [
        (False, "the caller's utterance was not said to its end")
    ] * 2


EVERY: list[dict[str, Any]] = [
    {"within_ms": 1e6},
    *({"what": what, "within_ms": 1e6} for what in ("speech", "stop", "duck", "end_of_call")),
    *({"what": what, "within_ms": 1e6, "absent": True} for what in ("answer", "speech", "stop", "duck", "end_of_call")),
    *({"outcome": outcome} for outcome in ("answered", "missed", "cut_in", "interrupted", "unasked")),
    {"contains": "a", "word_errors": 1.0},
    {"num_answers": 0},
    {"state": "listening"},
    *({name: 1e6} for name in ("understood_word_errors", "heard_word_errors", "max_gap_ms", "max_stale_ms")),
    *({name: 1e6} for name in ("max_lost_ms", "max_repeated_ms", "max_lead_ms", "max_misreport_ms")),
    {"max_clicks": 10**6},
]


def test_every_check_is_tried_below() -> None:
    assert {name for expected in EVERY for name in expected} >= CHECKS


@pytest.mark.parametrize("expected", EVERY, ids=str)
@pytest.mark.parametrize("recognised", [None, {}, {0: [], -1: []}])
def test_nothing_but_absence_passes_for_want_of_evidence(
    expected: dict[str, Any], recognised: Mapping[int, Sequence[HeardWord]] | None
) -> None:
    assert verdict(call([], []), recognised, **expected).passed == ("absent" in expected)


times = st.floats(0, 20, allow_subnormal=False)
numbers = st.integers(0, 3)
audio = st.sampled_from([silence(0.02, 8000), tone(0.02, 8000), tone(0.3, 8000), silence(0.0, 8000)])
says = st.builds(
    lambda begin_s, length_s, is_barge_in, is_backchannel: Said(
        "a", "one two", begin_s, begin_s + length_s, is_barge_in, is_backchannel and not is_barge_in
    ),
    times,
    st.floats(0, 3),
    st.booleans(),
    st.booleans(),
)
told = st.one_of(
    st.builds(calls.Reply, numbers, st.sampled_from(["one", " two", ""])),
    st.builds(calls.Final, numbers, st.sampled_from(["one", "", "two one"])),
    st.builds(calls.State, st.sampled_from(["listening", "hearing", "speaking"]), numbers),
    st.builds(calls.Clear, numbers, st.integers(0, 1000)),
    st.builds(
        calls.Turn,
        numbers,
        st.sampled_from(["answered", "interrupted", "failed", "empty"]),
        st.just("one"),
        st.sampled_from(["", "one two"]),
        st.none() | st.floats(0, 5000),
    ),
    st.builds(calls.Bye, st.sampled_from(["idle", "hangup"])),
)
heard_words = st.builds(
    lambda text, at_s: HeardWord(text, at_s, at_s + 0.2), st.sampled_from(["one", "two", "-"]), times
)


@st.composite
def records(draw: st.DrawFn) -> CallRecord:
    record = call(draw(st.lists(says, max_size=4).map(lambda found: sorted(found, key=lambda said: said.start_s))), [])
    record.output_sample_rate_hz = 8000
    record.heard += sorted(draw(st.lists(st.tuples(times, audio), max_size=30)), key=lambda placed: placed[0])
    messages = draw(st.lists(st.tuples(times, told), max_size=12))
    record.messages += [(at_s, {"type": m.TYPE, **asdict(m)}) for at_s, m in sorted(messages, key=lambda m: m[0])]
    record.outcome = draw(st.sampled_from(["completed", "broken", "failed"]))
    record.ready_s = draw(st.none() | st.just(0.0))
    record.ended_s = draw(st.none() | times)
    return record


@pytest.mark.slow
@given(
    records(),
    st.sampled_from(EVERY),
    st.integers(0, 5),
    times,
    times,
    st.none() | st.dictionaries(st.integers(-1, 4), st.lists(heard_words, max_size=5)),
)
def test_whatever_was_recorded_has_a_verdict(
    record: CallRecord,
    expected: dict[str, Any],
    num_said: int,
    from_s: float,
    at_s: float,
    recognised: Mapping[int, Sequence[HeardWord]] | None,
) -> None:
    [found] = judge(record, [Checkpoint("here", Expect(**expected), num_said, from_s, at_s)], recognised)
    assert found.check
    assert found.found


def test_what_follows_the_next_utterance_is_not_about_the_one_before() -> None:
    """However long an answer may take."""
    record = call([QUESTION, replace(BARGE, is_barge_in=False, start_s=5.0, end_s=6.0)], [*ANSWERED, (6.5, ANSWER)])
    checkpoint = Checkpoint("steps[1].expect", Expect(within_ms=10_000.0, num_answers=1), 1, 4.0, 14.0)
    assert [verdict.passed for verdict in judge(record, [checkpoint])] == [True, True]
