"""The command as a user calls it, over this machine's real environment."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.paths import DEFAULT_PROFILE
from tests.serving import free_ports
from wire.weights import cache_dir

pytestmark = pytest.mark.slow  # imports every native package in a process of its own
ROOT = Path(__file__).parents[3]
GROUPS = ["machine", "packages", "profile", "weights", "services", "callers"]


@dataclass(frozen=True)
class Diagnosis:
    status: int
    stdout: str

    @property
    def findings(self) -> dict[tuple[str, str], dict[str, str]]:
        return {(each["group"], each["name"]): each for each in json.loads(self.stdout)["findings"]}


def doctor(profile: Path, *options: str, cache: Path | None = None, code: str = "") -> Diagnosis:
    """`code` runs before the command, in its interpreter."""
    start = f"{code}\nimport sys; from deploy.__main__ import main; sys.exit(main())"
    command = (sys.executable, "-c", start, "doctor", "--profile", str(profile), *options)
    environment = {**os.environ, "OFFHOOK_CACHE": str(cache or cache_dir())}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr == ""
    return Diagnosis(done.returncode, done.stdout)


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


def test_this_machine_is_described_and_has_no_problem(profile: Path) -> None:
    found = doctor(profile)
    lines = found.stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")][:-1] == GROUPS
    assert re.fullmatch(r"\d+ ok, \d+ warnings?, 0 problems", lines[-1]), found.stdout
    assert found.status == 0


def test_json_has_one_schema(profile: Path) -> None:
    shown = json.loads(doctor(profile, "--json").stdout)
    assert list(shown) == ["profile", "num_ok", "num_warnings", "num_problems", "findings"]
    assert shown["profile"] == str(profile)
    for finding in shown["findings"]:
        assert list(finding) == ["group", "name", "level", "found", "mend"]
        assert all(isinstance(value, str) for value in finding.values())
        assert finding["level"] in ("ok", "warning", "problem")
        assert finding["level"] == "ok" or finding["mend"]
    levels = [finding["level"] for finding in shown["findings"]]
    assert [levels.count(level) for level in ("ok", "warning", "problem")] == [
        shown["num_ok"],
        shown["num_warnings"],
        shown["num_problems"],
    ]


def test_taken_port_is_a_problem_with_its_owner(profile: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = profile.read_text()
        stt = re.search(r"stt_url: http://127.0.0.1:(\d+)", text)
        assert stt is not None
        profile.write_text(text.replace(stt[1], str(port)))
        found = doctor(profile, "--json")
    finding = found.findings["services", "stt"]
    assert found.status == 1
    assert finding["level"] == "problem"
    assert f"port {port} is taken by process {os.getpid()}" in finding["found"]
    assert finding["mend"].endswith("or profile: stt.edge.port: another one")


def test_broken_profile_is_a_finding_and_the_machine_is_examined_all_the_same(profile: Path) -> None:
    profile.write_text(profile.read_text().replace("max_calls", "max_cals"))
    found = doctor(profile, "--json")
    finding = found.findings["profile", "profile"]
    assert found.status == 1
    assert "voice.max_cals: unknown key; did you mean 'max_calls'?" in finding["found"]
    assert ("machine", "memory") in found.findings
    assert ("packages", "versions") in found.findings


@pytest.mark.parametrize("missing", ["yaml", "rich", "packaging"])
def test_missing_package_does_not_stop_the_doctor(profile: Path, missing: str) -> None:
    found = doctor(profile, "--json", code=f"import sys; sys.modules[{missing!r}] = None")
    assert found.status == 1
    assert ("machine", "memory") in found.findings
    assert ("packages", "native code") in found.findings
    assert ("profile", "profile") in found.findings


def test_other_commands_send_to_the_doctor_when_a_package_is_missing() -> None:
    code = "import sys; sys.modules['yaml'] = None; from deploy.__main__ import main; sys.exit(main(['up']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    *_, error, hint = done.stderr.splitlines()
    assert error.startswith("offhook: error: ")
    assert "yaml" in error
    assert hint.endswith(" doctor says what is missing here")


def test_interrupted_doctor_ends_as_shells_count() -> None:
    alarm = "signal.signal(signal.SIGALRM, signal.default_int_handler); signal.setitimer(signal.ITIMER_REAL, 0.3)"
    code = f"import signal, sys; from deploy.__main__ import main; {alarm}; sys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "offhook: stopped\n")
