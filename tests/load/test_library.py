from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from rich.console import Console

from load import library
from load.errors import LoadError
from load.speech.corpus import packaged

CORPUS = packaged()


def run(*flags: str) -> str:
    parser = argparse.ArgumentParser()
    library.add_flags(parser)
    console = Console(file=io.StringIO(), width=200)
    assert library.run(parser.parse_args(flags), console) == 0
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_packaged_scenario_is_found_by_its_name() -> None:
    assert library.find("short-yes-is-answered", CORPUS).name == "short-yes-is-answered"


def test_a_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nabout: Mine.\nsteps: [say: doctor/1]\n")
    assert library.find(str(path), CORPUS).name == "mine"


@pytest.mark.parametrize(
    ("name", "problem", "hint"),
    [
        ("short-yes-is-anwsered", "no scenario 'short-yes-is-anwsered'", "did you mean 'short-yes-is-answered'?"),
        ("zzz", "no scenario 'zzz'", "offhook load scenarios lists them"),
        ("there/is/none.yaml", "none.yaml: cannot read", ""),
    ],
)
def test_a_scenario_that_is_not_there_is_one_line(name: str, problem: str, hint: str) -> None:
    with pytest.raises(LoadError, match=problem) as caught:
        library.find(name, CORPUS)
    assert caught.value.hint == hint


def test_a_broken_file_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nabout: Mine.\nsteps: [sya: doctor/1]\n")
    with pytest.raises(LoadError, match=r"mine\.yaml:3: steps\[0\]\.sya: unknown step; did you mean 'say'\?"):
        run(str(path))


def test_a_scenario_may_say_recordings(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nabout: Mine.\nsteps: [say: hi-there]\n")
    with pytest.raises(LoadError, match="no utterance 'hi-there'"):
        run(str(path))
    soundfile.write(tmp_path / "hi-there.wav", np.tile([0.5, -0.5], 4000), 16000)
    (tmp_path / "hi-there.txt").write_text("Hello.")
    assert "Mine." in run(str(path), "--recordings", str(tmp_path))


@pytest.mark.slow
def test_all_are_listed_with_what_must_be_true() -> None:
    told = run()
    assert len(told.splitlines()) == len(library.packaged_paths()) + 1
    assert "A single word that means it takes the turn." in told


def test_one_can_be_asked_for() -> None:
    [_, line] = run("one-short-word-interrupts").splitlines()
    assert line.split()[:3] == ["one-short-word-interrupts", "all", "2"]


@pytest.mark.parametrize("name", ["slow-model-gets-a-filler", "killed-voice-costs-one-turn"])
def test_those_that_only_a_stack_of_ours_can_play_say_so(name: str) -> None:
    [_, line] = run(name).splitlines()
    assert line.split()[:3] == [name, "all", "--start"]
