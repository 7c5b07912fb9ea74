from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from load.errors import LoadError
from load.faults.kill import Freeze, Kill, Processes, carry_out, listed_by_up, named, ours, parent_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfd and /proc are Linux's")
SLEEP = "import time; time.sleep(60)"
STAGE = "pretended_stage"  # a name that no stack has: one may be running beside these tests, below the same process


@contextlib.contextmanager
def child(*command: str, folder: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def stage(name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`python -m NAME --profile x`, of a module that only sleeps."""
    (folder / f"{name}.py").write_text(SLEEP)
    with child(sys.executable, "-m", name, "--profile", "x", folder=folder) as process:
        yield process


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


async def until_state(pid: int, wanted: str) -> None:
    async with asyncio.timeout(5):
        while True:
            if state(pid) == wanted:
                return
            await asyncio.sleep(0.005)


async def test_a_process_of_ours_is_killed_by_its_name(tmp_path: Path) -> None:
    with stage(STAGE, tmp_path) as process:
        assert ours()[STAGE] == process.pid
        assert await carry_out(Kill(STAGE), Processes()) == process.pid
        assert process.wait(5) == -signal.SIGKILL


async def test_a_grandchild_is_ours_too(tmp_path: Path) -> None:
    (tmp_path / f"{STAGE}.py").write_text(SLEEP)
    start = f"import subprocess; subprocess.run([{sys.executable!r}, '-m', {STAGE!r}])"
    with child(sys.executable, "-c", start, folder=tmp_path) as parent:
        async with asyncio.timeout(10):
            while True:
                if STAGE in ours():
                    break
                await asyncio.sleep(0.01)
        await carry_out(Kill(STAGE), Processes())
        assert parent.wait(5) == 0


async def test_a_frozen_process_goes_on_after_its_time_and_when_we_are_cancelled(tmp_path: Path) -> None:
    with stage(STAGE, tmp_path) as process:
        await carry_out(Freeze(STAGE, for_s=0.05), Processes())
        await until_state(process.pid, "S")
        freezing = asyncio.create_task(carry_out(Freeze(STAGE, for_s=60), Processes()))
        await until_state(process.pid, "T")
        freezing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await freezing
        await until_state(process.pid, "S")


@pytest.mark.parametrize("pid", [1, os.getppid(), os.getpid()])
def test_a_process_of_somebody_else_is_refused(pid: int) -> None:
    with pytest.raises(LoadError, match="was not started from here"), Processes().hold_pid(pid):
        pass


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**70])
def test_a_pid_of_nobody_is_one_clear_line(pid: int) -> None:
    with pytest.raises(LoadError, match="there is no process"), Processes().hold_pid(pid):
        pass


def test_a_listed_pid_that_belongs_to_another_by_now_is_refused() -> None:
    listed = Processes({STAGE: os.getppid()})
    with pytest.raises(LoadError, match="was not started from here"), listed.hold(STAGE):
        pass


def test_a_listed_process_is_ours_while_it_is_what_the_log_says(tmp_path: Path) -> None:
    with stage("router", tmp_path) as process:
        listed = Processes(listed_by_up(f"I router: ready after 1.2 s (pid {process.pid})"))
        assert listed._is_listed(process.pid)
        assert not Processes({"voice": process.pid})._is_listed(process.pid)


def test_a_name_that_is_not_there_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with stage(STAGE, tmp_path):
        with pytest.raises(LoadError, match="no process 'pretended_stag'") as error, Processes().hold("pretended_stag"):
            pass
        assert error.value.hint == f"did you mean '{STAGE}'?"


def test_a_process_that_has_ended_is_told() -> None:
    with child(sys.executable, "-c", SLEEP) as process, Processes().hold_pid(process.pid) as running:
        process.kill()
        process.wait(5)
        with pytest.raises(LoadError, match="has ended already"):
            running.signal(signal.SIGKILL)


def test_the_log_of_up_names_the_last_life_of_each() -> None:
    log = "stt: ready after 2.0 s (pid 11)\nllm-1: ready after 3.1 s (pid 12)\nstt: ready after 0.9 s (pid 13)\n"
    assert listed_by_up(log) == {"stt": 13, "llm-1": 12}


def test_the_log_line_is_the_one_that_up_writes() -> None:
    source = Path("deploy/supervisor.py").read_text()
    [form] = re.findall(r'"(%s: ready after [^"]*)"', source)
    assert listed_by_up(form % ("stt", 1.25, 7)) == {"stt": 7}


def test_workers_are_numbered_when_there_are_several() -> None:
    def worker(number: str) -> list[str]:
        return ["python", "-m", "llm", "--profile", "p", "--worker", number]

    assert named([(1, ["python", "-m", "stt"]), (2, worker("1")), (3, ["sleep", "-m"])]) == {"stt": 1, "llm": 2}
    assert named([(2, worker("1")), (3, worker("2"))]) == {"llm-1": 2, "llm-2": 3}


def test_a_process_may_be_called_anything() -> None:
    assert parent_of("12 (a) b (c)) S 34 5 6") == 34


@pytest.mark.parametrize("process", ["", "STT", "../x", "llm-", "1"])
def test_a_name_that_is_none_is_refused(process: str) -> None:
    with pytest.raises(ValueError, match="process must be a name"):
        Kill(process)
