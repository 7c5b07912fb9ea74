"""What scenarios expected and what was so, as a table; text of servers and callers is shown as it is."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from load.harmless import harmless
from load.report.document import RunDocument


def verdict_table(run: RunDocument) -> Group:
    """Each expectation of each scenario, and how many that were played met all of theirs."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "scenario", "call", "line", "step", "expected", "found"):
        table.add_column(heading, overflow="fold")
    for verdict in run.verdicts:
        mark = Text("ok", "green") if verdict.passed else Text("NO", "bold red")
        line = "" if verdict.line is None else str(verdict.line)
        cells = (verdict.scenario, str(verdict.call), line, verdict.step, verdict.check, verdict.found)
        table.add_row(mark, *(Text(harmless(cell)) for cell in cells))
    played = {verdict.call for verdict in run.verdicts}
    failed = {verdict.call for verdict in run.verdicts if not verdict.passed}
    told = [Text(f"{len(played) - len(failed)} of {len(played)} scenarios that were played went as expected")]
    if run.validity is not None and not run.validity.is_valid:
        told.append(Text("but the run is INVALID, see above", "bold red"))
    return Group(table, *told)
