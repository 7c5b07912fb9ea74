"""End, stop or continue a process of the stack at a set moment; only one that was started from here.

A process is ours when this process is among its ancestors, or when the log of an `offhook up` that runs elsewhere names
it, it belongs to the same user, and is still what the log says. Others are refused. A process is held by a pidfd from
before it is looked at, so that its number cannot meanwhile belong to somebody else (pidfd_open(2); Linux only).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeAlias

from load.errors import LoadError
from wire.strict import nearest

MAX_S = 86_400.0
_PROC = Path("/proc")
_NAME = re.compile(r"[a-z][a-z_]*(-[0-9]+)?")
_READY = re.compile(r"(\S+): ready after .* \(pid (\d+)\)")


@dataclass(frozen=True)
class Kill:
    """SIGKILL to `process` (voice, stt, tts_engine, router, llm, llm-2), `at_s` after the fault was set.

    Expected: stt, tts_engine, router, llm: at most the running turn is lost, with a filler or an apology by 1.5 s of
    silence; the call goes on and later turns are answered once the process is back. voice: all calls end at once, and
    a new one is taken as soon as it is back.
    """

    KIND: ClassVar[str] = "kill"
    process: str
    at_s: float = 0.0

    def __post_init__(self) -> None:
        _check(self.process, at_s=self.at_s)


@dataclass(frozen=True)
class Freeze:
    """SIGSTOP to `process`, `at_s` after the fault was set, and SIGCONT `for_s` later.

    Expected: as long as it lasts the same as a stall of its stage, by 1.5 s a filler, message or apology; no call is
    lost by 3 s of it, and nothing that has become old meanwhile is heard afterwards.
    """

    KIND: ClassVar[str] = "freeze"
    process: str
    for_s: float = 3.0
    at_s: float = 0.0

    def __post_init__(self) -> None:
        _check(self.process, at_s=self.at_s, for_s=self.for_s)


ProcessFault: TypeAlias = Kill | Freeze
PROCESS_FAULTS = (Kill, Freeze)


@dataclass(frozen=True)
class Running:
    """A process that may be signalled, held by its pidfd."""

    name: str
    pid: int
    _pidfd: int

    def signal(self, number: signal.Signals) -> None:
        """Raises: LoadError when it has ended."""
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            raise LoadError(f"{self.name} (pid {self.pid}) has ended already") from None


@dataclass(frozen=True)
class Processes:
    """`listed`: name to pid, from the log of an `offhook up` (`listed_by_up`)."""

    listed: Mapping[str, int] = field(default_factory=dict)

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[Running]:
        """Raises: LoadError when none of that name is ours."""
        known = {**self.listed, **ours()}
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean '{close}'?" if close else f"running: {', '.join(sorted(known)) or 'none'}"
            raise LoadError(f"no process '{name}' was started from here", hint)
        with self.hold_pid(known[name], name) as running:
            yield running

    @contextlib.contextmanager
    def hold_pid(self, pid: int, name: str = "process") -> Iterator[Running]:
        """Raises: LoadError for a pid that is not ours."""
        _require_linux()
        try:
            pidfd = os.pidfd_open(pid)
        except (OSError, ValueError, OverflowError):
            raise LoadError(f"there is no process {pid}") from None
        try:
            if not (_descends(pid, os.getpid(), _parents()) or self._is_listed(pid)):
                raise LoadError(f"process {pid} was not started from here", "it is left alone")
            yield Running(name, pid, pidfd)
        finally:
            os.close(pidfd)

    def _is_listed(self, pid: int) -> bool:
        names = [name for name, listed in self.listed.items() if listed == pid]
        package = package_of(_command(pid))
        try:
            is_same_user = (_PROC / str(pid)).stat().st_uid == os.getuid()
        except OSError:
            return False
        return is_same_user and any(name.partition("-")[0] == package for name in names)


async def carry_out(fault: ProcessFault, processes: Processes) -> int:
    """At its time; returns the pid it met. Cancelled while the process is stopped, it lets it go on.

    Raises: LoadError when there is no such process of ours then.
    """
    await asyncio.sleep(fault.at_s)
    with processes.hold(fault.process) as running:
        match fault:
            case Kill():
                running.signal(signal.SIGKILL)
            case Freeze():
                running.signal(signal.SIGSTOP)
                try:
                    await asyncio.sleep(fault.for_s)
                finally:
                    with contextlib.suppress(LoadError):  # it was killed meanwhile
                        running.signal(signal.SIGCONT)
        return running.pid


def listed_by_up(log: str) -> dict[str, int]:
    """The processes that `offhook up` says are ready; of several lives the last."""
    return {name: int(pid) for name, pid in _READY.findall(log)}


def ours() -> dict[str, int]:
    """Processes of the stack that descend from this one, by the names `offhook up` has for them."""
    _require_linux()
    parents = _parents()
    found = [(pid, _command(pid)) for pid in parents if pid != os.getpid() and _descends(pid, os.getpid(), parents)]
    return named(found)


def named(commands: Sequence[tuple[int, Sequence[str]]]) -> dict[str, int]:
    """Pids by name: `python -m stt ...` is stt; of several LLM workers, each with `--worker N`, llm-N."""
    result: dict[str, int] = {}
    workers: dict[str, int] = {}
    for pid, command in commands:
        package = package_of(command)
        if package == "llm" and "--worker" in command[:-1]:
            workers[command[list(command).index("--worker") + 1]] = pid
        elif package is not None:
            result[package] = pid
    if len(workers) == 1:
        return {**result, "llm": next(iter(workers.values()))}
    return {**result, **{f"llm-{number}": pid for number, pid in workers.items()}}


def package_of(command: Sequence[str]) -> str | None:
    """What `python -m` runs."""
    if "-m" not in command[:-1]:
        return None
    return command[list(command).index("-m") + 1]


def parent_of(stat: str) -> int:
    """From the text of /proc/PID/stat, proc_pid_stat(5): the name in brackets may hold anything."""
    return int(stat.rpartition(")")[2].split()[1])


def _parents() -> dict[int, int]:
    found = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(path.parent.name)] = parent_of(path.read_text())
    return found


def _descends(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _command(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _require_linux() -> None:
    if sys.platform != "linux":
        raise LoadError("processes are signalled on Linux only")


def _check(process: str, **times_s: float) -> None:
    if not _NAME.fullmatch(process):
        raise ValueError(f"process must be a name such as tts_engine or llm-2, got {process!r:.40}")
    for name, value in times_s.items():
        if not 0 <= value <= MAX_S:
            raise ValueError(f"{name} must be 0 to {MAX_S:.0f} s, got {value}")
