"""What was found where a scenario expects something: one function for each key of `load.steps.Expect`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from load.alignment import HeardWord, closest_run, word_error_rate
from load.interruption import interruption
from load.measure import BEFORE_ALL, Recognised, num_answers, sounds, turn_of, window_s
from load.record import CallRecord, TurnRecord
from load.steps import CHECKS, Expect
from load.told import ended_by_server_s, replies, state_at
from load.track import Track, drops_s

SHOWN_WORDS = 12  # of what was heard instead
NO_RECOGNITION = "not known: what was heard was not recognised"
NO_ANSWER = "no answer was heard"
PAUSED = "not known: the agent paused when the caller began"
NOT_SPEAKING = "the agent was not speaking when the caller began"

Judgement: TypeAlias = tuple[bool, str]  # whether it was so, and what was found, for people


class Known:
    """The call as it was known at `at_s`, when a step was over that expected something and had begun at `from_s`."""

    def __init__(
        self,
        call: CallRecord,
        expect: Expect,
        num_said: int,
        from_s: float,
        at_s: float,
        recognised: Recognised | None,
    ) -> None:
        self.expect = expect
        self.from_s = from_s
        self.whole = call
        self.is_unsaid = num_said > len(call.said)  # begun, and not said to its end
        at_s = min([at_s, *(said.start_s for said in call.said[num_said:])])  # what follows is about the next utterance
        self.at_s = at_s
        self.call = replace(
            call,
            said=call.said[:num_said],
            heard=[(arrived_s, pcm) for arrived_s, pcm in call.heard if arrived_s < at_s],
            messages=[(told_s, message) for told_s, message in call.messages if told_s <= at_s],
            ended_s=at_s if call.ended_s is None else min(at_s, call.ended_s),
        )
        self.track = Track(self.call.heard, call.output_sample_rate_hz, [*drops_s(self.call), at_s])
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
        said = self.call.said
        index = self.subject if said and not said[self.subject].is_backchannel else BEFORE_ALL
        return None if self.recognised is None else self.recognised.get(index, ())


def unfounded(name: str, known: Known) -> Judgement | None:
    """A failure where there is no utterance that it could be about."""
    needs_none = name in ("contains", "state") or (name == "within_ms" and not _needs_utterance(known.expect))
    if needs_none:
        return None
    if known.is_unsaid:
        return False, "the caller's utterance was not said to its end"
    return None if known.call.said else (False, "the caller had not said anything")


def _needs_utterance(expect: Expect) -> bool:
    return not expect.absent and expect.what in ("answer", "stop", "duck")


# Within a time, and not within it


def _within(known: Known) -> Judgement:
    if known.expect.absent:
        return _absent(known)
    limit_s = (known.expect.within_ms or 0.0) / 1000
    if known.expect.what == "end_of_call":
        return _ended(known, limit_s)
    if known.expect.what in ("stop", "duck"):
        cut = interruption(known.call, known.track, known.last)
        if cut is None:
            return False, NOT_SPEAKING
        return _at_most(cut.stop_s if known.expect.what == "stop" else cut.duck_s, limit_s, PAUSED)
    if not known.call.said:
        return _greeted(known, limit_s)
    if known.expect.what == "speech":
        return _at_most(known.turn.first_audible_s, limit_s, "nothing was heard")
    if known.turn.outcome == "cut_in":
        return False, "the agent spoke before the caller's turn was over"
    return _at_most(known.turn.latency_s, limit_s, NO_ANSWER)


def _greeted(known: Known, limit_s: float) -> Judgement:
    """Speech before the first utterance counts from when the call was ready."""
    ready_s = known.call.ready_s
    speech = known.track.audible(known.call.placed_s, known.at_s)
    if ready_s is None or not speech:
        return False, "nothing was heard"
    return _at_most(speech[0].arrived_s - ready_s, limit_s, "")


def _ended(known: Known, limit_s: float) -> Judgement:
    """A call that had ended before has ended within no time."""
    ended_s = _end_of_call_s(known.whole)
    if ended_s is None:
        return False, "the call went on"
    return _at_most(max(0.0, ended_s - known.from_s), limit_s, "")


def _absent(known: Known) -> Judgement:
    """From the beginning of the step on. A call that has ended is not one that goes on."""
    until_s = min(known.at_s, known.from_s + (known.expect.within_ms or 0.0) / 1000)
    happened_s = _happened_s(known, until_s)
    if happened_s is None or happened_s > until_s:
        return True, "there was none"
    if happened_s >= known.from_s:
        return False, f"after {_ms(happened_s - known.from_s)}"
    return known.expect.what != "end_of_call", "before"


def _happened_s(known: Known, until_s: float) -> float | None:
    if known.expect.what == "end_of_call":
        return _end_of_call_s(known.whole)
    if known.expect.what in ("stop", "duck"):
        cut = interruption(known.call, known.track, known.last) if known.call.said else None
        if cut is None:
            return None
        happened_s = cut.stop_s if known.expect.what == "stop" else cut.duck_s
        return None if happened_s is None else cut.start_s + happened_s
    speech = known.track.audible(known.from_s, until_s)
    told = replies(known.call.messages) if known.expect.what == "answer" else []
    for heard in speech:  # a server that tells no replies may be answering with any speech
        if not told or any(sounds(reply, heard) for reply in told):
            return heard.start_s
    return None


def _end_of_call_s(call: CallRecord) -> float | None:
    return ended_by_server_s(call) if call.ready_s is not None else None


# The other keys


def _outcome(known: Known) -> Judgement:
    return known.turn.outcome == known.expect.outcome, known.turn.outcome


def _contains(known: Known) -> Judgement:
    words = known.words()
    if words is None:
        return False, NO_RECOGNITION
    if not words:
        return False, "nothing was heard"
    assert known.expect.contains is not None
    errors, run = closest_run(known.expect.contains, [word.text for word in words])
    if run and errors <= known.expect.word_errors:
        return True, f"'{run}'"
    return False, f"'{_shortened([word.text for word in words])}'"


def _num_answers(known: Known) -> Judgement:
    found = num_answers(known.call, known.track, known.subject)
    return found == known.expect.num_answers, str(found)


def _state(known: Known) -> Judgement:
    state = state_at(known.call.messages, known.at_s)
    return state == known.expect.state, state or "the server told no state"


def _understood(known: Known) -> Judgement:
    said, understood = known.call.said[known.subject], known.turn.understood
    if understood is None:
        return False, "the server told no transcript"
    rate = word_error_rate(said.text, understood)
    return rate <= (known.expect.understood_word_errors or 0.0), f"{rate:.0%} wrong: '{_shortened([understood])}'"


def _heard(known: Known) -> Judgement:
    if known.recognised is None:
        return False, NO_RECOGNITION
    if known.interrupted == BEFORE_ALL:
        return False, "the server does not tell what was heard of what it says by itself"
    turn = known.turn_at(known.interrupted)
    if turn.heard is None or turn.heard_word_errors is None:
        return False, "the server did not tell what was heard"
    from_s, to_s = window_s(known.call, known.track, known.interrupted)
    if not known.track.audible(from_s, to_s):
        return False, NO_ANSWER
    passed = turn.heard_word_errors <= (known.expect.heard_word_errors or 0.0)
    return passed, f"{turn.heard_word_errors:.0%} wrong: '{_shortened([turn.heard])}'"


def _stale(known: Known) -> Judgement:
    cut = interruption(known.call, known.track, known.subject)
    if cut is None:
        return False, NOT_SPEAKING
    if cut.stale_s is None:
        return False, "the server did not say that it had cleared its answer"
    return _at_most(cut.stale_s, (known.expect.max_stale_ms or 0.0) / 1000, "")


def _lost(known: Known) -> Judgement:
    return _continued(known, known.turn.lost_s, known.expect.max_lost_ms or 0.0)


def _repeated(known: Known) -> Judgement:
    return _continued(known, known.turn.repeated_s, known.expect.max_repeated_ms or 0.0)


def _continued(known: Known, value_s: float | None, limit_ms: float) -> Judgement:
    if not _is_answered(known.turn):
        return False, NO_ANSWER
    if known.turn.is_broken_off:
        return False, "the answer was broken off"
    if value_s is None:
        return True, "0 ms: the answer went on without a pause"
    return _at_most(value_s, limit_ms / 1000, "")


def _gap(known: Known) -> Judgement:
    if not _is_answered(known.turn):
        return False, NO_ANSWER
    return _at_most(max(known.turn.gaps_s, default=0.0), (known.expect.max_gap_ms or 0.0) / 1000, "")


def _lead(known: Known) -> Judgement:
    return _at_most(known.turn.lead_s, (known.expect.max_lead_ms or 0.0) / 1000, NO_ANSWER)


def _clicks(known: Known) -> Judgement:
    if not _is_answered(known.turn):
        return False, NO_ANSWER
    return known.turn.num_clicks <= (known.expect.max_clicks or 0), str(known.turn.num_clicks)


def _misreport(known: Known) -> Judgement:
    if not _is_answered(known.turn) or known.turn.latency_s is None:
        return False, NO_ANSWER
    if known.turn.server_latency_s is None:
        return False, "the server told no latency"
    off_s = known.turn.server_latency_s - known.turn.latency_s
    return 1000 * abs(off_s) <= (known.expect.max_misreport_ms or 0.0), f"{1000 * off_s:+.0f} ms"


def _is_answered(turn: TurnRecord) -> bool:
    return turn.latency_s is not None


def _at_most(value_s: float | None, limit_s: float, without: str) -> Judgement:
    return (False, without) if value_s is None else (value_s <= limit_s, _ms(value_s))


def _ms(value_s: float) -> str:
    return f"{1000 * value_s:.0f} ms"


def _shortened(texts: Sequence[str]) -> str:
    words = " ".join(texts).split()
    return " ".join(words[:SHOWN_WORDS]) + (" ..." if len(words) > SHOWN_WORDS else "")


FINDERS: Mapping[str, Callable[[Known], Judgement]] = {
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
assert set(FINDERS) == CHECKS
