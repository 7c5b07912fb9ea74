from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from load.errors import LoadError
from load.report.document import read_run
from load.report.measures import stages
from load.report.writer import REWRITE_S, RunWriter
from tests.load.report.runs import call_run, head, request_run


def test_a_closed_run_reads_back_with_its_statistics(tmp_path: Path) -> None:
    run = call_run()
    writer = RunWriter(tmp_path / "new" / "run.json", run.head)
    for call in run.calls:
        writer.add_call(call, [turn for turn in run.turns if turn.call == call.number], now=call.scheduled_s)
    for step in run.capacity:
        writer.add_capacity(step, now=100.0)
    assert run.validity is not None
    assert run.duration_s is not None
    closed = writer.close(run.validity, run.duration_s, is_complete=True)
    assert closed == run
    assert read_run(tmp_path / "new" / "run.json") == run
    assert closed.stages == stages(run)


def test_results_so_far_are_on_disk_while_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    run = request_run()
    writer = RunWriter(path, run.head)
    writer.add_request(run.requests[0], now=0.0)
    writer.add_request(run.requests[1], now=0.9 * REWRITE_S)
    assert [r.number for r in read_run(path).requests] == [0]
    writer.add_request(run.requests[2], now=1e6)
    so_far = read_run(path)
    assert [r.number for r in so_far.requests] == [0, 1, 2]
    assert (so_far.is_complete, so_far.n, so_far.validity) == (False, 3, None)
    assert os.listdir(tmp_path) == ["run.json"]


def test_a_run_that_breaks_off_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    run = call_run()
    writer = RunWriter(tmp_path / "run.json", run.head)
    writer.add_call(run.calls[0], run.turns[:2], now=0.0)
    assert run.validity is not None
    writer.close(run.validity, 3.0, is_complete=False)
    kept = read_run(tmp_path / "run.json")
    assert not kept.is_complete
    assert kept.turns == run.turns[:2]
    assert kept.stages == stages(kept) != {}


def test_an_older_result_is_there_until_the_new_run_has_one(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("older")
    writer = RunWriter(path, head())
    assert path.read_text() == "older"
    writer.add_call(call_run().calls[0], [], now=0.0)
    assert read_run(path).n == 0


def test_what_cannot_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "run.json"):
        with pytest.raises(LoadError) as failed:
            RunWriter(path, head())
        assert "--json" in failed.value.hint


def test_a_figure_that_is_no_number_is_never_written(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run.json", head("chat"))
    broken = dataclasses.replace(request_run(1).requests[0], figures={"ttft_s": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer.add_request(broken, now=0.0)


@pytest.mark.parametrize("name", ["", "folder", "fifo", "n" * 300])
def test_what_is_no_file_is_not_replaced_by_one(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(LoadError):
        RunWriter(tmp_path / name if name else Path(name), head())
    assert (tmp_path / "fifo").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder"]
