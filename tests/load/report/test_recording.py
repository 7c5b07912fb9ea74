from __future__ import annotations

import argparse
import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from load.errors import LoadError
from load.report.document import Plan, read_run
from load.report.recording import Recording, add_result_flags, conclude, head_of, recording
from tests.load.report.runs import request_run


def arguments(tmp_path: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_result_flags(parser, "chat")
    found = parser.parse_args(["--json", str(tmp_path / "run.json"), "--seed", "5"])
    found.command_line = "offhook load chat --seed 5"
    return found


def test_a_run_that_ends_is_complete_and_says_where_it_came_from(tmp_path: Path) -> None:
    asked = arguments(tmp_path)
    head = head_of(asked, "chat", target="t", scenario="s", transport="http", plan=Plan("trace", {}, 2))
    with recording(asked.json, head, "requests", shares_cores=True) as found:
        found.late_s += [0.001, 0.002]
        found.writer.add_request(request_run(1).requests[0], found.now())
    file = io.StringIO()
    assert conclude(found, asked, Console(file=file, width=200)) == 0
    run = read_run(asked.json)
    assert run == found.run
    assert run.is_complete
    assert (run.head.seed, run.head.command) == (5, "offhook load chat --seed 5")
    assert run.head.commit
    assert run.head.host.num_cores >= 1
    assert str(asked.json) in file.getvalue()


def test_a_run_that_breaks_off_keeps_its_results_and_its_error(tmp_path: Path) -> None:
    asked = arguments(tmp_path)
    head = head_of(asked, "chat", target="t", scenario="s", transport="http", plan=Plan("trace", {}, 2))

    def interrupted() -> None:
        with recording(asked.json, head, "requests", shares_cores=True) as found:
            found.writer.add_request(request_run(1).requests[0], found.now())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    run = read_run(asked.json)
    assert not run.is_complete
    assert run.n == 1
    assert run.stages


def test_a_run_that_is_not_valid_ends_with_an_error_code(tmp_path: Path) -> None:
    asked = arguments(tmp_path)
    head = head_of(asked, "chat", target="t", scenario="s", transport="http", plan=Plan("trace", {}, 1))
    with recording(asked.json, head, "requests", shares_cores=False) as found:
        found.late_s.append(0.5)
        found.writer.add_request(request_run(1).requests[0], found.now())
    file = io.StringIO()
    assert conclude(found, asked, Console(file=file, width=200)) == 1
    assert "INVALID" in file.getvalue()


def test_a_result_that_can_no_longer_be_written_ends_the_run_with_one_line(tmp_path: Path) -> None:
    asked = arguments(tmp_path / "gone")
    head = head_of(asked, "chat", target="t", scenario="s", transport="http", plan=Plan("trace", {}, 1))

    async def run() -> None:
        with recording(asked.json, head, "requests", shares_cores=True) as found:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(write(found))

    async def write(found: Recording) -> None:
        (tmp_path / "gone").rmdir()
        (tmp_path / "gone").write_text("in the way")
        found.writer.add_request(request_run(1).requests[0], found.now())

    with pytest.raises(LoadError, match="cannot write"):
        asyncio.run(run())


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", ""])
def test_a_seed_that_is_none_is_refused(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_result_flags(parser, "chat")
    with pytest.raises(SystemExit):
        parser.parse_args([f"--seed={seed}"])
    assert "whole number" in capsys.readouterr().err
