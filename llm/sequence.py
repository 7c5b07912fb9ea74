"""One request on its way through the engine, and the events it answers with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from llm.blocks import BlockHash
from llm.sampling import Sampler, Sampling
from llm.stops import TextStream
from wire.errors import WireError

FinishReason: TypeAlias = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class Generation:
    """What to do. `max_tokens` 0 computes and keeps the prompt's KV, and samples nothing."""

    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    stops: tuple[str, ...] = ()
    ignore_eos: bool = False
    num_logprobs: int | None = None  # likely tokens to tell beside each of the answer; None: not even its own
    deadline_s: float | None = None  # for the first token, on the engine's clock; prefill only: for the end


@dataclass(frozen=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True)
class Likely:
    """How likely a generated token was, and `top` the likeliest in its place: log P of the model, before sampling."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Text:
    """A generated token; `text` is empty while characters or a possible stop string are incomplete."""

    text: str
    likely: Likely | None = None


@dataclass(frozen=True)
class Finished:
    """The last event. `text` is what had been held back."""

    text: str
    reason: FinishReason
    usage: Usage
    likely: Likely | None = None  # of the last token, where that ended it


@dataclass(frozen=True)
class Failed:
    """The last event."""

    error: WireError


Event: TypeAlias = Text | Finished | Failed


@dataclass(eq=False)
class Sequence:
    """Belongs to the engine's thread once submitted.

    `tokens[:num_computed]` have their KV in `blocks`; the blocks of the first `num_published` of them can be found by
    others. `parent` is the hash of the last published block.
    """

    generation: Generation
    emit: Callable[[Event], None]
    arrived_s: float
    parent: BlockHash
    sampler: Sampler
    output: TextStream
    tokens: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    num_computed: int = 0
    num_cached: int = 0
    num_published: int = 0
    last_token_s: float = 0.0

    @property
    def num_generated(self) -> int:
        return len(self.tokens) - len(self.generation.prompt)

    @property
    def usage(self) -> Usage:
        return Usage(len(self.generation.prompt), self.num_generated, self.num_cached)
