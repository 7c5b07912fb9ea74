"""`offhook load run` before an agent without a mind, with recorded speech."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from load.__main__ import main
from load.report.document import RunDocument, read_run
from tests.load.null_server import null_server
from tests.speech import clip_paths

pytestmark = pytest.mark.slow
SCENARIO = """\
name: ask
about: A question is answered.
steps:
  - say: {clip}
  - wait_for_answer: end
  - expect: {{within_ms: {within_ms}, outcome: answered}}
"""


@pytest.fixture(scope="module")
def agent() -> Iterator[str]:
    with null_server(answer_after_s=0.45) as url:
        yield url


@pytest.fixture
def recordings() -> str:
    return str(clip_paths("en")[0].parent)


def scenario(folder: Path, within_ms: int = 1500) -> str:
    path = folder / "ask.yaml"
    clip = min(clip_paths("en"), key=lambda found: found.stat().st_size).stem
    path.write_text(SCENARIO.format(clip=clip, within_ms=within_ms))
    return str(path)


def kept(folder: Path, status: int) -> RunDocument:
    """The result; a busy machine makes a run invalid, which its status tells."""
    found = read_run(folder / "run.json")
    assert found.validity is not None
    assert status == (0 if found.validity.is_valid else 1)
    return found


def run(*flags: str, url: str, recordings: str, folder: Path) -> int:
    result = str(folder / "run.json")
    return main(
        ["run", *flags, "--url", url, "--recordings", recordings, "--no-recognition", "--json", result], "offhook load"
    )


def test_a_scenario_is_played_and_everything_of_it_is_kept(
    agent: str, recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = (scenario(tmp_path), "--calls", "3", "--at-once", "3", "--wav", str(tmp_path / "wav"))
    found = kept(tmp_path, run(*flags, url=agent, recordings=recordings, folder=tmp_path))

    assert (found.is_complete, found.n, len(found.calls)) == (True, 3, 3)
    assert {call.outcome for call in found.calls} == {"completed"}
    assert [verdict.passed for verdict in found.verdicts] == [True] * 6
    assert all(turn.latency_s == pytest.approx(0.45, abs=0.2) for turn in found.turns)
    shown = capsys.readouterr().out
    assert "3 of 3 scenarios that were played went as expected" in shown
    assert "the generator was late by p50" in shown
    heard, rate_hz = soundfile.read(sorted((tmp_path / "wav").glob("*.wav"))[0])
    assert heard.shape[1] == 2
    assert heard.shape[0] / rate_hz > 2


def test_an_expectation_that_is_not_met_fails_the_run(
    agent: str, recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(scenario(tmp_path, within_ms=100), url=agent, recordings=recordings, folder=tmp_path) == 1
    assert "0 of 1 scenarios that were played went as expected" in capsys.readouterr().out
    verdicts = json.loads((tmp_path / "run.json").read_text())["verdicts"]
    assert [verdict["passed"] for verdict in verdicts] == [False, True]
    lines = (tmp_path / "ask.yaml").read_text().splitlines()
    assert "expect" in lines[verdicts[0]["line"] - 1]


def test_a_seed_gives_its_calls_again_and_caller_n_is_the_first_of_a_run_with_that_seed(
    agent: str, recordings: str, tmp_path: Path
) -> None:
    files = [str(tmp_path / f"{name}.yaml") for name in ("one", "two")]
    for file in files:
        Path(file).write_text(f"name: {Path(file).stem}\nabout: a test\nsteps: [{{noise: 100}}]\n")

    def calls(seed: str) -> list[tuple[int, str, int]]:
        run(*files, "--calls", "3", "--seed", seed, url=agent, recordings=recordings, folder=tmp_path)
        return [(call.number, call.scenario, call.seed) for call in read_run(tmp_path / "run.json").calls]

    first = calls("4")
    assert [scenario for _, scenario, _ in first] == ["one", "two", "one"]
    assert calls("4") == first
    assert [call[1:] for call in calls("5")[:2]] == [call[1:] for call in first[1:]]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["no-such-scenario"], "no scenario 'no-such-scenario'"),
        (["slow-model-gets-a-filler"], "no utterance 'opening-hours'"),
        (["--fault", "{kind: los}"], "did you mean 'loss'?"),
        (["--caller", "{speed: 9}"], "speed and pitch must be 0.5 to 2"),
        (["--caller", "variedd"], "'variedd' is no way to speak"),
        (["--caller", "{speed}"], "--caller"),
        (["--transport", "webrtc"], "calls over webrtc go to an address with http://"),
        (["--calls", "0"], "--calls must be 1 to"),
        ([], "there are no dialogues among the recordings"),
    ],
)
def test_a_wrong_command_is_one_clear_line(
    flags: list[str],
    says: str,
    agent: str,
    recordings: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = [scenario(tmp_path), *flags] if flags and flags[0].startswith("-") else flags
    assert run(*named, url=agent, recordings=recordings, folder=tmp_path) == 1
    [error] = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
    assert says in error
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["no-such-scenario"], "no scenario 'no-such-scenario'"),
        (["--fault", "{kind: los}"], "did you mean 'loss'?"),
        (["--fault", "{kind: llm_stall}"], "start one: --start PROFILE"),
        (["--caller", "variedd"], "did you mean 'varied'?"),
        (["--caller", "{num_fillers: 1}"], "record one of: uh"),
        (["--caller", "varied"], "record one of: uh"),
    ],
)
def test_what_cannot_be_played_is_told_before_anybody_is_called(
    flags: list[str], says: str, recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = flags if not flags[0].startswith("-") else [scenario(tmp_path), *flags]
    assert run(*named, url="ws://127.0.0.1:9/v1/calls", recordings=recordings, folder=tmp_path) == 1
    told = capsys.readouterr().err
    assert says in told
    assert "no call server" not in told


def test_a_fault_of_a_stage_needs_a_stack_that_the_run_starts(
    agent: str, recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = (scenario(tmp_path), "--fault", "{kind: llm_stall}")
    assert run(*flags, url=agent, recordings=recordings, folder=tmp_path) == 1
    assert "start one: --start PROFILE" in capsys.readouterr().err


def test_nobody_there_is_told_before_anything_is_made(
    recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(scenario(tmp_path), url="ws://127.0.0.1:9/v1/calls", recordings=recordings, folder=tmp_path) == 1
    told = capsys.readouterr().err
    assert "no call server at ws://127.0.0.1:9/v1/calls: Connection refused" in told
    assert "start one: offhook up" in told


def test_a_command_line_that_is_no_text_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--json", "a\udcff.json"], "offhook load") == 1
    assert "no UTF-8: 'a\\udcff.json'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--wav", "--html"])
def test_where_results_cannot_be_written_is_told_before_anybody_calls(
    flag: str, agent: str, recordings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    status = run(
        scenario(tmp_path), flag, str(tmp_path / "file" / "x"), url=agent, recordings=recordings, folder=tmp_path
    )
    assert status == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
    assert not (tmp_path / "run.json").exists()


def test_a_run_that_is_terminated_keeps_its_results_and_its_audio(agent: str, recordings: str, tmp_path: Path) -> None:
    result = tmp_path / "run.json"
    flags = ("--url", agent, "--recordings", recordings, "--no-recognition", "--json", str(result))
    command = ("run", scenario(tmp_path), "--calls", "50", "--wav", str(tmp_path / "wav"), *flags)
    with subprocess.Popen([sys.executable, "-m", "load", *command]) as process:
        until_s = time.monotonic() + 60.0
        while not result.exists() and time.monotonic() < until_s:
            time.sleep(0.05)
        process.terminate()
        time.sleep(0.01)
        process.terminate()
        assert process.wait(30) in (130, -signal.SIGTERM)  # the second may come when it is all over
    found = read_run(result)
    assert not found.is_complete
    assert found.validity is not None
    assert found.calls
    assert {path.name for path in (tmp_path / "wav").glob("*.wav")} >= {
        f"call-{call.number:04d}.wav" for call in found.calls
    }


def test_an_error_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--no-recognition", "--url", "ws://127.0.0.1:1/\x1b[2J"], "offhook load") == 1
    assert "\x1b" not in capsys.readouterr().err
