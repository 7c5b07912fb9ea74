from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.errors import StartError
from deploy.paths import DEFAULT_PROFILE
from deploy.ports import owner_of, profile_of_up, reachable_host, require_free

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

# What `offhook up` looks like from outside: a parent with this command line, and a child with a port.
SUPERVISOR = """
import subprocess, sys
serve = "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
listen = f"import socket, sys; {serve}; sys.stdin.read()"
subprocess.run([sys.executable, "-c", listen])
"""


def test_taken_port_is_named_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            StartError, match=rf"port {port}, which stt needs, is taken by process {os.getpid()} \(.*py"
        ):
            require_free([("stt", "127.0.0.1", port)])


def test_port_of_a_running_offhook_up_names_it_and_its_profile(tmp_path: Path) -> None:
    script = tmp_path / "offhook"
    script.write_text(SUPERVISOR)
    command = (sys.executable, str(script), "up", "--profile", "mine.yaml")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as up:
        assert up.stdout is not None
        port = int(up.stdout.readline())
        with pytest.raises(StartError) as caught:
            require_free([("stt", "127.0.0.1", port)])
        owner = owner_of(port)
        up.communicate()
    profile = tmp_path / "mine.yaml"
    assert str(caught.value).startswith(f"offhook up is already running (pid {up.pid}), profile {profile}")
    assert f"kill {up.pid}" in caught.value.hint
    assert owner is not None
    assert owner.pid != up.pid
    assert owner.up is not None
    assert (owner.up.pid, owner.up.profile) == (up.pid, profile)


@pytest.mark.parametrize(
    ("command", "profile"),
    [
        ("python /x/.venv/bin/offhook up", str(DEFAULT_PROFILE)),
        ("offhook up --profile a.yaml", "a.yaml"),
        ("offhook up --source hub --profile=a.yaml", "a.yaml"),
        ("python -m deploy up --prof a.yaml", "a.yaml"),
        ("offhook up --profile", ""),
        ("offhook models list", None),
        ("offhook", None),
        ("python -m stt --profile a.yaml", None),
        ("vim deploy up", None),
        ("", None),
    ],
)
def test_command_line_of_a_supervisor(command: str, profile: str | None) -> None:
    assert profile_of_up(command.split(" ")) == profile


@given(st.lists(st.sampled_from(["offhook", "-m", "deploy", "up", "--profile", "--profile=", "--p=a", "--", "x", ""])))
def test_any_command_line_can_be_read(arguments: list[str]) -> None:
    found = profile_of_up(arguments)
    assert found is None or "up" in arguments


def test_free_ports_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    require_free([("stt", "127.0.0.1", port)])
    assert owner_of(port) is None


def test_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(StartError, match=r"voice cannot listen on 192.0.2.1:8080"):
        require_free([("voice", "192.0.2.1", 8080)])


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("fe80::1", "[fe80::1]")]
)
def test_a_client_on_this_machine_reaches_every_host(host: str, shown: str) -> None:
    assert reachable_host(host) == shown
