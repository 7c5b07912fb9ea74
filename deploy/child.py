"""One supervised process: its start in an own process group, its log file, its end with everything it started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LEASH = Path(__file__).parent / "leash.py"
MAX_LOG_BYTES = 10_000_000  # a larger log is moved aside at the next start; one old log is kept
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
    def __init__(self, process: asyncio.subprocess.Process, log_path: Path, log_start_bytes: int) -> None:
        self._process = process
        self.log_path = log_path
        self._log_start_bytes = log_start_bytes
        self.started_s = time.monotonic()

    @classmethod
    async def start(cls, spec: Spec, logs: Path) -> Child:
        """Raises: OSError when the command cannot be run."""
        path = logs / f"{spec.name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        with path.open("ab") as log:
            start_bytes = log.tell()
            process = await asyncio.create_subprocess_exec(
                *_leashed(spec.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **spec.environment},
                process_group=0,  # Ctrl-C in the terminal reaches the supervisor alone, which ends the rest in order
            )
        return cls(process, path, start_bytes)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def wait(self) -> str:
        """How it ended, in words, after the rest of its group was killed."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # whatever it left behind
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def terminate(self) -> None:
        if not self.has_ended:
            self._process.terminate()

    def kill(self) -> None:
        """The whole group, at once."""
        self._signal(signal.SIGKILL)

    def log_tail(self) -> tuple[str, ...]:
        """Last lines of what this run has written."""
        with self.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start_bytes, end - TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return tuple(lines[-TAIL_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def _leashed(command: tuple[str, ...]) -> tuple[str, ...]:
    if sys.platform != "linux":
        return command
    return (sys.executable, "-ES", str(LEASH), str(os.getpid()), *command)
