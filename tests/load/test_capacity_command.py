"""`offhook load capacity` before an agent without a mind."""

from __future__ import annotations

from pathlib import Path

import pytest

from load.__main__ import main
from load.report.document import read_run
from tests.load.null_server import null_server
from tests.load.test_run import scenario
from tests.speech import clip_paths

pytestmark = pytest.mark.slow


def capacity(*flags: str, url: str, folder: Path) -> int:
    recordings = str(clip_paths("en")[0].parent)
    flags = (scenario(folder), *flags, "--url", url, "--recordings", recordings, "--no-recognition")
    return main(["capacity", *flags, "--json", str(folder / "run.json")], "offhook load")


def test_a_server_that_answers_everybody_carries_at_least_as_many_as_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--max", "2", "--repeats", "1", "--for", "1", "--budget-ms", "2000")
    with null_server(answer_after_s=0.3) as url:
        capacity(*flags, url=url, folder=tmp_path)
    assert "at least 2 calls at once" in capsys.readouterr().out
    found = read_run(tmp_path / "run.json")
    assert [step.num_concurrent for step in found.capacity] == [1, 2]
    assert sum(step.num_turns for step in found.capacity) == found.n == len(found.turns)
    assert len({call.number for call in found.calls}) == len(found.calls)


def test_a_server_that_answers_too_late_carries_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with null_server(answer_after_s=0.8) as url:
        capacity("--max", "4", "--repeats", "1", "--for", "1", "--budget-ms", "500", url=url, folder=tmp_path)
    assert "not one call within the budget" in capsys.readouterr().out
    assert [step.num_concurrent for step in read_run(tmp_path / "run.json").capacity] == [1]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--max", "0"], "--max must be above 0"),
        (["--for", "-1"], "--for must be above 0"),
        (["--repeats", "0"], "--repeats"),
    ],
)
def test_a_wrong_number_is_one_clear_line(
    flags: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert capacity(*flags, url="ws://127.0.0.1:9/", folder=tmp_path) == 1
    assert says in capsys.readouterr().err
