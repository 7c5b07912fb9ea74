"""What went wrong in a run, one row each, worst kinds first: what a person should look at. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from load.record import MISREPORTED_S, TurnRecord
from load.report.document import RunDocument
from load.report.measures import is_late

KINDS = (
    "call lost",
    "request failed",
    "missed",
    "cut in",
    "late",
    "stale audio",
    "gap",
    "underrun",
    "click",
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
    if turn.gaps_s:
        gaps = ", ".join(f"{1000 * gap:.0f}" for gap in turn.gaps_s)
        found.append(("gap", f"silence of {gaps} ms inside the answer"))
    if turn.num_clicks:
        found.append(("click", f"{turn.num_clicks} in the answer"))
    if turn.is_misreported and is_answered:
        off_ms = 1000 * ((turn.server_latency_s or 0) - (turn.latency_s or 0))
        found.append(
            ("misreported", f"the server's figure is {off_ms:+.0f} ms off, {1000 * MISREPORTED_S:.0f} allowed")
        )
    for kind, detail in found:
        yield Bad(kind, where, detail, turn.said, turn.reply)


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
