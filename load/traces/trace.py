"""Requests as they came in somewhere: when, how long their prompts and answers were, what their prompts shared. Pure.

A prompt is a chain of parts, each of a number of tokens. Parts with the same name have the same text in every request,
so what a cache could reuse in the recorded traffic it can reuse in the replay: a Mooncake block, an agent's prompt, the
earlier turns of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from load.errors import LoadError

Role: TypeAlias = Literal["system", "user", "assistant"]
MIN_TOKENS = 1


@dataclass(frozen=True)
class Part:
    """`name` decides the text, `num_tokens` how much of it."""

    role: Role
    name: str
    num_tokens: int


@dataclass(frozen=True)
class TraceRequest:
    """`session`: requests that belong together, such as the turns of a call; -1 for one that belongs to none.

    `abort_after_tokens`: the client goes away after so many tokens of the answer, as a caller who barges in does.
    """

    at_s: float
    parts: tuple[Part, ...]
    output_tokens: int
    session: int = -1
    abort_after_tokens: int | None = None

    @property
    def input_tokens(self) -> int:
        return sum(part.num_tokens for part in self.parts)


@dataclass(frozen=True)
class Trace:
    """`requests` are in order of time, the first at 0 or later. `seed` is that of a generated trace."""

    name: str
    requests: tuple[TraceRequest, ...]
    seed: int | None = None

    @property
    def duration_s(self) -> float:
        return self.requests[-1].at_s if self.requests else 0.0


def in_order(name: str, requests: Sequence[TraceRequest], seed: int | None = None) -> Trace:
    """The trace of `requests`, sorted by time; those of the same time keep their order.

    Raises: LoadError for none.
    """
    if not requests:
        raise LoadError(f"{name}: the trace has no requests")
    return Trace(name, tuple(sorted(requests, key=lambda request: request.at_s)), seed)


def faster(trace: Trace, factor: float) -> Trace:
    """The same requests in 1/`factor` of the time."""
    assert factor > 0
    return replace(trace, requests=tuple(replace(r, at_s=r.at_s / factor) for r in trace.requests))


def first(trace: Trace, num_requests: int | None = None, duration_s: float | None = None) -> Trace:
    """The beginning of it, moved to the start of time."""
    start_s = trace.requests[0].at_s
    kept = trace.requests[:num_requests]
    if duration_s is not None:
        kept = tuple(request for request in kept if request.at_s - start_s < duration_s)
    return replace(trace, requests=tuple(replace(r, at_s=r.at_s - start_s) for r in kept))


def within(trace: Trace, max_input_tokens: int, max_output_tokens: int | None = None) -> tuple[Trace, int]:
    """Prompts cut to fit a server's context, from their end, and answers to `max_output_tokens`; how many were cut."""
    found = [_cut(request, max_input_tokens, max_output_tokens) for request in trace.requests]
    num_cut = sum(new is not old for new, old in zip(found, trace.requests, strict=True))
    return replace(trace, requests=tuple(found)), num_cut


def reuse_bound(trace: Trace) -> float:
    """Share of all prompt tokens that an earlier prompt began with as well: what an infinite cache could reuse.

    Counted in whole parts, by the longest chain of parts that was seen before.
    """
    chains: dict[tuple[int, Part], int] = {}  # what came before, and the part -> its number
    num_shared = 0
    for request in trace.requests:
        chain = -1
        is_shared = True
        for part in request.parts:
            is_shared = is_shared and (chain, part) in chains
            num_shared += part.num_tokens if is_shared else 0
            chain = chains.setdefault((chain, part), len(chains))
    return num_shared / max(1, sum(request.input_tokens for request in trace.requests))


def _cut(request: TraceRequest, max_input_tokens: int, max_output_tokens: int | None) -> TraceRequest:
    output = min(request.output_tokens, max_output_tokens or request.output_tokens)
    if request.input_tokens <= max_input_tokens and output == request.output_tokens:
        return request
    left = max_input_tokens
    parts = []
    for part in request.parts:
        if left < MIN_TOKENS:
            break
        parts.append(replace(part, num_tokens=min(part.num_tokens, left)))
        left -= part.num_tokens
    return replace(request, parts=tuple(parts), output_tokens=output)
