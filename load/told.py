"""What the server tells of a call, and where in time it belongs: replies, transcripts, states, the end. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from load.record import CallRecord

Message: TypeAlias = Mapping[str, Any]
Messages: TypeAlias = Sequence[tuple[float, Message]]


@dataclass(frozen=True)
class Reply:
    """One attempt at an answer, from its first text to where it was over, withdrawn or followed by another."""

    turn: int
    from_s: float
    until_s: float


def replies(messages: Messages) -> list[Reply]:
    found: list[Reply] = []
    begun: tuple[int, float] | None = None

    def end(at_s: float) -> None:
        if begun is not None:
            found.append(Reply(*begun, at_s))

    for at_s, message in messages:
        kind, turn = message.get("type"), message.get("turn")
        if kind == "reply" and (begun is None or begun[0] != turn):
            end(at_s)
            begun = (int(message["turn"]), at_s)
        elif begun is not None and turn == begun[0] and (kind == "turn" or message.get("state") == "hearing"):
            end(at_s)
            begun = None
    end(float("inf"))
    return found


def claimed(call: CallRecord, index: int) -> tuple[int | None, Message]:
    """The server's number for that utterance's turn, and what it says of it: the last turn that began with it."""
    finals = _finals(call, index)
    if not finals:
        return None, {}
    number = finals[-1]["turn"]
    claims = [m for _, m in call.messages if m.get("type") == "turn" and m["turn"] == number]
    return number, claims[-1] if claims else {}


def reported_s(call: CallRecord, turn: int | None) -> float:
    """When the server said that this turn was over."""
    return max(
        (at_s for at_s, m in call.messages if m.get("type") == "turn" and m["turn"] == turn), default=float("inf")
    )


def reply_text(call: CallRecord, turn: int | None) -> str:
    """Of the last attempt: a turn that goes on after a pause is answered anew under the same number."""
    attempts = [reply.from_s for reply in replies(call.messages) if reply.turn == turn]
    if not attempts:
        return ""
    told = (m for at_s, m in call.messages if at_s >= attempts[-1] and m.get("type") == "reply" and m["turn"] == turn)
    return "".join(str(message.get("delta", "")) for message in told)


def understood(call: CallRecord, index: int) -> str | None:
    """The server's transcript of that utterance; of several turns that it made of it, one after the other."""
    finals = {final["turn"]: str(final["text"]) for final in _finals(call, index)}
    return " ".join(finals.values()) if finals else None


def state_at(messages: Messages, at_s: float) -> str | None:
    states = [
        str(message["state"]) for told_s, message in messages if message.get("type") == "state" and told_s <= at_s
    ]
    return states[-1] if states else None


def ended_by_server_s(call: CallRecord) -> float | None:
    """When a call that had begun was ended, and not by the caller."""
    byes = [at_s for at_s, m in call.messages if m.get("type") == "bye" and m.get("reason") != "hangup"]
    if byes:
        return byes[0]
    return call.ended_s if call.outcome == "broken" else None


def _finals(call: CallRecord, index: int) -> list[Message]:
    """Transcripts that came after that utterance began, and before the next did."""
    start_s = call.said[index].start_s
    end_s = call.said[index + 1].start_s if index + 1 < len(call.said) else float("inf")
    return [m for at_s, m in call.messages if m.get("type") == "final" and start_s <= at_s < end_s]
