"""The result of a run as it is written to disk and read back: what was offered, from where, and all that was measured.

Frozen dataclasses are the format: `wire.strict` reads them, `load.report.schema` turns them into the JSON schema that
is shipped. Times are seconds of one monotonic clock from the start of the run. What was not measured is null, never 0.
A run is calls (turns of callers), or requests at the level of the LLM (`chat`) or the voice (`speak`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from load.errors import LoadError
from load.record import CallOutcome, CallRecord, TurnRecord
from load.report.statistics import Summary
from wire.strict import Invalid, parse

SCHEMA_VERSION = 1
MAX_SCHEDULING_ERROR_S = 0.005  # p99; above, the generator's own lateness would be taken for the server's
MAX_CPU_SHARE = 0.9  # of one core: the generator is one thread

Kind: TypeAlias = Literal["calls", "chat", "speak"]
RequestOutcome: TypeAlias = Literal["completed", "aborted", "refused", "failed"]


@dataclass(frozen=True)
class Host:
    machine: str
    processor: str
    num_cores: int
    memory_gb: float
    system: str
    python: str


@dataclass(frozen=True)
class Plan:
    """Which load was offered: `arrivals` names the schedule, `parameters` are its numbers with units in their names."""

    arrivals: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    num_planned: int = 0


@dataclass(frozen=True)
class Head:
    """What is known before the run. `command` is the command line, `commit` the generator's own."""

    kind: Kind
    started_at: str  # ISO 8601, UTC
    command: str
    commit: str
    host: Host
    seed: int
    target: str
    scenario: str
    transport: str
    plan: Plan
    notes: tuple[str, ...] = ()  # what a reader has to know to understand the figures


@dataclass(frozen=True)
class Validity:
    """Whether the generator kept time. `cpu_share`: its CPU time by wall time, 1 is one core all the time."""

    is_valid: bool
    reason: str
    num_timed: int
    scheduling_error_p50_s: float | None
    scheduling_error_p99_s: float | None
    scheduling_error_max_s: float | None
    cpu_share: float
    shares_cores: bool  # generator and server run on the same machine


@dataclass(frozen=True)
class CallFacts:
    """`load.record.CallRecord` without its audio and messages."""

    number: int
    scenario: str
    transport: str
    seed: int
    scheduled_s: float
    placed_s: float
    ready_s: float | None
    ended_s: float | None
    outcome: CallOutcome
    reason: str
    retry_after_s: float | None


@dataclass(frozen=True)
class RequestRecord:
    """One request to the LLM tier or the voice; `figures` by name, the unit at its end: `ttft_s`, `cached_tokens`."""

    number: int
    session: int
    scheduled_s: float
    sent_s: float
    ended_s: float
    outcome: RequestOutcome
    reason: str = ""
    retry_after_s: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CapacityStep:
    """One repeat at one number of concurrent calls. `num_lost`: turns missed, calls broken, failed or refused."""

    num_concurrent: int
    repeat: int
    num_turns: int
    num_lost: int
    p95_s: float | None
    p95_low_s: float | None
    p95_high_s: float | None


@dataclass(frozen=True)
class ScenarioVerdict:
    """Whether what a scenario expects was so: `call` is the first of its caller, `step` the place in the file."""

    scenario: str
    call: int
    step: str
    check: str
    passed: bool
    found: str
    line: int | None = None  # of that place


@dataclass(frozen=True)
class RunDocument:
    """`is_complete` is false for a run that broke off: what had ended by then is here, the rest is not."""

    schema_version: int
    is_complete: bool
    head: Head
    validity: Validity | None = None
    duration_s: float | None = None
    calls: tuple[CallFacts, ...] = ()
    turns: tuple[TurnRecord, ...] = ()
    requests: tuple[RequestRecord, ...] = ()
    capacity: tuple[CapacityStep, ...] = ()
    verdicts: tuple[ScenarioVerdict, ...] = ()
    n: int = 0  # turns or requests
    stages: Mapping[str, Summary] = field(default_factory=dict)


def facts(call: CallRecord) -> CallFacts:
    return CallFacts(
        number=call.number,
        scenario=call.scenario,
        transport=call.transport,
        seed=call.seed,
        scheduled_s=call.scheduled_s,
        placed_s=call.placed_s,
        ready_s=call.ready_s,
        ended_s=call.ended_s,
        outcome=call.outcome,
        reason=call.reason,
        retry_after_s=call.retry_after_s,
    )


def read_run(path: Path) -> RunDocument:
    """Raises: LoadError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise LoadError(f"{path}: cannot read: {problem}", "give the JSON file that a run has written") from None
    try:
        return parse_run(text)
    except Invalid as error:
        raise LoadError(f"{path}: no result of a run: {error}", "give the JSON file that a run has written") from None


def parse_run(text: str) -> RunDocument:
    """Raises: Invalid."""
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode()  # json takes lone surrogates, and no file does
    except (ValueError, RecursionError) as error:
        raise Invalid("", f"not JSON: {error}") from None
    if isinstance(value, dict) and (version := value.get("schema_version")) != SCHEMA_VERSION:
        raise Invalid("schema_version", f"this program reads {SCHEMA_VERSION}, got {version!r:.20}")
    return parse(RunDocument, value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits:.20} is out of range")
    return number
