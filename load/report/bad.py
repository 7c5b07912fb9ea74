"""What went wrong in a run, one row each, worst kinds first: what a person should look at. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from load.record import MISREPORTED_S, TurnRecord
from load.report.document import RunDocument
from load.report.measures import is_heard_wrong, is_late, is_misunderstood, lost_audio, repeated_audio

KINDS = (
    "call lost",
    "request failed",
    "missed",
    "cut in",
    "broken off",
    "late",
    "stale audio",
    "lost audio",
    "repeated audio",
    "gap",
    "underrun",
    "click",
    "misunderstood",
    "heard wrong",
    "misreported",
    "refused",
)
MAX_STALE_S = 0.1  # of an interrupted answer, after the server said it had stopped: what was on the wire by then


@dataclass(frozen=True)
class Bad:
    """`where` is a call, a turn or a request; `said` and `reply` are text of callers and servers, as it is."""

    kind: str
    where: str
    detail: str
    said: str = ""
    reply: str = ""


def bad(run: RunDocument) -> list[Bad]:
    found = [*_calls(run), *(row for turn in run.turns for row in _turn(turn)), *_requests(run)]
    return sorted(found, key=lambda row: KINDS.index(row.kind))


def _calls(run: RunDocument) -> Iterator[Bad]:
    for call in run.calls:
        if call.outcome in ("failed", "broken"):
            yield Bad("call lost", f"call {call.number}", f"{call.outcome}: {call.reason}")
        if call.outcome == "refused":
            yield Bad("refused", f"call {call.number}", _refusal(call.reason, call.retry_after_s))


def _turn(turn: TurnRecord) -> Iterator[Bad]:
    where = f"call {turn.call}, turn {turn.turn}"
    is_answered = turn.outcome in ("answered", "interrupted")
    found = []
    if turn.outcome == "missed":
        found.append(("missed", "no answer was heard"))
    if turn.outcome == "cut_in":
        found.append(("cut in", "the agent spoke before the caller's turn was over"))
    if is_late(turn) and is_answered:
        found.append(("late", f"{1000 * (turn.latency_s or 0):.0f} ms"))
    if turn.stale_s > MAX_STALE_S:
        found.append(("stale audio", f"{1000 * turn.stale_s:.0f} ms after the answer was said to have stopped"))
    found += [*_audio(turn), *(_claims(turn) if is_answered else ())]
    for kind, detail in found:
        yield Bad(kind, where, detail, turn.said, turn.reply)


def _audio(turn: TurnRecord) -> Iterator[tuple[str, str]]:
    """Of the answer, as it sounded."""
    if turn.is_broken_off:
        yield "broken off", "the rest of the answer was taken back, and the caller had not asked for it"
    if lost_audio(turn):
        yield "lost audio", f"{1000 * (turn.lost_s or 0):.0f} ms of the answer where it went on after a pause"
    if repeated_audio(turn):
        yield "repeated audio", f"{1000 * (turn.repeated_s or 0):.0f} ms of the answer came twice"
    if turn.gaps_s:
        gaps = ", ".join(f"{1000 * gap:.0f}" for gap in turn.gaps_s)
        yield "gap", f"silence of {gaps} ms inside the answer"
    if turn.num_clicks:
        yield "click", f"{turn.num_clicks} in the answer"


def _claims(turn: TurnRecord) -> Iterator[tuple[str, str]]:
    """Of the server, against what was said and heard."""
    if is_misunderstood(turn):
        yield "misunderstood", f"the server took it for: {turn.understood}"
    if is_heard_wrong(turn):
        yield "heard wrong", f"the server believes that this was heard: {turn.heard}. It was: {turn.recognised}"
    if turn.is_misreported:
        off_ms = 1000 * ((turn.server_latency_s or 0) - (turn.latency_s or 0))
        yield "misreported", f"the server's figure is {off_ms:+.0f} ms off, {1000 * MISREPORTED_S:.0f} allowed"


def _requests(run: RunDocument) -> Iterator[Bad]:
    for request in run.requests:
        where = f"request {request.number}"
        if request.outcome == "failed":
            yield Bad("request failed", where, request.reason)
        if request.outcome == "refused":
            yield Bad("refused", where, _refusal(request.reason, request.retry_after_s))
        if request.figures.get("num_underruns", 0) > 0:
            dry_ms = 1000 * request.figures.get("underrun_s", 0.0)
            yield Bad("underrun", where, f"{request.figures['num_underruns']:.0f}, {dry_ms:.0f} ms in all")


def _refusal(reason: str, retry_after_s: float | None) -> str:
    return f"{reason} (come back in {retry_after_s:g} s)" if retry_after_s is not None else reason
