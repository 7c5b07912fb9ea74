"""From a call as it was recorded to its turns as they were heard. Pure.

Everything about time comes from the received waveform and the caller's own clock; what the server tells is compared
with it and used for two things only: which of the agent's speech is the reply (its text), and when it says it stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from load.alignment import HeardWord, reply_begins_at
from load.hearing import clicks
from load.record import CallRecord, Said, TurnOutcome, TurnRecord
from load.track import Heard, Track

CUT_IN_S = 0.05  # an agent that begins this shortly before the caller's last sample has not cut in
DRY_S = 0.01  # shorter than what a listener's jitter buffer holds at the least


def turns(call: CallRecord, recognised: Mapping[int, Sequence[HeardWord]] | None = None) -> list[TurnRecord]:
    """A record for each utterance of the caller.

    `recognised`: for each utterance, by index, the words that were recognised in what the agent said before the next,
    with times of the run's clock. Without them the first audible speech counts as the reply.
    """
    track = Track(call.heard, call.output_sample_rate_hz)
    return [_turn(call, track, index, (recognised or {}).get(index)) for index in range(len(call.said))]


def window_s(call: CallRecord, index: int) -> tuple[float, float]:
    """From the end of that utterance to the beginning of the next, or the end of the call."""
    said = call.said[index]
    if index + 1 < len(call.said):
        return said.end_s, call.said[index + 1].start_s
    ends = [call.ended_s] if call.ended_s is not None else []
    return said.end_s, max(
        [said.end_s, *ends, *(at_s + pcm.size / call.output_sample_rate_hz for at_s, pcm in call.heard[-1:])]
    )


def _turn(call: CallRecord, track: Track, index: int, words: Sequence[HeardWord] | None) -> TurnRecord:
    said = call.said[index]
    from_s, to_s = window_s(call, index)
    speech = track.audible(from_s, to_s)
    if said.is_barge_in:  # what still sounds of the answer it interrupts is no answer to it
        speech = [heard for heard in speech if heard.start_s > from_s + 1 / track.rate_hz]
    number, claim = _claimed(call, index)
    reply = "".join(
        str(m.get("delta", "")) for _, m in call.messages if m.get("type") == "reply" and m["turn"] == number
    )
    answer = _answer(speech, words, reply)
    first_packet_s = track.first_packet_s(from_s, to_s)
    pcm = track.render(answer.start_s, to_s) if answer is not None else None
    stop_s, stale_s = _after_barge_in(call, track, said)
    stages = claim.get("stages_ms", {})
    return TurnRecord(
        call=call.number,
        turn=index + 1,
        scenario=call.scenario,
        transport=call.transport,
        said=said.text,
        outcome=_outcome(call, track, index, answer),
        latency_s=_since(said, answer.arrived_s if answer is not None else None),
        first_audible_s=_since(said, speech[0].arrived_s if speech else None),
        first_packet_s=_since(said, first_packet_s),
        reply=reply.strip(),
        recognised=" ".join(word.text for word in words or ()),
        heard=claim.get("heard"),
        gaps_s=tuple(gap for gap in track.dry_s(answer.start_s, speech[-1].end_s) if gap >= DRY_S) if answer else (),
        num_clicks=len(clicks(pcm, track.rate_hz)) if pcm is not None else 0,
        barge_in_stop_s=stop_s,
        stale_s=stale_s,
        server_latency_s=_seconds(claim.get("latency_ms")),
        server_stages_s={name: ms / 1000 for name, ms in stages.items()},
    )


def _answer(speech: Sequence[Heard], words: Sequence[HeardWord] | None, reply: str) -> Heard | None:
    """The stretch in which the reply begins, from the reply's first word on."""
    if not speech or not words or not reply:
        return speech[0] if speech else None
    begins_at = reply_begins_at(words, reply)
    if begins_at is None:
        return None
    begins_s = words[begins_at].start_s
    within = [heard for heard in speech if heard.start_s <= begins_s + 0.1] or list(speech[:1])
    last = within[-1]
    leads_in = begins_at == 0 or words[begins_at - 1].end_s < last.start_s + 0.1
    return last if leads_in else Heard(begins_s, last.end_s, begins_s)


def _outcome(call: CallRecord, track: Track, index: int, answer: Heard | None) -> TurnOutcome:
    said = call.said[index]
    follows = call.said[index + 1] if index + 1 < len(call.said) else None
    if said.is_backchannel:
        return "unasked"
    begun = track.audible(said.start_s, said.end_s)
    if not said.is_barge_in and any(said.start_s < heard.start_s < said.end_s - CUT_IN_S for heard in begun):
        return "cut_in"
    if answer is None:
        return "missed"
    if follows is not None and follows.is_barge_in and answer.end_s >= follows.start_s - 0.05:
        return "interrupted"
    return "answered"


def _after_barge_in(call: CallRecord, track: Track, said: Said) -> tuple[float | None, float]:
    """How long the agent went on after the caller began, and how much of that after it said it had stopped."""
    if not said.is_barge_in:
        return None, 0.0
    speech = track.audible(said.start_s, said.end_s)
    if not speech or speech[0].start_s > said.start_s + 0.02:  # it had ended by itself
        return None, 0.0
    cleared_s = [at_s for at_s, m in call.messages if m.get("type") == "clear" and said.start_s <= at_s <= said.end_s]
    stale_s = (
        sum(heard.end_s - heard.start_s for heard in track.audible(cleared_s[0], said.end_s)) if cleared_s else 0.0
    )
    return speech[0].end_s - said.start_s, stale_s


def _claimed(call: CallRecord, index: int) -> tuple[int | None, Mapping[str, Any]]:
    """The server's number for that utterance's turn, and what it says of it: the last turn that began with it."""
    start_s = call.said[index].start_s
    end_s = call.said[index + 1].start_s if index + 1 < len(call.said) else float("inf")
    numbers = [m["turn"] for at_s, m in call.messages if m.get("type") == "final" and start_s <= at_s < end_s]
    if not numbers:
        return None, {}
    claims = [m for _, m in call.messages if m.get("type") == "turn" and m["turn"] == numbers[-1]]
    return numbers[-1], claims[-1] if claims else {}


def _since(said: Said, at_s: float | None) -> float | None:
    return None if at_s is None else at_s - said.end_s


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
