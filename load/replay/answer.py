"""A streamed chat completion as it arrives, and the figures it yields. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wire import sse
from wire.errors import PeerError
from wire.messages import read_json_object

MAX_COUNT = 2**53  # of tokens; above, a float cannot count


@dataclass
class Answer:
    """`num_chunks`: events with text; a server that sends several tokens in one event has fewer than tokens."""

    first_s: float | None = None
    last_s: float | None = None
    num_chunks: int = 0
    usage: Mapping[str, Any] | None = None
    is_over: bool = False

    def take(self, event: str, now: float) -> None:
        """Raises: PeerError for an error event, or what is no event of a chat completion."""
        if event.strip() == sse.DONE:
            self.is_over = True
            return
        body = read_json_object(event)
        if (error := body.get("error")) is not None:
            message = error.get("message") if isinstance(error, dict) else error
            raise PeerError(f"the stream ended with an error: {message!s:.200}", code="failed")
        if isinstance(usage := body.get("usage"), dict):
            self.usage = usage
        if _text(body):
            self.first_s = now if self.first_s is None else self.first_s
            self.last_s = now
            self.num_chunks += 1

    @property
    def output_tokens(self) -> int:
        """By the server's count, else by events."""
        return _count(self.usage, "completion_tokens") or self.num_chunks

    def figures(self, scheduled_s: float, sent_s: float, wanted_tokens: int, *, is_whole: bool) -> dict[str, float]:
        """Times from the scheduled moment, so that a server that holds the load up cannot hide it."""
        if self.first_s is None or self.last_s is None:
            return {}
        found = {"ttft_s": self.first_s - scheduled_s, "ttft_from_sent_s": self.first_s - sent_s}
        if self.output_tokens > 1:
            found["tpot_s"] = (self.last_s - self.first_s) / (self.output_tokens - 1)
        if is_whole:
            found["latency_s"] = self.last_s - scheduled_s
        found["output_tokens"] = float(self.output_tokens)
        if (prompt := _count(self.usage, "prompt_tokens")) is not None:
            found |= {"prompt_tokens": float(prompt), "prompt_to_wanted": prompt / wanted_tokens}
            details = (self.usage or {}).get("prompt_tokens_details")
            if (cached := _count(details, "cached_tokens")) is not None:
                found |= {"cached_tokens": float(cached), "cached_share": cached / max(1, prompt)}
        return found


def _text(body: Mapping[str, Any]) -> str:
    choices = body.get("choices")
    if not isinstance(choices, list):
        raise PeerError("an event without choices", code="bad_stream")
    if not choices:
        return ""
    delta = choices[0].get("delta") if isinstance(choices[0], dict) else None
    if not isinstance(delta, dict):
        raise PeerError("a choice without delta", code="bad_stream")
    content = delta.get("content")
    return content if isinstance(content, str) else ""


def _count(counts: object, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None
