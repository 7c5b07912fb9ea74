"""What scenarios expected and what was so, as a table; text of servers and callers is shown as it is."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from load.harmless import harmless
from load.report.document import RunDocument


def verdict_table(run: RunDocument) -> Group:
    """Each expectation of each scenario, and how many scenarios met all of theirs."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "scenario", "step", "expected", "found"):
        table.add_column(heading, overflow="fold")
    for verdict in run.verdicts:
        mark = Text("ok", "green") if verdict.passed else Text("NO", "bold red")
        cells = (verdict.scenario, verdict.step, verdict.check, verdict.found)
        table.add_row(mark, *(Text(harmless(cell)) for cell in cells))
    names = dict.fromkeys(verdict.scenario for verdict in run.verdicts)
    failed = {verdict.scenario for verdict in run.verdicts if not verdict.passed}
    return Group(table, Text(f"{len(names) - len(failed)} of {len(names)} scenarios were as expected"))
