"""The LLM traffic of phone calls, made up: long agent prompts, short turns close together, callers who barge in.

Calls begin as a Poisson process; each is of one of a few agents, whose prompt all its calls share, and every request of
a call repeats the call so far. An answer that is barged into stays in the conversation as far as it was heard. The
ranges are assumptions, not measurements: an agent's prompt of some pages, turns and answers of some seconds of speech.
Turns come at their time whether or not the answer before has ended: open loop.

The file is JSON lines: a header with every parameter and the seed, then one request a line. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

from load.errors import LoadError
from load.traces.trace import Part, Trace, TraceRequest, in_order
from wire.strict import Invalid, parse

T = TypeVar("T")
FORMAT = "offhook-voice-chat"
VERSION = 1


@dataclass(frozen=True)
class VoiceChat:
    """The header. Ranges are inclusive and drawn evenly; the share of answers that are aborted is each call's own."""

    seed: int
    num_calls: int = 100
    calls_per_minute: float = 20.0
    num_agents: int = 4
    min_turns: int = 3
    max_turns: int = 12
    min_agent_tokens: int = 1000
    max_agent_tokens: int = 2000
    min_new_tokens: int = 10
    max_new_tokens: int = 60
    min_output_tokens: int = 20
    max_output_tokens: int = 80
    min_pause_s: float = 3.0
    max_pause_s: float = 10.0
    min_abort_share: float = 0.1
    max_abort_share: float = 0.3
    format: str = FORMAT
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.format != FORMAT or self.version != VERSION:
            raise ValueError(f"this is {self.format!r:.40} {self.version}, not {FORMAT} {VERSION}")
        if self.seed < 0:
            raise ValueError("seed must not be negative")
        if self.num_calls < 1 or self.num_agents < 1 or not 0 < self.calls_per_minute < float("inf"):
            raise ValueError("num_calls, num_agents and calls_per_minute must be above 0")
        for what in ("turns", "agent_tokens", "new_tokens", "output_tokens", "pause_s", "abort_share"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            least = 0 if what in ("pause_s", "abort_share") else 1
            if not least <= low <= high or high == float("inf"):
                raise ValueError(f"min_{what} {low} to max_{what} {high} is no range above {least}")
        if self.max_abort_share > 1:
            raise ValueError("max_abort_share must be at most 1")


@dataclass(frozen=True)
class ChatTurn:
    """One request. `agent_tokens` is the length of its agent's prompt; the turns of a call follow each other."""

    call: int
    turn: int
    at_s: float
    agent: int
    agent_tokens: int
    new_tokens: int
    output_tokens: int
    abort_after_tokens: int | None = None

    def __post_init__(self) -> None:
        if min(self.call, self.turn, self.at_s, self.agent) < 0 or self.at_s == float("inf"):
            raise ValueError("call, turn, at_s and agent must not be negative")
        if min(self.agent_tokens, self.new_tokens, self.output_tokens) < 1:
            raise ValueError("agent_tokens, new_tokens and output_tokens must be above 0")
        if self.abort_after_tokens is not None and not 1 <= self.abort_after_tokens < self.output_tokens:
            raise ValueError("abort_after_tokens must be 1 or more and less than output_tokens")

    @property
    def heard_tokens(self) -> int:
        return self.output_tokens if self.abort_after_tokens is None else self.abort_after_tokens


def generate(config: VoiceChat) -> list[ChatTurn]:
    """In order of time; the same for the same `config`."""
    rng = np.random.default_rng(config.seed)
    prompts = rng.integers(config.min_agent_tokens, config.max_agent_tokens + 1, config.num_agents)
    starts_s = np.cumsum(rng.exponential(60 / config.calls_per_minute, config.num_calls))
    turns = []
    for call in range(config.num_calls):
        agent = int(rng.integers(config.num_agents))
        abort_share = rng.uniform(config.min_abort_share, config.max_abort_share)
        at_s = float(starts_s[call])
        for turn in range(int(rng.integers(config.min_turns, config.max_turns + 1))):
            output = int(rng.integers(config.min_output_tokens, config.max_output_tokens + 1))
            is_aborted = output > 1 and rng.random() < abort_share
            turns.append(
                ChatTurn(
                    call=call,
                    turn=turn,
                    at_s=round(at_s, 3),
                    agent=agent,
                    agent_tokens=int(prompts[agent]),
                    new_tokens=int(rng.integers(config.min_new_tokens, config.max_new_tokens + 1)),
                    output_tokens=output,
                    abort_after_tokens=int(rng.integers(1, output)) if is_aborted else None,
                )
            )
            at_s += float(rng.uniform(config.min_pause_s, config.max_pause_s))
    return sorted(turns, key=lambda found: (found.at_s, found.call, found.turn))


def to_lines(config: VoiceChat, turns: Iterable[ChatTurn]) -> Iterator[str]:
    yield json.dumps(asdict(config)) + "\n"
    for turn in turns:
        yield json.dumps({key: value for key, value in asdict(turn).items() if value is not None}) + "\n"


def is_voice_chat(first_line: str) -> bool:
    return f'"format": "{FORMAT}"' in first_line or f'"format":"{FORMAT}"' in first_line


def read_voice_chat(lines: Iterable[str], name: str) -> Trace:
    """Raises: LoadError, with the line."""
    numbered = enumerate(lines, 1)
    config = _parsed(VoiceChat, *next(numbered, (1, "")), name)
    spoken: dict[int, list[ChatTurn]] = {}
    requests = []
    for number, text in numbered:
        if not text.strip():
            continue
        turn = _parsed(ChatTurn, number, text, name)
        before = spoken.setdefault(turn.call, [])
        if turn.turn != len(before) or (before and before[-1].at_s > turn.at_s):
            raise LoadError(
                f"{name}:{number}: turn {turn.turn} of call {turn.call} comes after {len(before)} turns of it"
            )
        before.append(turn)
        requests.append(_request(before))
    return in_order(name, requests, config.seed)


def _parsed(cls: type[T], number: int, text: str, name: str) -> T:
    try:
        return parse(cls, json.loads(text))
    except Invalid as error:
        raise LoadError(f"{name}:{number}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{name}:{number}: not JSON: {str(error)[:100]}") from None


def _request(turns: list[ChatTurn]) -> TraceRequest:
    """The request of the last of a call's turns so far."""
    last = turns[-1]
    parts = [Part("system", f"agent {last.agent}", last.agent_tokens)]
    for turn in turns:
        parts.append(Part("user", f"call {turn.call} turn {turn.turn}", turn.new_tokens))
        if turn is not last:
            parts.append(Part("assistant", f"call {turn.call} answer {turn.turn}", turn.heard_tokens))
    return TraceRequest(last.at_s, tuple(parts), last.output_tokens, last.call, last.abort_after_tokens)
