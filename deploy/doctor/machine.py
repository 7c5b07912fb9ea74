"""The machine itself: what is known of it, and whether that suffices. Pure; `deploy.doctor.read_machine` reads it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.doctor.findings import Finding, Level

MIN_PYTHON = (3, 11)  # pyproject.toml, requires-python
MEASURED_CORES = 2  # docs/measurements.md: one caller, answers within the budget in the median
MEASURED_ARCHITECTURES = ("x86_64", "amd64")

# Names in /proc/cpuinfo; any one of a row will do.
FEATURES = {
    "AVX2": ("avx2",),
    "AVX-512": ("avx512f",),
    "VNNI": ("avx512_vnni", "avx_vnni"),
    "bfloat16": ("avx512_bf16", "amx_bf16"),
}
MEASURE = "measure it: {offhook} call --wav FILE; docs/vllm.md moves the language model to another machine"


@dataclass(frozen=True)
class Machine:
    """None stands for what cannot be known here."""

    python: tuple[int, int, int]
    system: str  # as sys.platform
    architecture: str
    cpu_flags: frozenset[str] | None
    num_cores: float  # that this process may use: affinity, and the quota of its control group
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    descriptors: int | None  # soft limit
    descriptors_hard: int | None
    cache: Path
    cache_free_bytes: int | None
    cache_is_writable: bool


@dataclass(frozen=True)
class Needs:
    """Of a profile; see `deploy.doctor.needs`."""

    memory_bytes: float = 0.0
    disk_bytes: float = 0.0
    descriptors: int = 0
    max_calls: int = 0
    bfloat16_where: str = ""  # key of the profile that asks for it


def check_machine(machine: Machine, needs: Needs, offhook: str) -> Iterator[Finding]:
    """`offhook`: the command as it is called here."""
    measure = MEASURE.format(offhook=offhook)
    yield _python(machine)
    yield _system(machine, measure)
    yield _cpu(machine, needs, measure)
    yield _cores(machine, needs)
    yield _memory(machine, needs)
    yield _cache(machine, needs)
    if machine.descriptors is not None:
        yield _descriptors(machine.descriptors, machine.descriptors_hard, needs)


def _python(machine: Machine) -> Finding:
    version = ".".join(map(str, machine.python))
    if machine.python >= MIN_PYTHON:
        return Finding("machine", "python", "ok", f"{version}, {sys.executable}")
    needed = ".".join(map(str, MIN_PYTHON))
    mend = f"make clean && make serve PYTHON=python{needed}"
    return Finding("machine", "python", "problem", f"{version}; {needed} or newer is needed", mend)


def _system(machine: Machine, measure: str) -> Finding:
    found = f"{machine.system}, {machine.architecture}"
    if machine.system != "linux":
        mend = "run it on Linux, or in a Linux container"
        return Finding("machine", "system", "warning", f"{found}; only Linux is supported", mend)
    if machine.architecture.lower() not in MEASURED_ARCHITECTURES:
        return Finding("machine", "system", "warning", f"{found}; nobody has measured this architecture", measure)
    return Finding("machine", "system", "ok", found)


def _cpu(machine: Machine, needs: Needs, measure: str) -> Finding:
    if machine.cpu_flags is None:
        return Finding("machine", "cpu", "warning", "its features cannot be read", measure)
    has = {name: bool(machine.cpu_flags.intersection(flags)) for name, flags in FEATURES.items()}
    if machine.architecture.lower() not in MEASURED_ARCHITECTURES:
        return Finding("machine", "cpu", "ok", "none of the features of x86 that were measured")
    present = ", ".join(name for name, is_there in has.items() if is_there) or "none of " + ", ".join(has)
    absent = ", ".join(name for name, is_there in has.items() if not is_there)
    if not has["AVX2"]:
        found = f"{present}: recognition, language model and voice are several times slower than measured"
        return Finding("machine", "cpu", "warning", found, measure)
    if needs.bfloat16_where and not has["bfloat16"]:
        found = f"{present}; no bfloat16: it is emulated, and slower than float32"
        return Finding("machine", "cpu", "warning", found, f"profile: {needs.bfloat16_where}: int4")
    slower = f"; no {absent}: multiplications take longer than in docs/measurements.md" if absent else ""
    return Finding("machine", "cpu", "ok", present + slower)


def _cores(machine: Machine, needs: Needs) -> Finding:
    found = f"{machine.num_cores:.3g} usable"
    if needs.max_calls and machine.num_cores < MEASURED_CORES:
        mend = "give it more cores (CPU affinity, quota of the container)"
        return Finding("machine", "cores", "warning", f"{found}; {MEASURED_CORES} are needed for one caller", mend)
    if needs.max_calls > machine.num_cores:
        found += f" for up to {needs.max_calls} calls at once; measured is one call on {MEASURED_CORES}"
        return Finding("machine", "cores", "warning", found, f"profile: voice.max_calls: {int(machine.num_cores)}")
    return Finding("machine", "cores", "ok", found)


def _memory(machine: Machine, needs: Needs) -> Finding:
    available = machine.memory_available_bytes
    if available is None:
        return Finding("machine", "memory", "warning", "cannot be read", "see that about 2 GB are free")
    found = f"{gigabytes(available)} available"
    if needs.memory_bytes:
        found += f", about {gigabytes(needs.memory_bytes)} needed"
    if available >= needs.memory_bytes:
        return Finding("machine", "memory", "ok", found)
    mend = "end other programs, or profile: fewer stt.models, stt.models[].num_instances: 1, fewer llm.workers"
    fits_never = machine.memory_total_bytes is not None and machine.memory_total_bytes < needs.memory_bytes
    return Finding("machine", "memory", "problem" if fits_never else "warning", found, mend)


def _cache(machine: Machine, needs: Needs) -> Finding:
    mend = "free some space, or set OFFHOOK_CACHE to a folder on a larger disk"
    if not machine.cache_is_writable:
        level: Level = "problem" if needs.disk_bytes else "warning"
        found = f"{machine.cache} cannot be written to: no weights, logs or derived files can be kept"
        return Finding("machine", "cache", level, found, "set OFFHOOK_CACHE to a folder of yours")
    if machine.cache_free_bytes is None:
        return Finding("machine", "cache", "warning", f"{machine.cache}: free space cannot be read", mend)
    found = f"{machine.cache}, {gigabytes(machine.cache_free_bytes)} free"
    if needs.disk_bytes:
        found += f", about {gigabytes(needs.disk_bytes)} needed for what is missing"
    if machine.cache_free_bytes < needs.disk_bytes:
        return Finding("machine", "cache", "problem", found, mend)
    return Finding("machine", "cache", "ok", found)


def _descriptors(soft: int, hard: int | None, needs: Needs) -> Finding:
    if soft >= needs.descriptors:
        return Finding("machine", "open files", "ok", f"{soft} allowed")
    can_raise = hard is None or hard >= needs.descriptors
    mend = f"ulimit -n {needs.descriptors}" + ("" if can_raise else " as root, or raise LimitNOFILE of the service")
    return Finding("machine", "open files", "warning", f"{soft} allowed, {needs.descriptors} needed", mend)


def gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
