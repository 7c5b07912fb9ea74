"""Read what `deploy.doctor.machine` checks. Reads only; what cannot be read is None.

Sources: proc(5), cgroups(7): version 2 has `cpu.max` and `memory.max`, version 1 `cpu.cfs_quota_us` and
`memory.limit_in_bytes`.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from deploy.doctor.machine import Machine

CGROUPS = Path("/sys/fs/cgroup")


def read_machine(cache: Path) -> Machine:
    memory = _memory()
    limit, used = (
        _cgroup_number("memory.max", "memory.limit_in_bytes"),
        _cgroup_number("memory.current", "memory.usage_in_bytes"),
    )
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    if limit is not None and used is not None and total is not None and available is not None and limit < total:
        total, available = limit, min(available, max(0, limit - used))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    folder = _existing(cache)
    return Machine(
        python=sys.version_info[:3],
        system=sys.platform,
        architecture=platform.machine(),
        cpu_flags=_cpu_flags(),
        num_cores=_num_cores(),
        memory_total_bytes=total,
        memory_available_bytes=available,
        descriptors=sys.maxsize if soft == resource.RLIM_INFINITY else soft,
        descriptors_hard=None if hard == resource.RLIM_INFINITY else hard,
        cache=cache,
        cache_free_bytes=_free_bytes(folder),
        cache_is_writable=os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK),
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _cpu_flags() -> frozenset[str] | None:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _text(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return frozenset(found[1].split()) if found else None


def _memory() -> dict[str, int]:
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", _text(Path("/proc/meminfo")) or "", re.MULTILINE)
    return {name: 1024 * int(kilobytes) for name, kilobytes in lines}


def _num_cores() -> float:
    has_affinity = sys.platform == "linux"
    cores: float = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    for folder in _cgroup_folders():
        quota = (_text(folder / "cpu.max") or "").split()
        if not quota:
            quota = [(_text(folder / name) or "").strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        if len(quota) == 2 and quota[0].isdecimal() and quota[1].isdecimal():
            cores = min(cores, int(quota[0]) / max(1, int(quota[1])))
    return cores


def _cgroup_number(*names: str) -> int | None:
    """The smallest value of any of the files, ours or of a group around ours."""
    texts = [(_text(folder / name) or "").strip() for folder in _cgroup_folders() for name in names]
    return min((int(text) for text in texts if text.isdecimal()), default=None)


def _cgroup_folders() -> Iterator[Path]:
    """Of this process's control groups and of those around them. In a container the path may name what is outside."""
    for line in (_text(Path("/proc/self/cgroup")) or "").splitlines():
        _, controllers, inside = line.split(":", 2)
        root = CGROUPS / controllers if controllers else CGROUPS
        folder = root / inside.lstrip("/")
        while True:
            yield folder
            if folder == root or root not in folder.parents:
                break
            folder = folder.parent


def _existing(path: Path) -> Path:
    """`path`, or the nearest folder above it that is there."""
    for folder in (path, *path.parents):
        if os.path.lexists(folder):
            return folder
    return Path("/")


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
