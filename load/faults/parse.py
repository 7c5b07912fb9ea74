"""Faults as YAML or JSON: a mapping whose `kind` says which dataclass the rest is. Strict, as `wire.strict` is. Pure.

faults:
  - {kind: loss, share: 0.03}
  - {kind: jitter, spread_s: 0.04, direction: down}
  - {kind: llm_stall, after_tokens: 5, for_s: 2.0, first: 2}
  - {kind: kill, process: tts_engine, at_s: 4.0}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import yaml

from load.faults.breaks import BREAKS, Break
from load.faults.impairment import NETWORK_FAULTS, NetworkFault
from load.faults.kill import PROCESS_FAULTS, ProcessFault
from load.faults.stages import STAGE_FAULTS, StageFault
from wire.strict import Invalid, nearest, parse

Fault: TypeAlias = NetworkFault | Break | StageFault | ProcessFault
FAULTS: tuple[type[Fault], ...] = (*NETWORK_FAULTS, *BREAKS, *STAGE_FAULTS, *PROCESS_FAULTS)
BY_KIND: Mapping[str, type[Fault]] = {fault.KIND: fault for fault in FAULTS}


def parse_fault(value: object, where: str = "") -> Fault:
    """Raises: Invalid, naming the path, and the nearest known kind or key."""
    if not isinstance(value, Mapping):
        raise Invalid(where, f"expected a fault such as {{kind: loss, share: 0.03}}, got {value!r:.40}")
    kind_where = f"{where}.kind" if where else "kind"
    if "kind" not in value:
        raise Invalid(kind_where, f"missing; known: {', '.join(sorted(BY_KIND))}")
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in BY_KIND:
        close = nearest(kind, BY_KIND) if isinstance(kind, str) else None
        hint = f"did you mean '{close}'?" if close else f"known: {', '.join(sorted(BY_KIND))}"
        raise Invalid(kind_where, f"unknown kind {kind!r:.40}; {hint}")
    return parse(BY_KIND[kind], {key: each for key, each in value.items() if key != "kind"}, where)


def parse_faults(value: object, where: str = "faults") -> tuple[Fault, ...]:
    """A list of them. Raises: Invalid."""
    if not isinstance(value, list | tuple):
        raise Invalid(where, "expected a list of faults")
    return tuple(parse_fault(each, f"{where}[{i}]") for i, each in enumerate(value))


def parse_text(text: str) -> Fault:
    """As given on a command line: `{kind: loss, share: 0.03}`. Raises: Invalid."""
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Invalid("", f"not YAML: {str(error).splitlines()[0]}") from None
    return parse_fault(value)
