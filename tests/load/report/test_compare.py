from __future__ import annotations

import argparse
import io
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from load.errors import LoadError
from load.report import compare as command
from load.report.compare import compare, comparison_table, obstacles
from load.report.document import RunDocument
from load.report.validity import judge
from tests.load.report.runs import call_run, head, request_run


@pytest.mark.slow
def test_a_slower_run_is_shown_to_be_worse_and_the_other_way_round_better() -> None:
    a, b = call_run(30), call_run(30, seed=2, slower_s=0.2)
    row = next(r for r in compare(a, b).rows if (r.name, r.kind) == ("latency_s", "p50"))
    assert row.change.value == pytest.approx(0.2, abs=0.1)
    assert row.verdict == "worse"
    back = next(r for r in compare(b, a).rows if (r.name, r.kind) == ("latency_s", "p50"))
    assert back.verdict == "better"
    share = next(r for r in compare(a, b).rows if r.name == "on_time")
    assert share.change.value < 0
    assert share.verdict == "worse"


def test_a_run_does_not_differ_from_itself() -> None:
    rows = compare(call_run(), call_run()).rows
    assert {row.change.value for row in rows} == {0}
    assert {row.verdict for row in rows} <= {"no difference shown", "too few"}


def test_requests_are_compared_by_their_figures() -> None:
    rows = compare(request_run(), request_run(seed=2)).rows
    assert {(row.name, row.kind) for row in rows} >= {("ttft_s", "p50"), ("ttft_s", "p95"), ("refused", "share")}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda run: replace(run, head=head(scenario="barge in")), "scenarios 'plain questions' and 'barge in'"),
        (lambda run: replace(run, head=replace(run.head, transport="webrtc")), "transports 'websocket' and 'webrtc'"),
        (
            lambda run: replace(run, head=replace(run.head, plan=replace(run.head.plan, parameters={"rate_hz": 2}))),
            "arrivals",
        ),
        (lambda run: replace(run, is_complete=False), "B broke off"),
        (
            lambda run: replace(run, validity=judge([1.0], 0, 60.0, shares_cores=False, num_cores=1)),
            "B is invalid",
        ),
    ],
)
def test_what_is_not_comparable_is_refused_unless_told(change: object, problem: str) -> None:
    assert callable(change)
    a, b = call_run(), change(call_run())
    with pytest.raises(LoadError, match=problem) as refused:
        compare(a, b)
    assert "--anyway" in refused.value.hint
    assert any(problem in remark for remark in compare(a, b, anyway=True).remarks)


def test_runs_of_two_kinds_have_nothing_to_compare_even_if_told() -> None:
    with pytest.raises(LoadError, match="no figure in common"):
        compare(call_run(), request_run(), anyway=True)


def test_other_hosts_and_commits_are_remarked_and_allowed() -> None:
    a = call_run()
    b = replace(a, head=replace(a.head, commit="def456", host=replace(a.head.host, num_cores=64)))
    assert obstacles(a, b) == []
    assert len(compare(a, b).remarks) == 2


@pytest.mark.slow
def test_the_command_prints_a_table_of_two_files(tmp_path: Path) -> None:
    for name, run in (("a", call_run(20)), ("b", call_run(20, seed=2, slower_s=0.3))):
        (tmp_path / f"{name}.json").write_text(json.dumps(asdict(run)))
    parser = argparse.ArgumentParser()
    command.add_flags(parser)
    file = io.StringIO()
    arguments = parser.parse_args([str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert command.run(arguments, Console(file=file, width=200)) == 0
    line = next(line for line in file.getvalue().splitlines() if line.split()[:2] == ["latency", "p50"])
    assert "worse" in line
    assert " ms .. +" in line


def test_too_few_calls_have_no_verdict() -> None:
    def few(run: RunDocument) -> RunDocument:
        return replace(run, turns=tuple(turn for turn in run.turns if turn.call < 2))

    found = compare(few(call_run()), few(call_run(seed=2)))
    assert {row.verdict for row in found.rows if row.name == "latency_s"} == {"too few"}
    console = Console(file=io.StringIO(), width=200)
    console.print(comparison_table(found))
