"""What a check found, and how findings are shown. Pure.

A finding that is not `ok` says how to mend it: a command, or a key of the profile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "warning", "problem"]
Group: TypeAlias = Literal["machine", "packages", "profile", "weights", "services", "callers", "keys"]

LEVEL_COLUMNS = len("problem")
MEND = "mend:"


@dataclass(frozen=True)
class Finding:
    group: Group
    name: str
    level: Level
    found: str
    mend: str = ""

    def __post_init__(self) -> None:
        assert self.level == "ok" or self.mend, f"{self.name} does not say how to mend it"


def count(findings: Sequence[Finding], level: Level) -> int:
    return sum(finding.level == level for finding in findings)


def as_lines(findings: Sequence[Finding]) -> list[str]:
    """A heading for each group, a line for each finding and a line below it with its mend, then the counts."""
    name_columns = max((len(finding.name) for finding in findings), default=0)
    lines = []
    for group, members in groupby(findings, key=lambda finding: finding.group):
        lines.append(group)
        for finding in members:
            lines.append(f"  {finding.level:<{LEVEL_COLUMNS}}  {finding.name:<{name_columns}}  {finding.found}")
            if finding.mend:
                lines.append(f"  {'':<{LEVEL_COLUMNS}}  {MEND:>{name_columns}}  {finding.mend}")
    counts = (count(findings, "ok"), _plural(count(findings, "warning"), "warning"), count(findings, "problem"))
    return [*lines, f"{counts[0]} ok, {counts[1]}, {_plural(counts[2], 'problem')}"]


def as_object(findings: Sequence[Finding], profile: Path) -> dict[str, object]:
    """The same for programs."""
    return {
        "profile": str(profile),
        "num_ok": count(findings, "ok"),
        "num_warnings": count(findings, "warning"),
        "num_problems": count(findings, "problem"),
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }


def _plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
