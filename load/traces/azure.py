"""Azure's LLM inference traces (`AzurePublicDataset`, 2023 and 2024, CC-BY): a CSV of time, prompt and answer length.

Nothing tells what prompts share, so each is text of its own and no cache can help. Pure.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import datetime

from load.errors import LoadError
from load.traces.trace import Part, Trace, TraceRequest, in_order

HEADER = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
MAX_TOKENS = 10_000_000  # no model takes more; a larger number is another column


def read_azure(lines: Iterable[str], name: str) -> Trace:
    """Raises: LoadError, with the line."""
    rows = csv.reader(lines)
    requests: list[TraceRequest] = []
    start: datetime | None = None
    try:
        if next(rows, None) != HEADER:
            raise LoadError(f"{name}:1: the header is not {','.join(HEADER)}")
        for row in rows:
            if not row:
                continue
            at, input_tokens, output_tokens = _parsed(row, f"{name}:{rows.line_num}")
            start = at if start is None else start
            if (at.tzinfo is None) != (start.tzinfo is None):
                raise LoadError(f"{name}:{rows.line_num}: times with and without a time zone")
            part = Part("user", f"request {len(requests)}", max(1, input_tokens))
            requests.append(TraceRequest((at - start).total_seconds(), (part,), max(1, output_tokens)))
    except csv.Error as error:
        raise LoadError(f"{name}:{rows.line_num}: not CSV: {error}") from None
    return in_order(name, requests)


def _parsed(row: list[str], where: str) -> tuple[datetime, int, int]:
    if len(row) != len(HEADER):
        raise LoadError(f"{where}: {len(HEADER)} columns are expected, got {len(row)}")
    try:
        at = datetime.fromisoformat(row[0])
    except ValueError:
        raise LoadError(f"{where}: TIMESTAMP: no time: {row[0]!r:.40}") from None
    numbers = []
    for column, text in zip(HEADER[1:], row[1:], strict=True):
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= MAX_TOKENS):
            raise LoadError(f"{where}: {column}: no number of tokens: {text!r:.40}")
        numbers.append(int(text))
    return at, numbers[0], numbers[1]
