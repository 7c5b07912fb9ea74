"""What the machine and the checkout say about a run: facts for its head, and the generator's use of the CPU."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from load.report.document import Host

GIT_TIMEOUT_S = 5.0
_ROOT = Path(__file__).parents[2]


def host() -> Host:
    return Host(
        machine=platform.machine(),
        processor=_processor() or "unknown",
        num_cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_gb=round(_memory_bytes() / 1e9, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


def commit() -> str:
    """Of the checkout this runs from, with `-dirty` where it was changed; the package's version where there is none."""
    git = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        answer = subprocess.run(git, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=True)
        return answer.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    try:
        return f"version {version('offhook')}"
    except PackageNotFoundError:
        return "unknown"


def started_at() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def command_line(words: Sequence[str]) -> str:
    """As it can be pasted into a shell."""
    return shlex.join(words)


class CpuMeter:
    """This process's CPU time by wall time since it was made: 1 is one core all the time, threads add up."""

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._wall_s = time.monotonic()

    def share(self) -> float:
        wall_s = time.monotonic() - self._wall_s
        return (time.process_time() - self._cpu_s) / wall_s if wall_s > 0 else 0.0


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
