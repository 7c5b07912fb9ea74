"""Bodies of answers in the shape of OpenAI's API. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from llm.sequence import FinishReason, Likely, Usage
from wire import sse


@dataclass(frozen=True)
class Answer:
    """Identity of one answer; makes its whole body or its stream's chunks."""

    kind: Literal["chat", "completion"]
    id: str
    model: str
    created: int  # seconds since the epoch

    def whole(
        self, text: str, reason: FinishReason, usage: Usage, logprobs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": logprobs}
        if self.kind == "chat":
            choice["message"] = {"role": "assistant", "content": text, "refusal": None}
            return {**self._head("chat.completion"), "choices": [choice], "usage": usage_body(usage)}
        choice["text"] = text
        return {**self._head("text_completion"), "choices": [choice], "usage": usage_body(usage)}

    def chunk(self, text: str, reason: FinishReason | None = None, *, first: bool = False) -> bytes:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "logprobs": None}
        if self.kind == "chat":
            delta: dict[str, Any] = {"role": "assistant", "content": text} if first else {}
            choice["delta"] = {**delta, "content": text} if text else delta
            return _event({**self._head("chat.completion.chunk"), "choices": [choice]})
        return _event({**self._head("text_completion"), "choices": [{**choice, "text": text}]})

    def usage_chunk(self, usage: Usage) -> bytes:
        name = "chat.completion.chunk" if self.kind == "chat" else "text_completion"
        return _event({**self._head(name), "choices": [], "usage": usage_body(usage)})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def logprobs_body(answer: Sequence[Likely], name_of: Callable[[int], str]) -> dict[str, Any]:
    """In the shape of completions. Of tokens that read the same the likeliest is told."""
    names = [name_of(likely.token) for likely in answer]
    return {
        "tokens": names,
        "token_logprobs": [likely.logprob for likely in answer],
        "top_logprobs": [{name_of(token): value for token, value in reversed(likely.top)} for likely in answer],
        "text_offset": [sum(map(len, names[:i])) for i in range(len(names))],
    }


def usage_body(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _event(body: dict[str, Any]) -> bytes:
    return sse.encode(json.dumps(body, ensure_ascii=False, separators=(",", ":")))
