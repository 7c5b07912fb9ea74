"""One supervised process: its start in an own process group, its log, its end with everything it started.

Its stdout and stderr are one pipe, which is read here and written to a `LogFile`. Given the file itself, a process
would go on writing to it however large it grows: a file that is renamed away keeps its writers, and one that is
copied and cut off loses the lines written in between. What a pipe costs is that a supervisor which stands still could
hold up its processes. So the pipe is wide, and its writing end never blocks: should it ever be full, lines are lost
and the calls go on.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.log_file import MAX_BYTES, LogFile

LEASH = Path(__file__).parent / "leash.py"
PIPE_BYTES = 1 << 20  # most that pipe(7) allows without privileges; a busy service logs some 200 bytes a second
REST_TIMEOUT_S = 1.0  # for what is left in the pipe of a process that has ended
TAIL_BYTES = 16_384
TAIL_LINES = 12


@dataclass(frozen=True)
class Spec:
    """What to run. `addresses`: (host, port) pairs whose /health must answer. `needs` names other specs."""

    name: str
    command: tuple[str, ...]
    addresses: tuple[tuple[str, int], ...]
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # added to ours
    drain_timeout_s: float = 30.0


class Child:
    def __init__(self, process: asyncio.subprocess.Process, output: _Output, transport: asyncio.ReadTransport) -> None:
        self._process = process
        self._output = output
        self._transport = transport
        self.log_path = output.log.path
        self.started_s = time.monotonic()

    @classmethod
    async def start(cls, spec: Spec, logs: Path, *, max_log_bytes: int = MAX_BYTES) -> Child:
        """Raises: OSError when the command cannot be run."""
        output = _Output(LogFile(logs / f"{spec.name}.log", max_log_bytes))
        reading, writing = os.pipe()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, os.fdopen(reading, "rb", 0))
        try:
            _widen(writing)
            os.set_blocking(writing, False)
            process = await asyncio.create_subprocess_exec(
                *_leashed(spec.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **spec.environment},
                process_group=0,  # Ctrl-C in the terminal reaches the supervisor alone, which ends the rest in order
            )
        finally:
            os.close(writing)
        return cls(process, output, transport)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def wait(self) -> str:
        """How it ended, in words, after the rest of its group was killed and all it wrote is in its log."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # whatever it left behind
        try:
            async with asyncio.timeout(REST_TIMEOUT_S):
                await self._output.ended.wait()
        except TimeoutError:  # somebody outside the group holds the pipe
            self._transport.close()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def terminate(self) -> None:
        if not self.has_ended:
            self._process.terminate()

    def kill(self) -> None:
        """The whole group, at once."""
        self._signal(signal.SIGKILL)

    def log_tail(self) -> tuple[str, ...]:
        """Last lines of what this run has written."""
        return tuple(self._output.tail.decode(errors="replace").splitlines()[-TAIL_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


class _Output(asyncio.Protocol):
    """From the pipe into the log."""

    def __init__(self, log: LogFile) -> None:
        self.log = log
        self.tail = b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.log.write(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]

    def connection_lost(self, exc: Exception | None) -> None:
        self.log.close()
        self.ended.set()


def _widen(pipe: int) -> None:
    if sys.platform == "linux":
        try:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except PermissionError:  # this user's pipes are wide enough in sum, pipe(7): it stays as it is, 64 KiB
            return


def _leashed(command: tuple[str, ...]) -> tuple[str, ...]:
    if sys.platform != "linux":
        return command
    return (sys.executable, "-ES", str(LEASH), str(os.getpid()), *command)
