from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, Group

from load.report.live import MAX_REASONS, MAX_VALUES, Tally, live_table, shown, summary
from load.report.validity import judge
from tests.load.report.runs import call_run, request_run


def text_of(shown_thing: object, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(shown_thing)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_tally_counts_what_runs_and_what_has_ended() -> None:
    tally = Tally(num_planned=3)
    for _ in range(3):
        tally.begin()
    tally.end("completed")
    tally.end("refused")
    tally.observe("latency_s", 0.5)
    tally.observe("latency_s", 0.7)
    shown_text = text_of(live_table(tally))
    assert "1 running, 1 completed, 1 refused" in shown_text
    assert "600 ms" in shown_text
    assert tally.num_ended == 2


def test_live_values_are_bounded_and_the_latest() -> None:
    tally = Tally(num_planned=1)
    for i in range(5 * MAX_VALUES):
        tally.observe("ttft_s", float(i))
    assert len(tally.values["ttft_s"]) < 2 * MAX_VALUES
    assert tally.values["ttft_s"][-1] == 5 * MAX_VALUES - 1


def test_a_terminal_shows_progress_and_a_pipe_nothing() -> None:
    for is_terminal in (True, False):
        file = io.StringIO()
        tally = Tally(num_planned=2)
        with shown(tally, "calls", Console(file=file, force_terminal=is_terminal, width=100)):
            tally.begin()
            tally.observe("latency_s", 0.5)
            tally.end("completed")
        assert ("1/2" in file.getvalue() and "500 ms" in file.getvalue()) is is_terminal
        assert bool(file.getvalue()) is is_terminal


def test_a_summary_has_every_figure_with_interval_and_every_rate() -> None:
    found = text_of(summary(call_run()))
    assert "server: LLM first token" in found
    assert "answered within 700 ms" in found
    assert "calls refused" in found
    assert " .. " in found


def test_figures_that_are_no_times_are_shown_as_they_are() -> None:
    found = text_of(summary(request_run()))
    line = next(line for line in found.splitlines() if "cached tokens" in line)
    assert "512" in line
    assert "ms" not in line


def test_text_of_a_server_is_shown_and_not_obeyed() -> None:
    run = call_run()
    assert run.validity is not None
    named = replace(run, stages={"server.[red]x[/wrong]_s": run.stages["latency_s"]})
    assert "[red]x[/wrong]" in text_of(summary(named))


@pytest.mark.parametrize("field", ["invalid", "incomplete"])
def test_a_summary_of_what_cannot_be_trusted_says_so_first(field: str) -> None:
    run = call_run()
    late = judge([1.0], 0.1, 60.0, shares_cores=False, num_cores=2)
    run = replace(run, validity=late) if field == "invalid" else replace(run, is_complete=False)
    group = summary(run)
    assert isinstance(group, Group)
    assert text_of(group).splitlines()[0].startswith(field.upper())


def test_a_summary_says_why_calls_and_requests_were_lost() -> None:
    run = call_run()
    lost = replace(run.calls[0], outcome="broken", reason="the line was closed: \x1b[2J")
    found = text_of(summary(replace(run, calls=(lost, lost, *run.calls[2:]))))
    assert "2 broken: the line was closed: \\x1b[2J" in found
    many = tuple(replace(lost, reason=f"reason {n}") for n in range(MAX_REASONS + 1))
    assert text_of(summary(replace(run, calls=many))).count("broken: reason") == MAX_REASONS
    assert "refused: " in text_of(summary(request_run()))
