"""`python -m tts_engine` as a process: what it says when it cannot start, and that it drains."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.tts_engine.conftest import MODEL
from wire.weights import cache_dir

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROFILE = "tts_engine:\n  edge: {{port: {port}}}\n  voices:\n    - {{id: joe, model: {model}}}\n{more}"


def start(tmp_path: Path, cache: Path, *, port: int = 0, model: str = MODEL, more: str = "") -> subprocess.Popen[str]:
    profile = tmp_path / "profile.yaml"
    profile.write_text(PROFILE.format(port=port, model=model, more=more))
    command = [sys.executable, "-m", "tts_engine", "--profile", str(profile)]
    environment = {**os.environ, "OFFHOOK_CACHE": str(cache)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.splitlines()


def copy_of_the_cache(tmp_path: Path) -> Path:
    cache = tmp_path / "cache"
    for model in (MODEL, "lexicon-en-us"):
        shutil.copytree(cache_dir() / "models" / model, cache / "models" / model)
    return cache


def test_a_corrupt_model_is_one_clear_line(tmp_path: Path):
    cache = copy_of_the_cache(tmp_path)
    graph = cache / "models" / MODEL / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:1_000_000])

    code, [line] = outcome(start(tmp_path, cache))
    assert code == 1
    assert str(graph) in line


def test_a_corrupt_lexicon_is_one_clear_line(tmp_path: Path):
    cache = copy_of_the_cache(tmp_path)
    lexicon = cache / "models/lexicon-en-us/us_gold.json"
    lexicon.write_text("{")

    code, [line] = outcome(start(tmp_path, cache))
    assert code == 1
    assert str(lexicon) in line


def test_a_model_that_was_not_pulled_says_how_to_pull_it(tmp_path: Path):
    code, [line] = outcome(start(tmp_path, cache_dir(), model="nobody"))

    assert code == 1
    assert "offhook models pull nobody" in line


def test_an_unknown_key_names_file_and_line(tmp_path: Path):
    code, [line] = outcome(start(tmp_path, cache_dir(), more="  lexcon: x\n"))

    assert code == 1
    assert "profile.yaml:5" in line
    assert "did you mean 'lexicon'" in line


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path):
    process = start(tmp_path, cache_dir())
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "listening on" in line)
        port = line.rsplit(":", 1)[1].strip()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as response:
            assert response.status == 200
        process.send_signal(signal.SIGTERM)

        code, lines = outcome(process)
        assert code == 0
        assert "drained" in lines[-1]
    finally:
        process.kill()
        process.wait()
