from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.child import PIPE_BYTES, Child, Spec
from deploy.errors import StartError
from deploy.supervisor import Stop, Supervisor
from tests.serving import free_ports

pytestmark = pytest.mark.slow  # real processes
TINY = Path(__file__).parent / "tiny_service.py"
ROOT = Path(__file__).parents[2]
ENDS_WITHIN_S = 20.0


def spec(folder: Path, name: str, port: int, behaviour: str = "", needs: tuple[str, ...] = ()) -> Spec:
    command = (sys.executable, str(TINY), name, str(port), str(folder / "journal"), behaviour)
    return Spec(name, command, (("127.0.0.1", port),), needs, drain_timeout_s=0)


def journal(folder: Path) -> list[str]:
    return (folder / "journal").read_text().splitlines()


def events(folder: Path) -> list[str]:
    return [" ".join(line.split()[:2]) for line in journal(folder)]


def pids(folder: Path) -> list[int]:
    return [int(line.split()[2]) for line in journal(folder) if len(line.split()) == 3]


async def _run_until_ready(folder: Path, *specs: Spec) -> None:
    stop = Stop()
    await Supervisor(specs, folder / "logs", on_ready=stop.ask).run(stop)


async def _logged(words: str, times: int = 1) -> None:
    """Until the supervisor has logged `words` so many times from now on."""
    seen = asyncio.Event()
    lines: list[str] = []

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.extend([words] * (words in record.getMessage()))
            if len(lines) >= times:
                seen.set()

    watch = Watch()
    logging.getLogger("deploy.supervisor").addHandler(watch)
    try:
        await seen.wait()
    finally:
        logging.getLogger("deploy.supervisor").removeHandler(watch)


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def test_a_process_starts_when_what_it_needs_is_ready_and_ends_before_it(tmp_path: Path) -> None:
    a, b, c = free_ports(3)
    await _run_until_ready(
        tmp_path,
        spec(tmp_path, "voice", c, needs=("stt", "router")),
        spec(tmp_path, "router", b, needs=("llm",)),
        spec(tmp_path, "llm", a),
        spec(tmp_path, "stt", free_ports(1)[0]),
    )
    seen = events(tmp_path)
    starts = [line.split()[0] for line in seen if "start" in line]
    ends = [line.split()[0] for line in seen if "term" in line]
    assert set(starts[:2]) == {"llm", "stt"}
    assert starts[2:] == ["router", "voice"]
    assert ends[:2] == ["voice", "router"]
    assert set(ends[2:]) == {"llm", "stt"}


async def test_process_that_ends_before_it_is_ready_ends_everything_with_its_log(tmp_path: Path) -> None:
    a, b = free_ports(2)
    with pytest.raises(StartError, match="stt ended with exit code 1 before it was ready") as caught:
        await _run_until_ready(tmp_path, spec(tmp_path, "llm", a), spec(tmp_path, "stt", b, "fail"))
    assert caught.value.log_tail == ("no such weights: this is the reason",)
    assert not any(map(_is_alive, pids(tmp_path)))


async def test_command_that_does_not_exist_is_a_start_error(tmp_path: Path) -> None:
    nothing = Spec("stt", ("/nonexistent/python",), (("127.0.0.1", free_ports(1)[0]),))
    with pytest.raises(StartError, match="stt"):
        await _run_until_ready(tmp_path, nothing)


async def test_process_that_never_answers_is_given_up(tmp_path: Path) -> None:
    a, b = free_ports(2)
    wrong = Spec("stt", spec(tmp_path, "stt", a).command, (("127.0.0.1", b),), drain_timeout_s=0)
    with pytest.raises(StartError, match="stt is not ready after 1 s"):
        await Supervisor([wrong], tmp_path, on_ready=lambda: None, start_timeout_s=1).run(Stop())
    assert not any(map(_is_alive, pids(tmp_path)))


async def test_crashed_process_is_started_again_and_the_others_live_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = free_ports(2)
    stop = Stop()
    specs = (spec(tmp_path, "llm", a), spec(tmp_path, "stt", b, "crash:1"))
    supervisor = Supervisor(specs, tmp_path / "logs", on_ready=lambda: None)
    with caplog.at_level(logging.INFO):
        async with asyncio.timeout(ENDS_WITHIN_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(supervisor.run(stop))
            await _logged("stt: ready", times=2)
            stop.ask()
    assert [line for line in events(tmp_path) if "start" in line].count("stt start") == 2
    assert events(tmp_path).count("llm start") == 1
    assert "stt ended with exit code 3; starting it again in 0.5 s" in caplog.text


async def test_crash_loop_is_reported_with_the_last_log_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    stop = Stop()
    supervisor = Supervisor([spec(tmp_path, "stt", port, "crash:9")], tmp_path / "logs", on_ready=lambda: None)
    with caplog.at_level(logging.INFO):
        async with asyncio.timeout(ENDS_WITHIN_S), asyncio.TaskGroup() as tasks:
            tasks.create_task(supervisor.run(stop))
            await _logged("stt is about to crash")
            stop.ask()
    assert "crashes again and again (3 times)" in caplog.text


async def test_second_request_kills_a_process_that_does_not_drain(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    stop = Stop()
    deaf = Spec("stt", spec(tmp_path, "stt", port, "deaf").command, (("127.0.0.1", port),), drain_timeout_s=600)

    def twice() -> None:
        stop.ask()
        stop.ask()

    async with asyncio.timeout(ENDS_WITHIN_S):
        await Supervisor([deaf], tmp_path / "logs", on_ready=twice).run(stop)
    assert not any(map(_is_alive, pids(tmp_path)))


CHATTER = """
import logging, sys
logging.basicConfig(format="%(message)s")
for i in range(int(sys.argv[1])):
    logging.warning("line %06d " + 90 * "x", i)
"""


def chatter(num_lines: int) -> Spec:
    return Spec("chatter", (sys.executable, "-c", CHATTER, str(num_lines)), ())


async def test_log_is_rotated_while_the_process_runs_and_no_line_is_lost(tmp_path: Path) -> None:
    child = await Child.start(chatter(5000), tmp_path, max_log_bytes=200_000)
    assert await child.wait() == "ended with exit code 0"
    logs = [tmp_path / "chatter.log.2", tmp_path / "chatter.log.1", tmp_path / "chatter.log"]
    numbers = [int(line.split()[1]) for path in logs for line in path.read_text().splitlines()]
    assert numbers == list(range(5000 - len(numbers), 5000))
    assert all(150_000 < path.stat().st_size <= 200_000 for path in logs[:2])
    assert child.log_tail()[-1].startswith("line 004999")
    assert not (tmp_path / "chatter.log.3").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd is Linux's")
async def test_supervisor_that_stands_still_does_not_hold_up_its_processes(tmp_path: Path) -> None:
    child = await Child.start(chatter(3 * PIPE_BYTES // 100), tmp_path)
    _wait_until_gone(child.pid)  # blocks this event loop, so nobody reads
    assert "exit code 0" in await child.wait()
    assert (tmp_path / "chatter.log").stat().st_size <= PIPE_BYTES + 100


async def test_process_outside_the_group_that_holds_the_pipe_delays_nobody(tmp_path: Path) -> None:
    leaves = "import subprocess as s; p = s.Popen(['sleep', '60'], start_new_session=True); print(p.pid)"
    child = await Child.start(Spec("leaver", (sys.executable, "-c", leaves), ()), tmp_path)
    async with asyncio.timeout(ENDS_WITHIN_S):
        await child.wait()
    os.kill(int(child.log_tail()[0]), signal.SIGKILL)


async def test_log_tail_does_not_show_an_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "echo.log").write_text("old\n")
    child = await Child.start(Spec("echo", ("echo", "new"), ()), tmp_path)
    await child.wait()
    assert child.log_tail() == ("new",)


@contextmanager
def _supervised(folder: Path, *parts: str) -> Iterator[subprocess.Popen[str]]:
    """A supervisor process whose children are all ready."""
    command = [sys.executable, "-m", "tests.deploy.tiny_supervisor", str(folder), *parts]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def _wait_until_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], ENDS_WITHIN_S)
    finally:
        os.close(descriptor)
    assert ready, f"process {pid} is still there"


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd and /proc are Linux's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_no_child_and_no_grandchild(tmp_path: Path, number: signal.Signals) -> None:
    a, b = free_ports(2)
    with _supervised(tmp_path, f"llm={a}=parent", f"stt={b}") as process:
        started = pids(tmp_path)
        assert len(started) == 3
        process.send_signal(number)
        assert process.wait(ENDS_WITHIN_S) == 0
    assert not any(map(_is_alive, started))
    assert set(events(tmp_path)) >= {"llm term", "stt term"}


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_killed_supervisor_leaves_no_child(tmp_path: Path) -> None:
    a, b = free_ports(2)
    with _supervised(tmp_path, f"llm={a}=deaf", f"stt={b}") as process:
        started = pids(tmp_path)
        assert len(started) == 2
        process.kill()
        process.wait(ENDS_WITHIN_S)
        for pid in started:
            _wait_until_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd is Linux's")
def test_second_signal_kills_at_once(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with _supervised(tmp_path, f"llm={port}=deaf") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) == 0
        _wait_until_gone(pids(tmp_path)[0])
