from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest
import soundfile
from rich.console import Console

from load.errors import LoadError
from load.speech import command
from tests.load.speech.waves import words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("first", "second")):
        soundfile.write(tmp_path / f"{name}.wav", words([0.3, 0.4, 0.2 + number / 10], 22050).pcm, 22050)
        (tmp_path / f"{name}.txt").write_text("one two three")
    return tmp_path


def run(*flags: str) -> str:
    parser = argparse.ArgumentParser()
    command.add_flags(parser)
    console = Console(file=io.StringIO(), width=200)
    assert command.run(parser.parse_args(flags), console) == 0
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_recordings_are_listed_with_the_ends_of_their_speech(folder: Path) -> None:
    lines = run("--recordings", str(folder)).splitlines()
    assert [line.split()[0] for line in lines] == ["first", "second"]
    assert lines[0].split() == ["first", "0.30", "to", "1.30", "s", "one", "two", "three"]


def test_what_a_delivery_makes_of_it_can_be_heard(folder: Path) -> None:
    out = folder / "made"
    delivery = "{speed: 1.25, num_pauses: 1, min_pause_ms: 600, max_pause_ms: 600, telephone: alaw}"
    flags = ("second", "--recordings", str(folder), "--out", str(out), "--rate", "8000", "--delivery", delivery)
    told = run(*flags)
    audio, rate_hz = soundfile.read(out / "second.wav")
    assert sorted(path.name for path in out.iterdir()) == ["second.txt", "second.wav"]
    assert (out / "second.txt").read_text() == "one two three\n"
    assert rate_hz == 8000
    assert audio.size / rate_hz == pytest.approx((0.3 + 0.3 + 0.4 + 0.3 + 0.1 + 0.4) / 1.25 + 0.6, abs=0.01)
    first = (out / "second.wav").read_bytes()
    assert run(*flags) == told
    assert (out / "second.wav").read_bytes() == first


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["third"], "no utterance 'third'"),
        (["--delivery", "{sped: 1}"], r"--delivery\.sped: unknown key; did you mean 'speed'\?"),
        (["--delivery", "{speed: 7}"], "speed and pitch must be"),
        (["--delivery", "{"], "--delivery: not YAML"),
        (["--delivery", "[1]"], "--delivery: expected a mapping"),
        (["--delivery", "{num_fillers: 1}"], "no fillers among the recordings"),
        (["--rate", "100"], "--rate must be"),
        (["--seed", "-1"], "--seed must"),
    ],
)
def test_a_mistake_is_one_line(folder: Path, flags: list[str], problem: str) -> None:
    with pytest.raises(LoadError, match=problem) as caught:
        run("--recordings", str(folder), *flags)
    assert "\n" not in str(caught.value)


def test_a_voice_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    with pytest.raises(LoadError, match=r"no voice service at http://127\.0\.0\.1:9"):
        run("--voice-url", "http://127.0.0.1:9")
