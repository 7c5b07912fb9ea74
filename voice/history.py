"""What was said, as the model is told it: a system message, then turns of which only the heard part counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


INTERRUPTED = " [interrupted by the caller]"  # behind what was heard of an answer


@dataclass(frozen=True)
class _Said:
    user: str
    agent: str


class History:
    """`prompt` of one turn is a prefix of the next turn's, as long as no old turn had to leave."""

    def __init__(self, instructions: str, max_turns: int) -> None:
        self._instructions = instructions
        self._max_turns = max_turns
        self._turns: list[_Said] = []

    def add(self, user: str, heard: str, *, is_interrupted: bool = False) -> None:
        """One exchange. Either side may be empty: a prompt nobody asked for, an answer nobody heard."""
        if is_interrupted and heard:
            heard += INTERRUPTED
        if not user and not heard:
            return
        self._turns.append(_Said(user, heard))
        if len(self._turns) > self._max_turns:
            # Half at once: every removal moves the prefix, and with it the KV the worker holds.
            del self._turns[: (self._max_turns + 1) // 2]

    def prompt(self, user: str = "") -> list[Message]:
        messages: list[Message] = [{"role": "system", "content": self._instructions}]
        for said in self._turns:
            _append(messages, "user", said.user)
            _append(messages, "assistant", said.agent)
        _append(messages, "user", user)
        return messages


def _append(messages: list[Message], role: Literal["user", "assistant"], content: str) -> None:
    """Same speaker twice becomes one message: chat templates expect the roles to alternate."""
    if not content:
        return
    if messages[-1]["role"] == role:
        messages[-1] = {"role": role, "content": f"{messages[-1]['content']} {content}"}
    else:
        messages.append({"role": role, "content": content})
