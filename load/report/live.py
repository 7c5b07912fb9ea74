"""What a person sees while a run goes on, and its summary at the end.

On a terminal: a progress bar and a table, drawn once a second because drawing takes some ms of the very process that
must keep time. In a pipe: nothing until the summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from load.harmless import harmless
from load.report.document import CallFacts, RequestRecord, RunDocument
from load.report.measures import is_time, label, rates
from load.report.statistics import percentile, wilson

REDRAW_HZ = 1.0
MAX_REASONS = 3  # that a summary tells; the JSON has them all
MAX_VALUES = 2000  # of each figure that live percentiles are taken of: the latest


@dataclass
class Tally:
    """Counts and the latest values of a run in progress; `observe` and `end` are cheap."""

    num_planned: int
    num_running: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[float]] = field(default_factory=dict)

    def begin(self) -> None:
        self.num_running += 1

    def end(self, outcome: str) -> None:
        self.num_running -= 1
        self.ended[outcome] += 1

    def observe(self, name: str, value: float) -> None:
        latest = self.values.setdefault(name, [])
        latest.append(value)
        if len(latest) >= 2 * MAX_VALUES:
            del latest[:-MAX_VALUES]

    @property
    def num_ended(self) -> int:
        return self.ended.total()


class _Board:
    def __init__(self, tally: Tally, unit: str) -> None:
        self._tally = tally
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), auto_refresh=False
        )
        self._task = self._bar.add_task(unit, total=tally.num_planned)

    def __rich__(self) -> Group:
        self._bar.update(self._task, completed=self._tally.num_ended)
        return Group(self._bar, live_table(self._tally))


@contextmanager
def shown(tally: Tally, unit: str, console: Console) -> Iterator[None]:
    """Show `tally` as it changes; `unit` is what is counted, for example `calls`."""
    if not console.is_terminal:
        yield
        return
    board = _Board(tally, unit)
    with Live(get_renderable=board.__rich__, console=console, refresh_per_second=REDRAW_HZ, transient=True):
        yield


def live_table(tally: Tally) -> Table:
    counts = [f"{tally.num_running} running", *(f"{n} {outcome}" for outcome, n in sorted(tally.ended.items()))]
    table = Table(title=", ".join(counts), title_justify="left", box=None, padding=(0, 2))
    table.add_column("")
    for name in ("n", "p50", "p95", "max"):
        table.add_column(name, justify="right")
    for name, values in tally.values.items():
        if values:
            figures = (percentile(values, 50), percentile(values, 95), max(values))
            table.add_row(Text(label(name)), str(len(values)), *(shown_value(name, value) for value in figures))
    return table


def summary(run: RunDocument) -> Group:
    """Every figure and rate of a run, for stdout."""
    return Group(*_warnings(run), _figures(run), _rates(run), *_reasons(run), *_timing(run))


def shown_value(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{1000 * value:.0f} ms" if is_time(name) else f"{value:.3g}"


def _warnings(run: RunDocument) -> list[Text]:
    found = []
    if not run.is_complete:
        found.append(Text("INCOMPLETE: the run broke off; these are the results until then", "bold yellow"))
    if run.validity is not None and not run.validity.is_valid:
        found.append(Text(f"INVALID: {run.validity.reason}", "bold red"))
    return found


def _reasons(run: RunDocument) -> list[Text]:
    """Why calls or requests were refused or lost, the most frequent first."""
    records: list[CallFacts | RequestRecord] = [*run.calls, *run.requests]
    lost = Counter(
        f"{record.outcome}: {record.reason}" for record in records if record.outcome in ("refused", "failed", "broken")
    )
    return [Text(harmless(f"{count} {reason}")) for reason, count in lost.most_common(MAX_REASONS)]


def _timing(run: RunDocument) -> list[Text]:
    """How the generator itself did."""
    found = run.validity
    if found is None or found.scheduling_error_p50_s is None or found.scheduling_error_p99_s is None:
        return []
    late = f"p50 {1000 * found.scheduling_error_p50_s:.1f}, p99 {1000 * found.scheduling_error_p99_s:.1f} ms"
    cores = f", on {run.head.host.num_cores} cores that the server has too" if found.shares_cores else ""
    return [
        Text(
            f"the generator was late by {late} (n = {found.num_timed}) and took {found.cpu_share:.0%} of a core{cores}"
        )
    ]


def _figures(run: RunDocument) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column("")
    for name in ("n", "p50", "95 % interval", "p90", "p95", "95 % interval", "p99", "max"):
        table.add_column(name, justify="right")
    for name, s in run.stages.items():
        p50, p95 = _interval(name, s.p50_low, s.p50_high), _interval(name, s.p95_low, s.p95_high)
        first, *rest = (shown_value(name, value) for value in (s.p50, s.p90, s.p95, s.p99, s.maximum))
        table.add_row(Text(label(name)), str(s.n), first, p50, *rest[:2], p95, *rest[2:])
    return table


def _rates(run: RunDocument) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column("")
    for name in ("n", "share", "95 % interval"):
        table.add_column(name, justify="right")
    for name, rate in rates(run).items():
        if rate.num_trials:
            share = wilson(rate.num_hits, rate.num_trials)
            interval = f"{share.low:.1%} .. {share.high:.1%}"
            table.add_row(Text(label(name)), f"{rate.num_hits}/{rate.num_trials}", f"{share.value:.1%}", interval)
    return table


def _interval(name: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "too few"
    return f"{shown_value(name, low).removesuffix(' ms')} .. {shown_value(name, high)}"
