"""Mooncake's traces (FAST '25, `FAST25-release/traces/*.jsonl`): a JSON object a line, prompts known by their blocks.

`timestamp` is in ms, `hash_ids` name the prompt's blocks of 512 tokens, the last of which may be shorter; the same id
means the same tokens after the same tokens. Everything is one user's message: roles are not recorded. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from load.errors import LoadError
from load.traces.trace import Part, Trace, TraceRequest, in_order
from wire.strict import Invalid, parse

BLOCK_TOKENS = 512  # Mooncake's README, "trace format"


@dataclass(frozen=True)
class _Line:
    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.timestamp < 0 or self.output_length < 0:
            raise ValueError("timestamp and output_length must not be negative")
        if not self.hash_ids or not 0 < self.input_length - BLOCK_TOKENS * (len(self.hash_ids) - 1) <= BLOCK_TOKENS:
            raise ValueError(
                f"input_length {self.input_length} does not fit {len(self.hash_ids)} blocks of {BLOCK_TOKENS} tokens"
            )


def read_mooncake(lines: Iterable[str], name: str) -> Trace:
    """Raises: LoadError, with the line."""
    requests = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            requests.append(_request(parse(_Line, json.loads(text))))
        except Invalid as error:
            raise LoadError(f"{name}:{number}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise LoadError(f"{name}:{number}: not JSON: {str(error)[:100]}") from None
    return in_order(name, requests)


def _request(line: _Line) -> TraceRequest:
    last = line.input_length - BLOCK_TOKENS * (len(line.hash_ids) - 1)
    sizes = [BLOCK_TOKENS] * (len(line.hash_ids) - 1) + [last]
    parts = tuple(Part("user", f"block {block}", size) for block, size in zip(line.hash_ids, sizes, strict=True))
    return TraceRequest(line.timestamp / 1000, parts, max(1, line.output_length))
