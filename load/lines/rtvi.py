"""RTVI, the messages of Pipecat's agents, put in the terms of `wire.calls` so far as it has them. Pure.

The agent numbers nothing. Here a turn begins when the caller starts to speak and something has been answered since the
last one began; what the agent says before the first has turn 0, as a greeting has, and is not reported as a turn. An
answer ends when the agent falls silent with its model at rest, or is interrupted; one that goes on after a silence ends
once more. Finals of one turn are joined, so the last one holds all of it. `heard` is what the agent tells as spoken
(`bot-tts-text`): by words where its voice tells their times, by sentences where it does not.
(Pipecat 1.14.0, processors/frameworks/rtvi: protocol 2.2.0.)
"""

from __future__ import annotations

from typing import Any, Literal

from wire import calls
from wire.errors import PeerError

LABEL = "rtvi-ai"
VERSION = "2.0.0"  # what we speak: 2.2.0 adds nothing but other names for the texts taken here


class Rtvi:
    def __init__(self) -> None:
        self._turn = 0
        self._is_answered = False  # the current turn, if only in part
        self._said: list[str] = []  # finals of the current turn
        self._revision = 0
        self._answer: int | None = None  # the turn that is being answered
        self._is_thinking = self._is_speaking = self._has_spoken = False
        self._heard: list[str] = []
        self._texts: dict[int, str] = {}  # what was understood, by turn

    def take(self, kind: str, data: dict[str, Any]) -> list[calls.ServerMessage]:
        """What one message of the agent means; nothing, for most. Raises: PeerError."""
        try:
            return self._take(kind, data)
        except (LookupError, TypeError) as error:
            raise PeerError(f"malformed '{kind}': {error!r}"[:200]) from None

    def _take(self, kind: str, data: dict[str, Any]) -> list[calls.ServerMessage]:
        match kind:
            case "user-started-speaking":
                return self._hear_caller()
            case "user-stopped-speaking":
                return [calls.State("thinking", self._turn)]
            case "user-transcription":
                return [self._understand(_string(data, "text"), data["final"] is True)]
            case "bot-llm-started":
                self._begin_answer()
                self._is_thinking = True
            case "bot-llm-stopped":
                self._is_thinking = False
                return self._end_answer()
            case "bot-llm-text":
                return [calls.Reply(self._begin_answer(), _string(data, "text"))]
            case "bot-tts-text":
                self._begin_answer()
                self._heard.append(_string(data, "text").strip())
            case "bot-started-speaking":
                turn = self._begin_answer()
                self._is_speaking = self._has_spoken = True
                return [calls.State("speaking", turn)]
            case "bot-stopped-speaking" if self._is_speaking:
                self._is_speaking = False
                return [*self._end_answer(), calls.State("listening", self._turn)]
            case "bot-interrupted":
                return self._interrupt()
            case "error":
                return [calls.Error("fatal" if data["fatal"] is True else "error", _string(data, "error"))]
            case "error-response":
                return [calls.Error("error-response", _string(data, "error"))]
        return []

    def _hear_caller(self) -> list[calls.ServerMessage]:
        if self._turn == 0 or self._is_answered:
            self._turn += 1
            self._is_answered, self._said, self._revision = False, [], 0
        return [calls.State("hearing", self._turn)]

    def _understand(self, text: str, is_final: bool) -> calls.ServerMessage:
        so_far = " ".join([*self._said, text.strip()])
        if is_final:
            self._said.append(text.strip())
            self._texts[self._turn] = so_far
            return calls.Final(self._turn, so_far)
        self._revision += 1
        return calls.Partial(self._turn, self._revision, so_far)

    def _begin_answer(self) -> int:
        if self._answer is None:
            self._answer = self._turn
            self._has_spoken = False
            if not self._is_answered:
                self._is_answered, self._heard = True, []
        return self._answer

    def _end_answer(self) -> list[calls.ServerMessage]:
        """If it is over: said, and nothing left to say."""
        if self._is_thinking or self._is_speaking or not self._has_spoken:
            return []
        return self._close("answered")

    def _interrupt(self) -> list[calls.ServerMessage]:
        if self._answer is None:
            return []
        turn = self._answer
        self._is_thinking = self._is_speaking = False
        return [calls.Clear(turn, 0), *self._close("interrupted")]

    def _close(self, outcome: Literal["answered", "interrupted"]) -> list[calls.ServerMessage]:
        turn, self._answer = self._answer, None
        if not turn:
            return []
        return [calls.Turn(turn, outcome, self._texts.get(turn, ""), " ".join(self._heard))]


def _string(data: dict[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no string")
    return value
