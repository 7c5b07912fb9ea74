"""From a call as it was recorded to its turns as they were heard. Pure.

Everything about time comes from the received waveform and the caller's own clock; what the server tells is compared
with it and used for two things only: which of the agent's speech is the reply (its text), and when it says that a turn
is over or its audio cleared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from load.alignment import HeardWord, reply_begins_at, word_error_rate
from load.hearing import clicks
from load.interruption import BEFORE_S, Interruption, interruption
from load.record import CallRecord, TurnOutcome, TurnRecord
from load.resumption import resumption
from load.told import Message, Reply, claimed, replies, reply_text, reported_s, understood
from load.track import Heard, Track, clears_s, track_of

BEFORE_ALL = -1  # index of what is heard before the first utterance: a greeting
CUT_IN_S = 0.05  # an agent that begins this shortly before the caller's last sample has not cut in
DRY_S = 0.01  # shorter than what a listener's jitter buffer holds at the least
SILENT_S = 2.0  # of a server that does not tell: an answer that is silent for so long is over
OTHER_ANSWER_S = 1.0  # ... and what follows after so long is another one, where they are counted
SOUNDS_S = 0.1  # of a reply, to have sounded
BORDER_S = 0.1  # between two stretches: recognition tells the times of words no better
NEAR_S = 0.3  # between two events with one cause, as they reach the caller: a clear and the last sample before it

Recognised: TypeAlias = Mapping[int, Sequence[HeardWord]]


def turns(call: CallRecord, recognised: Recognised | None = None) -> list[TurnRecord]:
    """A record for each utterance of the caller.

    `recognised`: for each utterance, by index, the words that were recognised in what the agent said before the next,
    with times of the run's clock. Without them the first audible speech counts as the reply.
    """
    track = track_of(call)
    return [turn_of(call, track, index, recognised) for index in range(len(call.said))]


def window_s(call: CallRecord, track: Track, index: int) -> tuple[float, float]:
    """When what the agent says belongs to that utterance: from its end to the next, or the end of the call.

    If the agent still speaks when the next begins, to where it stops. A backchannel wants no answer: it has no window,
    and ends none. `BEFORE_ALL` stands for the time before the first utterance.
    """
    if index != BEFORE_ALL and call.said[index].is_backchannel:
        return call.said[index].end_s, call.said[index].end_s
    from_s = call.said[index].end_s if index != BEFORE_ALL else call.placed_s
    follows = _follows(call, index)
    if follows is None:
        return from_s, max(from_s, call.ended_s or from_s, track.end_s)
    cut = interruption(call, track, follows)
    begins_s = call.said[follows].start_s
    return from_s, max(from_s, begins_s if cut is None else min(cut.stopped_at_s, call.said[follows].end_s))


def turn_of(call: CallRecord, track: Track, index: int, recognised: Recognised | None) -> TurnRecord:
    said = call.said[index]
    words = recognised.get(index, ()) if recognised is not None else ()
    cut = interruption(call, track, index)
    from_s, to_s = _answer_window_s(call, track, index, cut)
    speech = track.audible(from_s, to_s)
    if cut is not None and speech and _goes_on(track, cut.start_s, speech[0]):
        speech = speech[1:]
    number, claim = claimed(call, index)
    reply = reply_text(call, number)
    answer = _answer(speech, words, reply)
    end_s = _answer_end_s(speech, answer, reported_s(call, number)) if answer is not None else from_s
    begin_s = answer.start_s if answer is not None else from_s
    is_broken_off = answer is not None and _is_broken_off(call, index, begin_s, end_s)
    pauses = [resumption(pause, track.rate_hz) for pause in track.pauses(begin_s, end_s)]
    goes_on = bool(pauses) and not is_broken_off
    barge_in = cut if said.is_barge_in else None
    return TurnRecord(
        call=call.number,
        turn=index + 1,
        scenario=call.scenario,
        transport=call.transport,
        said=said.text,
        outcome=_outcome(call, track, index, answer),
        latency_s=_since(said.end_s, answer.arrived_s if answer is not None else None),
        first_audible_s=_since(said.end_s, speech[0].arrived_s if speech else None),
        first_packet_s=_since(said.end_s, track.first_packet_s(from_s, to_s)),
        reply=reply.strip(),
        recognised=" ".join(word.text for word in words),
        understood=understood(call, index),
        heard=claim.get("heard"),
        heard_word_errors=_heard_word_errors(claim, words, reply, end_s) if recognised is not None else None,
        gaps_s=tuple(gap for gap in track.dry_s(begin_s, end_s) if gap >= DRY_S),
        num_clicks=len(clicks(track.joined(begin_s, end_s), track.rate_hz)),
        lead_s=track.lead_s(begin_s, end_s),
        lost_s=sum(pause.lost_s for pause in pauses) if goes_on else None,
        repeated_s=sum(pause.repeated_s for pause in pauses) if goes_on else None,
        is_broken_off=is_broken_off,
        barge_in_stop_s=barge_in.stop_s if barge_in is not None else None,
        duck_s=barge_in.duck_s if barge_in is not None else None,
        stale_s=(barge_in.stale_s or 0.0) if barge_in is not None else 0.0,
        server_latency_s=_seconds(claim.get("latency_ms")),
        server_stages_s={name: ms / 1000 for name, ms in claim.get("stages_ms", {}).items()},
    )


def num_answers(call: CallRecord, track: Track, index: int) -> int:
    """Replies that became audible, from where that utterance began to the end of its window.

    A server that tells no replies has those stretches of speech that are more than a second apart.
    """
    cut = interruption(call, track, index)
    from_s, to_s = _answer_window_s(call, track, index, cut)
    told = replies(call.messages)
    if not told:
        speech = track.audible(from_s, to_s)
        return sum(1 for i, heard in enumerate(speech) if not i or heard.start_s - speech[i - 1].end_s > OTHER_ANSWER_S)
    speech = track.audible(call.said[index].start_s if cut is None else from_s, to_s)
    begun = [reply for reply in told if call.said[index].start_s <= reply.from_s < to_s]
    return sum(1 for reply in begun if any(sounds(reply, heard) for heard in speech))


def sounds(reply: Reply, heard: Heard) -> bool:
    """A server may send faster than it is played, so it counts what came in the reply's time, and what sounded."""
    overlap_s = min(heard.end_s, reply.until_s) - max(heard.start_s, reply.from_s)
    return reply.from_s <= heard.arrived_s < reply.until_s or overlap_s >= SOUNDS_S


def _answer_window_s(call: CallRecord, track: Track, index: int, cut: Interruption | None) -> tuple[float, float]:
    """The window without what still sounds of the answer that the utterance interrupts."""
    from_s, to_s = window_s(call, track, index)
    return (from_s if cut is None else min(to_s, max(from_s, cut.stopped_at_s))), to_s


def _goes_on(track: Track, since_s: float, heard: Heard) -> bool:
    """It is the rest of speech that had begun before: an answer that went on until the caller spoke again."""
    return any(
        before.start_s < heard.start_s - SOUNDS_S and before.end_s > heard.start_s
        for before in track.audible(since_s, heard.end_s)
    )


def _answer(speech: Sequence[Heard], words: Sequence[HeardWord], reply: str) -> Heard | None:
    """The stretch in which the reply begins, from the reply's first word on."""
    if not speech or not words or not reply:
        return speech[0] if speech else None
    begins_at = reply_begins_at(words, reply)
    if begins_at is None:
        return None
    begins_s = words[begins_at].start_s
    within = [heard for heard in speech if heard.start_s <= begins_s + BORDER_S] or list(speech[:1])
    last = within[-1]
    leads_in = begins_at == 0 or words[begins_at - 1].end_s < last.start_s + BORDER_S
    return last if leads_in else Heard(begins_s, last.end_s, begins_s)


def _answer_end_s(speech: Sequence[Heard], answer: Heard, reported_s: float) -> float:
    """Of the last stretch that still belongs to it: what comes after the turn's report is something else."""
    end_s = answer.end_s
    for heard in speech:
        if heard.start_s >= answer.end_s:
            is_over = heard.start_s - end_s > SILENT_S if reported_s == float("inf") else heard.arrived_s > reported_s
            if is_over:
                break
            end_s = heard.end_s
    return end_s


def _is_broken_off(call: CallRecord, index: int, begin_s: float, end_s: float) -> bool:
    """The server cleared it before the caller's next utterance, and nothing of it followed."""
    follows = _follows(call, index)
    limit_s = call.said[follows].start_s if follows is not None else float("inf")
    cleared = [at_s for at_s in clears_s(call) if begin_s <= at_s < limit_s]
    _, claim = claimed(call, index)
    if "outcome" in claim:
        return bool(cleared) and claim["outcome"] == "interrupted"
    return any(abs(at_s - end_s) < NEAR_S for at_s in cleared)


def _heard_word_errors(claim: Message, words: Sequence[HeardWord], reply: str, end_s: float) -> float | None:
    """By words of the answer as it was heard. After a failure more than the answer was heard, so it is not told."""
    if claim.get("heard") is None or claim.get("outcome") == "failed":
        return None
    begins_at = reply_begins_at(words, reply) if reply.strip() else 0
    answer = words[begins_at:] if begins_at is not None else ()
    return word_error_rate(" ".join(word.text for word in answer if word.start_s < end_s), str(claim["heard"]))


def _outcome(call: CallRecord, track: Track, index: int, answer: Heard | None) -> TurnOutcome:
    said = call.said[index]
    if said.is_backchannel:
        return "unasked"
    begun = track.audible(said.start_s - BEFORE_S, said.end_s)  # from before: what goes on has not begun here
    interrupts = said.is_barge_in and interruption(call, track, index) is not None
    if not interrupts and any(said.start_s < heard.start_s < said.end_s - CUT_IN_S for heard in begun):
        return "cut_in"
    if answer is None:
        return "missed"
    follows = _follows(call, index)
    if follows is not None and call.said[follows].is_barge_in and interruption(call, track, follows) is not None:
        return "interrupted"
    return "answered"


def _follows(call: CallRecord, index: int) -> int | None:
    """The next utterance that wants an answer."""
    return next((i for i in range(index + 1, len(call.said)) if not call.said[i].is_backchannel), None)


def _since(from_s: float, at_s: float | None) -> float | None:
    return None if at_s is None else at_s - from_s


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
