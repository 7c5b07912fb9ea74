"""Whether what a scenario expects was so, from the record of the call. Pure.

Each `expect` is judged by what had been heard and told when the step was over, with the measures of `load.measure`.
What cannot be judged has failed, and says why: nothing passes for want of evidence, but the absence of something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from load.alignment import HeardWord, closest_run, word_error_rate
from load.interruption import interruption
from load.measure import BEFORE_ALL, Recognised, num_answers, sounds, turn_of, window_s
from load.record import CallRecord, TurnRecord
from load.steps import CHECKS, Expect
from load.told import ended_by_server_s, replies, state_at
from load.track import Track, clears_s

SHOWN_WORDS = 12  # of what was heard instead
NO_RECOGNITION = "not known: what was heard was not recognised"
NOTHING_SAID = "the caller had not said anything"
NO_ANSWER = "no answer was heard"


@dataclass(frozen=True)
class Checkpoint:
    """An `expect` step as it was met; times of the run's clock."""

    step: str  # where it stands in the scenario, such as "steps[3].expect"
    expect: Expect
    num_said: int  # utterances the caller had made (or begun) in this call by then; the last is what it is about
    from_s: float  # the step began
    at_s: float  # it was over: nothing that was heard later counts


@dataclass(frozen=True)
class Verdict:
    step: str
    check: str  # for people: "answer within 700 ms"
    passed: bool
    found: str  # for people: "812 ms", "nothing was heard"


Judgement: TypeAlias = tuple[bool, str]


def judge(call: CallRecord, checkpoints: Sequence[Checkpoint], recognised: Recognised | None = None) -> list[Verdict]:
    """One verdict for each key that an expectation gives.

    `recognised` is that of `load.measure.turns`, and holds under `BEFORE_ALL` what was heard before the first
    utterance. Without it `contains` and `heard_word_errors` fail.
    """
    return [verdict for checkpoint in checkpoints for verdict in _judge(_View(call, checkpoint, recognised))]


class _View:
    """The call as it was known at a checkpoint."""

    def __init__(self, call: CallRecord, checkpoint: Checkpoint, recognised: Recognised | None) -> None:
        at_s = checkpoint.at_s
        self.expect = checkpoint.expect
        self.step = checkpoint.step
        self.from_s = checkpoint.from_s
        self.at_s = at_s
        self.whole = call
        self.is_unsaid = checkpoint.num_said > len(call.said)  # begun, and not said to its end
        self.call = replace(
            call,
            said=call.said[: checkpoint.num_said],
            heard=[(arrived_s, pcm) for arrived_s, pcm in call.heard if arrived_s < at_s],
            messages=[(told_s, message) for told_s, message in call.messages if told_s <= at_s],
            ended_s=at_s if call.ended_s is None else min(at_s, call.ended_s),
        )
        self.track = Track(self.call.heard, call.output_sample_rate_hz, [*clears_s(self.call), at_s])
        self.recognised = recognised and {
            index: [word for word in words if word.start_s < at_s] for index, words in recognised.items()
        }

    @property
    def last(self) -> int:
        """The caller's last utterance, of any kind."""
        return len(self.call.said) - 1

    @cached_property
    def subject(self) -> int:
        """The last that wants an answer: a backchannel is about the answer before it."""
        wanting = [i for i, said in enumerate(self.call.said) if not said.is_backchannel]
        return wanting[-1] if wanting else self.last

    @cached_property
    def turn(self) -> TurnRecord:
        return self.turn_at(self.subject)

    def turn_at(self, index: int) -> TurnRecord:
        return turn_of(self.call, self.track, index, self.recognised)

    @property
    def interrupted(self) -> int:
        """The utterance whose answer it is about: after a barge-in the one that was interrupted, else the last."""
        if not self.call.said[self.subject].is_barge_in:
            return self.subject
        before = [i for i in range(self.subject) if not self.call.said[i].is_backchannel]
        return before[-1] if before else BEFORE_ALL

    def words(self) -> Sequence[HeardWord] | None:
        index = self.subject if self.call.said else BEFORE_ALL
        return None if self.recognised is None else self.recognised.get(index, ())


def _judge(view: _View) -> list[Verdict]:
    found = []
    for name in _ORDER:
        if getattr(view.expect, name) is None:
            continue
        check = _title(name, view.expect)
        passed, what = _unjudged(name, view) or _FINDERS[name](view)
        found.append(Verdict(view.step, check, passed, what))
    return found


def _unjudged(name: str, view: _View) -> Judgement | None:
    """A failure where there is no utterance that it could be about."""
    needs_none = name in ("contains", "state") or (name == "within_ms" and not _needs_utterance(view.expect))
    if needs_none:
        return None
    if view.is_unsaid:
        return False, "the caller's utterance was not said to its end"
    return None if view.call.said else (False, NOTHING_SAID)


def _needs_utterance(expect: Expect) -> bool:
    return not expect.absent and expect.what in ("answer", "stop", "duck")


# Within a time, and not within it


def _within(view: _View) -> Judgement:
    if view.expect.absent:
        return _absent(view)
    limit_s = (view.expect.within_ms or 0.0) / 1000
    if view.expect.what == "end_of_call":
        return _ended(view, limit_s)
    if view.expect.what in ("stop", "duck"):
        cut = interruption(view.call, view.track, view.last)
        if cut is None:
            return False, "the agent was not speaking when the caller began"
        return _at_most(cut.stop_s if view.expect.what == "stop" else cut.duck_s, limit_s, "")
    if not view.call.said:
        return _greeted(view, limit_s)
    if view.expect.what == "speech":
        return _at_most(view.turn.first_audible_s, limit_s, "nothing was heard")
    if view.turn.outcome == "cut_in":
        return False, "the agent spoke before the caller's turn was over"
    return _at_most(view.turn.latency_s, limit_s, NO_ANSWER)


def _greeted(view: _View, limit_s: float) -> Judgement:
    """Speech before the first utterance counts from when the call was ready."""
    ready_s = view.call.ready_s
    speech = view.track.audible(view.call.placed_s, view.at_s)
    if ready_s is None or not speech:
        return False, "nothing was heard"
    return _at_most(speech[0].arrived_s - ready_s, limit_s, "")


def _ended(view: _View, limit_s: float) -> Judgement:
    """A call that had ended before has ended within no time."""
    ended_s = _end_of_call_s(view.whole)
    if ended_s is None:
        return False, "the call went on"
    return _at_most(max(0.0, ended_s - view.from_s), limit_s, "")


def _absent(view: _View) -> Judgement:
    """From the beginning of the step on. A call that has ended is not one that goes on."""
    until_s = min(view.at_s, view.from_s + (view.expect.within_ms or 0.0) / 1000)
    happened_s = _happened_s(view, until_s)
    if happened_s is None or happened_s > until_s:
        return True, "there was none"
    if happened_s >= view.from_s:
        return False, f"after {_ms(happened_s - view.from_s)}"
    return view.expect.what != "end_of_call", "before"


def _happened_s(view: _View, until_s: float) -> float | None:
    if view.expect.what == "end_of_call":
        return _end_of_call_s(view.whole)
    if view.expect.what in ("stop", "duck"):
        cut = interruption(view.call, view.track, view.last) if view.call.said else None
        if cut is None:
            return None
        return cut.stopped_at_s if view.expect.what == "stop" else cut.start_s + cut.duck_s
    speech = view.track.audible(view.from_s, until_s)
    told = replies(view.call.messages) if view.expect.what == "answer" else []
    for heard in speech:  # a server that tells no replies may be answering with any speech
        if not told or any(sounds(reply, heard) for reply in told):
            return heard.start_s
    return None


def _end_of_call_s(call: CallRecord) -> float | None:
    return ended_by_server_s(call) if call.ready_s is not None else None


# The other keys


def _outcome(view: _View) -> Judgement:
    return view.turn.outcome == view.expect.outcome, view.turn.outcome


def _contains(view: _View) -> Judgement:
    words = view.words()
    if words is None:
        return False, NO_RECOGNITION
    if not words:
        return False, "nothing was heard"
    assert view.expect.contains is not None
    errors, run = closest_run(view.expect.contains, [word.text for word in words])
    if run and errors <= view.expect.word_errors:
        return True, f"'{run}'"
    return False, f"'{_shortened([word.text for word in words])}'"


def _num_answers(view: _View) -> Judgement:
    found = num_answers(view.call, view.track, view.subject)
    return found == view.expect.num_answers, str(found)


def _state(view: _View) -> Judgement:
    state = state_at(view.call.messages, view.at_s)
    return state == view.expect.state, state or "the server told no state"


def _understood(view: _View) -> Judgement:
    said, understood = view.call.said[view.subject], view.turn.understood
    if understood is None:
        return False, "the server told no transcript"
    rate = word_error_rate(said.text, understood)
    return rate <= (view.expect.understood_word_errors or 0.0), f"{rate:.0%} wrong: '{_shortened([understood])}'"


def _heard(view: _View) -> Judgement:
    if view.recognised is None:
        return False, NO_RECOGNITION
    if view.interrupted == BEFORE_ALL:
        return False, "the server does not tell what was heard of what it says by itself"
    turn = view.turn_at(view.interrupted)
    if turn.heard is None or turn.heard_word_errors is None:
        return False, "the server did not tell what was heard"
    from_s, to_s = window_s(view.call, view.interrupted, view.track)
    if not view.track.audible(from_s, to_s):
        return False, NO_ANSWER
    passed = turn.heard_word_errors <= (view.expect.heard_word_errors or 0.0)
    return passed, f"{turn.heard_word_errors:.0%} wrong: '{_shortened([turn.heard])}'"


def _stale(view: _View) -> Judgement:
    cut = interruption(view.call, view.track, view.subject)
    if cut is None:
        return False, "the agent was not speaking when the caller began"
    if cut.stale_s is None:
        return False, "the server did not say that it had cleared its answer"
    return _at_most(cut.stale_s, (view.expect.max_stale_ms or 0.0) / 1000, "")


def _lost(view: _View) -> Judgement:
    return _continued(view, view.turn.lost_s, view.expect.max_lost_ms or 0.0)


def _repeated(view: _View) -> Judgement:
    return _continued(view, view.turn.repeated_s, view.expect.max_repeated_ms or 0.0)


def _continued(view: _View, value_s: float | None, limit_ms: float) -> Judgement:
    if not _is_answered(view.turn):
        return False, NO_ANSWER
    if view.turn.is_broken_off:
        return False, "the answer was broken off"
    if value_s is None:
        return True, "0 ms: the answer went on without a pause"
    return _at_most(value_s, limit_ms / 1000, "")


def _gap(view: _View) -> Judgement:
    if not _is_answered(view.turn):
        return False, NO_ANSWER
    return _at_most(max(view.turn.gaps_s, default=0.0), (view.expect.max_gap_ms or 0.0) / 1000, "")


def _lead(view: _View) -> Judgement:
    return _at_most(view.turn.lead_s, (view.expect.max_lead_ms or 0.0) / 1000, NO_ANSWER)


def _clicks(view: _View) -> Judgement:
    if not _is_answered(view.turn):
        return False, NO_ANSWER
    return view.turn.num_clicks <= (view.expect.max_clicks or 0), str(view.turn.num_clicks)


def _misreport(view: _View) -> Judgement:
    if not _is_answered(view.turn) or view.turn.latency_s is None:
        return False, NO_ANSWER
    if view.turn.server_latency_s is None:
        return False, "the server told no latency"
    off_s = view.turn.server_latency_s - view.turn.latency_s
    return 1000 * abs(off_s) <= (view.expect.max_misreport_ms or 0.0), f"{1000 * off_s:+.0f} ms"


def _is_answered(turn: TurnRecord) -> bool:
    return turn.latency_s is not None


def _at_most(value_s: float | None, limit_s: float, without: str) -> Judgement:
    return (False, without) if value_s is None else (value_s <= limit_s, _ms(value_s))


def _ms(value_s: float) -> str:
    return f"{1000 * value_s:.0f} ms"


def _shortened(texts: Sequence[str]) -> str:
    words = " ".join(texts).split()
    return " ".join(words[:SHOWN_WORDS]) + (" ..." if len(words) > SHOWN_WORDS else "")


_FINDERS: Mapping[str, Callable[[_View], Judgement]] = {
    "within_ms": _within,
    "outcome": _outcome,
    "contains": _contains,
    "num_answers": _num_answers,
    "state": _state,
    "understood_word_errors": _understood,
    "heard_word_errors": _heard,
    "max_gap_ms": _gap,
    "max_stale_ms": _stale,
    "max_lost_ms": _lost,
    "max_repeated_ms": _repeated,
    "max_lead_ms": _lead,
    "max_clicks": _clicks,
    "max_misreport_ms": _misreport,
}
_ORDER = tuple(_FINDERS)
assert set(_ORDER) == CHECKS


def _title(name: str, expect: Expect) -> str:
    what = expect.what.replace("_", " ")
    value = getattr(expect, name)
    limit = f"{value:g}" if isinstance(value, int | float) else str(value)
    share = f"{value:.0%}" if isinstance(value, float) else ""
    return {
        "within_ms": f"no {what} for {limit} ms" if expect.absent else f"{what} within {limit} ms",
        "outcome": f"outcome {value}",
        "contains": f"'{value}' heard, at most {expect.word_errors:.0%} of the words wrong",
        "num_answers": "1 answer" if value == 1 else f"{limit} answers",
        "state": f"the server's state is {value}",
        "understood_word_errors": f"understood, at most {share} of the words wrong",
        "heard_word_errors": f"known what was heard, at most {share} of the words wrong",
        "max_gap_ms": f"no gap above {limit} ms",
        "max_stale_ms": f"at most {limit} ms of the old answer after its end was told",
        "max_lost_ms": f"at most {limit} ms lost",
        "max_repeated_ms": f"at most {limit} ms heard twice",
        "max_lead_ms": f"at most {limit} ms received ahead",
        "max_clicks": f"at most {limit} clicks",
        "max_misreport_ms": f"the server's latency at most {limit} ms off",
    }[name]
