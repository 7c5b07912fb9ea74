from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest
from rich.console import Console

from load.errors import LoadError
from load.traces import files
from load.traces.files import read_trace
from tests.load.traces.test_recorded import AZURE, MOONCAKE


def command(*words: str) -> str:
    parser = argparse.ArgumentParser()
    files.add_flags(parser)
    file = io.StringIO()
    assert files.run(parser.parse_args(words), Console(file=file, width=300)) == 0
    return file.getvalue()


def test_the_format_of_a_trace_is_seen_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text("".join(MOONCAKE))
    (tmp_path / "a.csv").write_text("".join(AZURE))
    command("--out", str(tmp_path / "v.jsonl"), "--num-calls", "2", "--seed", "7")
    assert [len(read_trace(tmp_path / name).requests) for name in ("m.jsonl", "a.csv")] == [3, 2]
    assert read_trace(tmp_path / "v.jsonl").seed == 7


def test_the_command_writes_a_trace_and_says_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "calls.jsonl"
    said = command("--out", str(path), "--num-calls", "5")
    num_requests = len(read_trace(path).requests)
    assert f"{num_requests} requests of 5 calls" in said
    assert len(path.read_text().splitlines()) == num_requests + 1


def test_every_parameter_is_explained() -> None:
    parser = argparse.ArgumentParser()
    files.add_flags(parser)
    assert " N (default" not in " ".join(parser.format_help().split())


def test_a_range_that_is_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="min_turns 9 to max_turns 3"):
        command("--out", str(tmp_path / "x"), "--min-turns", "9", "--max-turns", "3")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{}\n"])
def test_a_file_that_is_no_trace_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(LoadError, match=r"x\.jsonl"):
        read_trace(path)


def test_a_missing_file_is_one_line_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="No such file") as failed:
        read_trace(tmp_path / "none.jsonl")
    assert "offhook load trace" in failed.value.hint
