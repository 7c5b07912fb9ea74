"""The whole stack as a user starts it: real processes, real models, one real call."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.paths import DEFAULT_PROFILE, offhook
from deploy.up import address_line
from load.alignment import word_error_rate
from tests.deploy.test_profile import STT, VOICE, profile_of
from tests.serving import free_ports
from tests.speech import clip_paths
from wire.weights import cache_dir

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
OFFHOOK = (sys.executable, "-m", "deploy")
READY_WITHIN_S = 120.0  # a first start splits graphs
ENDS_WITHIN_S = 60.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The weights of the real cache, logs of our own."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("models", "derived"):
        (cache_dir() / name).mkdir(parents=True, exist_ok=True)
        (cache / name).symlink_to(cache_dir() / name)
    return {**os.environ, "OFFHOOK_CACHE": str(cache)}


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """The default profile on free ports."""
    text = DEFAULT_PROFILE.read_text()
    ports = sorted(set(re.findall(r"\b8\d{3}\b", text)))
    for port, free in zip(ports, free_ports(len(ports)), strict=True):
        text = re.sub(rf"\b{port}\b", str(free), text)
    path = tmp_path / "profile.yaml"
    path.write_text(text)
    return path


@contextmanager
def _up(profile: Path, environment: dict[str, str], *flags: str) -> Iterator[subprocess.Popen[str]]:
    command = (*OFFHOOK, "up", "--profile", str(profile), *flags)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_up_takes_a_call_answers_it_and_leaves_nothing(
    profile: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    wav = min(clip_paths("en"), key=lambda path: path.stat().st_size)
    with _up(profile, environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), process.stderr.read()
        url = line.rpartition("--url ")[2].strip()
        out = tmp_path / "call.wav"
        command = (*OFFHOOK, "call", "--wav", str(wav), "--url", url, "--out", str(out), "--json")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=READY_WITHIN_S, check=False)
        assert done.returncode == 0, done.stderr
        process.send_signal(signal.SIGTERM)
        process.wait(ENDS_WITHIN_S)
        log = process.stderr.read()
    assert process.returncode == 0, log
    (turn,) = json.loads(done.stdout)["turns"]
    assert turn["outcome"] == "answered"
    assert word_error_rate(wav.with_suffix(".txt").read_text(), turn["transcript"]) < 0.5
    assert turn["answer"].strip()
    assert turn["heard"].strip()
    assert turn["stages_ms"]
    assert out.stat().st_size > 0
    started = [int(pid) for pid in re.findall(r"\(pid (\d+)\)", log)]
    assert len(started) == 5
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("edge", "line"),
    [
        (
            "{port: 8080}",
            "http://127.0.0.1:8080/   call it: offhook call --wav FILE --url ws://127.0.0.1:8080/v1/calls",
        ),
        (
            "{port: 9000, host: 0.0.0.0, api_key_file: /etc/my keys/calls}",
            "http://127.0.0.1:9000/   call it: offhook call --wav FILE --url ws://127.0.0.1:9000/v1/calls "
            "--key-file '/etc/my keys/calls'",
        ),
    ],
)
def test_address_line_names_the_page_and_a_call_that_works(tmp_path: Path, edge: str, line: str) -> None:
    profile = profile_of(tmp_path, VOICE.replace("{port: 8080}", edge))
    assert address_line(profile) == line.replace("offhook", offhook(), 1)


def test_address_line_without_call_server_names_the_first_process(tmp_path: Path) -> None:
    assert address_line(profile_of(tmp_path, STT)) == "http://127.0.0.1:8101/"


def test_process_that_cannot_start_ends_up_with_its_reason(profile: Path, environment: dict[str, str]) -> None:
    profile.write_text(profile.read_text().replace("id: whisper-base", "id: silero-vad"))
    logs = profile.parent / "my logs"
    with _up(profile, environment, "--logs", str(logs)) as process:
        out, err = process.communicate(timeout=READY_WITHIN_S)
    assert process.returncode == 1
    assert f"all of its log: {logs / 'stt.log'}" in err
    assert out == ""
    assert "stt ended with exit code 1 before it was ready" in err
    assert "cannot load Whisper" in err
