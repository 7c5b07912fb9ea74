"""Two runs beside each other: each figure's median and p95, how far apart they are, and whether that can be chance.

An interval that holds 0 is no difference that was shown. Intervals are of one figure each: of twenty figures, one is
outside by chance alone. Runs of another scenario, transport or load measure another thing, runs in which the generator
could not keep time measure the generator: those are refused unless the caller insists.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from load.errors import LoadError
from load.harmless import harmless
from load.report.document import RunDocument, read_run
from load.report.live import shown_value
from load.report.measures import STATISTICS_SEED, is_lower_better, is_time, label, rates, samples
from load.report.statistics import Estimate, Groups, difference, percentile, rate_difference

PERCENTS = (50, 95)


@dataclass(frozen=True)
class Row:
    """`change` is what `b` has more than `a`; `kind` is `p50`, `p95` or `share`."""

    name: str
    kind: str
    a: float
    b: float
    num_a: int
    num_b: int
    change: Estimate
    is_lower_better: bool

    @property
    def verdict(self) -> str:
        """What the interval shows; nothing where there is none."""
        low, high = self.change.low, self.change.high
        if low is None or high is None:
            return "too few"
        if low <= 0 <= high:
            return "no difference shown"
        return "better" if (high < 0) == self.is_lower_better else "worse"


@dataclass(frozen=True)
class Comparison:
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]  # what differs between the runs beside their figures


def compare(a: RunDocument, b: RunDocument, *, anyway: bool = False) -> Comparison:
    """Raises: LoadError for runs that are not comparable, unless `anyway`."""
    if a.head.kind != b.head.kind:
        raise LoadError(f"one run is of {a.head.kind}, the other of {b.head.kind}: they have no figure in common")
    reasons = obstacles(a, b)
    if reasons and not anyway:
        raise LoadError(f"these runs are not comparable: {'; '.join(reasons)}", "compare them all the same: --anyway")
    rng = np.random.default_rng(STATISTICS_SEED)
    rows = [*_figure_rows(samples(a), samples(b), rng), *_rate_rows(a, b)]
    if not rows:
        raise LoadError("these runs have no figure in common")
    return Comparison(tuple(rows), (*reasons, *_remarks(a, b)))


def obstacles(a: RunDocument, b: RunDocument) -> list[str]:
    """Why the difference of these runs would not be one of the servers."""
    found = [
        f"{what} {one!r} and {other!r}"
        for what, one, other in (
            ("scenarios", a.head.scenario, b.head.scenario),
            ("transports", a.head.transport, b.head.transport),
            ("arrivals", _load(a), _load(b)),
        )
        if one != other
    ]
    for name, run in (("A", a), ("B", b)):
        if not run.is_complete:
            found.append(f"{name} broke off")
        if run.validity is not None and not run.validity.is_valid:
            found.append(f"{name} is invalid ({run.validity.reason})")
    return found


def comparison_table(found: Comparison) -> Group:
    table = Table(box=None, padding=(0, 2))
    table.add_column("")
    table.add_column("")
    for name in ("n A", "n B", "A", "B", "B - A", "95 % interval"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in found.rows:
        interval = "-"
        if row.change.low is not None and row.change.high is not None:
            interval = f"{_signed(row, row.change.low)} .. {_signed(row, row.change.high)}"
        figures = (_shown(row, row.a), _shown(row, row.b), _signed(row, row.change.value), interval)
        style = {"better": "green", "worse": "red"}.get(row.verdict, "")
        table.add_row(
            Text(label(row.name)), row.kind, str(row.num_a), str(row.num_b), *figures, Text(row.verdict, style)
        )
    return Group(table, *(Text(harmless(f"note: {remark}"), "yellow") for remark in found.remarks))


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, metavar="A.json", help="result of a run")
    parser.add_argument("b", type=Path, metavar="B.json", help="result of the run to compare with it")
    parser.add_argument(
        "--anyway", action="store_true", help="compare also what is not comparable, and say why it is not"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    found = compare(read_run(arguments.a), read_run(arguments.b), anyway=arguments.anyway)
    console.print(comparison_table(found))
    return 0


def _figure_rows(a: Mapping[str, Groups], b: Mapping[str, Groups], rng: np.random.Generator) -> list[Row]:
    rows = []
    for name in (name for name in a if name in b):
        flat_a, flat_b = ([value for group in run[name] for value in group] for run in (a, b))
        for percent in PERCENTS:
            before, after = percentile(flat_a, percent), percentile(flat_b, percent)
            change = difference(a[name], b[name], percent, rng)
            kind = f"p{percent}"
            rows.append(Row(name, kind, before, after, len(flat_a), len(flat_b), change, is_lower_better(name)))
    return rows


def _rate_rows(a: RunDocument, b: RunDocument) -> list[Row]:
    rows = []
    rates_a, rates_b = rates(a), rates(b)
    for name in (name for name in rates_a if name in rates_b):
        one, other = rates_a[name], rates_b[name]
        if one.num_trials and other.num_trials:
            change = rate_difference(one.num_hits, one.num_trials, other.num_hits, other.num_trials)
            shares = (one.num_hits / one.num_trials, other.num_hits / other.num_trials)
            rows.append(Row(name, "share", *shares, one.num_trials, other.num_trials, change, one.better == "lower"))
    return rows


def _remarks(a: RunDocument, b: RunDocument) -> list[str]:
    pairs = (
        ("hosts", str(a.head.host), str(b.head.host)),
        ("targets", a.head.target, b.head.target),
        ("commits", a.head.commit, b.head.commit),
        ("seeds", str(a.head.seed), str(b.head.seed)),
    )
    return [f"{what} differ: {one} and {other}" for what, one, other in pairs if one != other]


def _load(run: RunDocument) -> str:
    numbers = ", ".join(f"{name} {value:g}" for name, value in sorted(run.head.plan.parameters.items()))
    return f"{run.head.plan.arrivals} {numbers}".strip()


def _shown(row: Row, value: float) -> str:
    return f"{value:.1%}" if row.kind == "share" else shown_value(row.name, value)


def _signed(row: Row, value: float) -> str:
    if row.kind == "share":
        return f"{100 * value:+.1f} points"
    return f"{1000 * value:+.0f} ms" if is_time(row.name) else f"{value:+.3g}"
