"""Request bodies of OpenAI's API, parsed strictly. Pure.

A field that only labels a request is ignored; one that would change the answer and is not supported is refused, so that
nobody takes an answer for what it is not. Source: OpenAI API reference, chat completions and completions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from llm.sampling import Sampling
from wire.errors import PeerError
from wire.strict import Invalid, parse

IGNORED = frozenset({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "verbosity"})
# What may be said of an unsupported field: the values that ask for nothing.
REFUSED: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "logit_bias": ({},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "reasoning_effort": ("none",),
    "web_search_options": (),
}
MAX_LOGPROBS = 20  # vLLM's default bound; OpenAI's is 5
MAX_STOPS = 16  # OpenAI allows 4, vLLM any number
MAX_STOP_CHARACTERS = 256
ROLES = ("system", "developer", "user", "assistant")


@dataclass(frozen=True)
class StreamOptions:
    include_usage: bool = False
    include_obfuscation: bool = False  # accepted and not done


@dataclass(frozen=True, kw_only=True)
class Body:
    model: str
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None
    stop: object = None
    ignore_eos: bool = False  # vLLM's extension, for measurements

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_completion_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative, got {value}")
        self.sampling()
        self.stops()

    def answer_tokens(self, default: int) -> int:
        given = self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens
        return default if given is None else given

    def sampling(self) -> Sampling:
        """Raises: ValueError for a value out of range."""
        return Sampling(**{field.name: getattr(self, field.name) for field in fields(Sampling)})

    def stops(self) -> tuple[str, ...]:
        """Raises: ValueError."""
        given = [self.stop] if isinstance(self.stop, str) else ([] if self.stop is None else self.stop)
        if not isinstance(given, Sequence) or not all(isinstance(stop, str) and stop for stop in given):
            raise ValueError("stop must be a string or a list of strings, none empty")
        if len(given) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARACTERS for stop in given):
            raise ValueError(f"stop: at most {MAX_STOPS} strings of at most {MAX_STOP_CHARACTERS} characters")
        return tuple(given)


@dataclass(frozen=True, kw_only=True)
class ChatBody(Body):
    messages: tuple[Mapping[str, object], ...]

    def conversation(self) -> list[dict[str, str]]:
        """Raises: PeerError."""
        if not self.messages:
            raise PeerError("messages: must name at least one")
        return [_message(message, f"messages[{i}]") for i, message in enumerate(self.messages)]


@dataclass(frozen=True, kw_only=True)
class CompletionBody(Body):
    prompt: object
    logprobs: int | None = None  # how many likely tokens are told beside each of the answer

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.logprobs is None:
            return
        if not 0 <= self.logprobs <= MAX_LOGPROBS:
            raise ValueError(f"logprobs must be 0 to {MAX_LOGPROBS}, got {self.logprobs}")
        if self.stream:
            raise ValueError("logprobs: not in a stream")

    def text_or_tokens(self, vocab: int) -> str | list[int]:
        """Raises: PeerError."""
        prompt = self.prompt
        if isinstance(prompt, str):
            return prompt
        if isinstance(prompt, list) and all(type(token) is int and 0 <= token < vocab for token in prompt):
            return prompt
        raise PeerError(
            f"prompt: expected a string or a list of token ids below {vocab}; several prompts are not taken"
        )


B = TypeVar("B", bound=Body)


def parse_body(cls: type[B], body: Mapping[str, Any]) -> B:
    """Raises: PeerError."""
    wanted = {}
    own = {field.name for field in fields(cls)}
    for name, value in body.items():
        if value is None or name in IGNORED:
            continue
        if name in REFUSED and (name not in own or value is False):
            if value not in REFUSED[name]:
                raise PeerError(f"{name}: not supported by this worker", code="unsupported_parameter")
            continue
        wanted[name] = value
    try:
        return parse(cls, wanted)
    except Invalid as error:
        raise PeerError(str(error)) from None


def _message(message: Mapping[str, object], where: str) -> dict[str, str]:
    role = message.get("role")
    if role not in ROLES:
        raise PeerError(f"{where}.role: expected one of {', '.join(ROLES)}, got {role!r:.40}")
    if unknown := message.keys() - {"role", "content", "name", "refusal"}:
        raise PeerError(f"{where}.{min(unknown)}: not supported by this worker", code="unsupported_parameter")
    return {"role": "system" if role == "developer" else str(role), "content": _content(message.get("content"), where)}


def _content(content: object, where: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else [content]:
        match part:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                raise PeerError(f"{where}.content: expected a string or a list of text parts")
    return "".join(texts)
