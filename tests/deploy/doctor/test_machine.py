from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from deploy.catalogue import read_catalogue
from deploy.distribution import PYPROJECT
from deploy.doctor.findings import Finding
from deploy.doctor.machine import MIN_PYTHON, Machine, Needs, check_machine
from deploy.doctor.needs import needs_of
from deploy.doctor.read_machine import read_machine
from deploy.paths import DEFAULT_PROFILE
from deploy.profile import read_profile

GOOD = Machine(
    python=(3, 12, 1),
    system="linux",
    architecture="x86_64",
    cpu_flags=frozenset({"avx2", "avx512f", "avx512_vnni", "amx_bf16"}),
    num_cores=2.0,
    memory_total_bytes=8_000_000_000,
    memory_available_bytes=4_000_000_000,
    descriptors=1024,
    descriptors_hard=4096,
    cache=Path("/cache"),
    cache_free_bytes=10_000_000_000,
    cache_is_writable=True,
)
NEEDS = Needs(memory_bytes=2e9, disk_bytes=1e9, descriptors=192, max_calls=2)


def found(name: str, needs: Needs = NEEDS, **changes: object) -> Finding:
    machine = dataclasses.replace(GOOD, **changes)  # type: ignore[arg-type]
    return {each.name: each for each in check_machine(machine, needs, "bin/offhook")}[name]


def test_a_good_machine_is_ok() -> None:
    assert {each.level for each in check_machine(GOOD, NEEDS, "offhook")} == {"ok"}


@pytest.mark.parametrize(
    ("name", "changes", "level", "words", "mend"),
    [
        ("python", {"python": (3, 10, 4)}, "problem", "3.10.4; 3.11 or newer", "PYTHON=python3.11"),
        ("system", {"system": "darwin"}, "warning", "only Linux", "Linux"),
        ("system", {"architecture": "aarch64"}, "warning", "nobody has measured", "measure it: bin/offhook call"),
        ("cpu", {"cpu_flags": frozenset({"sse4_1"})}, "warning", "several times slower", "vllm.md"),
        ("cpu", {"cpu_flags": None}, "warning", "cannot be read", "measure it"),
        ("cores", {"num_cores": 1.0}, "warning", "2 are needed for one caller", "more cores"),
        ("cores", {"num_cores": 1.5}, "warning", "1.5 usable", "quota"),
        ("memory", {"memory_available_bytes": 10**9}, "warning", "1.0 GB available, about 2.0 GB needed", "profile:"),
        (
            "memory",
            {"memory_available_bytes": 10**9, "memory_total_bytes": 10**9},
            "problem",
            "about 2.0 GB needed",
            "num_instances",
        ),
        ("memory", {"memory_available_bytes": None}, "warning", "cannot be read", "2 GB"),
        ("cache", {"cache_free_bytes": 10**8}, "problem", "0.1 GB free, about 1.0 GB needed", "OFFHOOK_CACHE"),
        ("cache", {"cache_is_writable": False}, "problem", "cannot be written", "OFFHOOK_CACHE"),
        ("cache", {"cache_free_bytes": None}, "warning", "cannot be read", "OFFHOOK_CACHE"),
        ("open files", {"descriptors": 128}, "warning", "128 allowed, 192 needed", "ulimit -n 192"),
        ("open files", {"descriptors": 128, "descriptors_hard": 128}, "warning", "128", "LimitNOFILE"),
    ],
)
def test_what_falls_short_says_how_to_mend_it(
    name: str, changes: dict[str, object], level: str, words: str, mend: str
) -> None:
    finding = found(name, **changes)
    assert finding.level == level
    assert words in finding.found
    assert mend in finding.mend


def test_more_calls_than_cores_is_a_warning_with_the_key() -> None:
    finding = found("cores", dataclasses.replace(NEEDS, max_calls=8))
    assert (finding.level, finding.mend) == ("warning", "profile: voice.max_calls: 2")


def test_a_laptop_without_avx512_is_ok_and_told_that_it_is_slower() -> None:
    finding = found("cpu", cpu_flags=frozenset({"avx2"}))
    assert finding.level == "ok"
    assert "no AVX-512, VNNI, bfloat16: multiplications take longer" in finding.found


def test_bfloat16_without_instructions_for_it_names_the_key() -> None:
    needs = dataclasses.replace(NEEDS, bfloat16_where="llm.workers[0].weight_format")
    finding = found("cpu", needs, cpu_flags=frozenset({"avx2"}))
    assert (finding.level, finding.mend) == ("warning", "profile: llm.workers[0].weight_format: int4")
    assert found("cpu", needs).level == "ok"


def test_full_cache_that_only_serves_is_no_problem() -> None:
    nothing_missing = dataclasses.replace(NEEDS, disk_bytes=0.0)
    assert found("cache", nothing_missing, cache_free_bytes=0).level == "ok"
    assert found("cache", nothing_missing, cache_is_writable=False).level == "warning"


def test_oldest_python_is_that_of_the_package() -> None:
    wanted = tomllib.loads(PYPROJECT.read_text())["project"]["requires-python"]
    assert wanted == ">=" + ".".join(map(str, MIN_PYTHON))


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    machine = read_machine(tmp_path / "not" / "there")
    assert machine.cpu_flags
    assert machine.num_cores > 0
    assert machine.memory_total_bytes is not None
    assert machine.memory_available_bytes is not None
    assert 0 < machine.memory_available_bytes <= machine.memory_total_bytes
    assert machine.cache_is_writable
    assert machine.cache_free_bytes


def test_cache_under_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not read_machine(tmp_path / "file" / "cache").cache_is_writable


def test_default_profile_needs_about_the_memory_that_was_measured() -> None:
    catalogue = read_catalogue()
    profile = read_profile(DEFAULT_PROFILE, catalogue)
    text = (DEFAULT_PROFILE.parents[2] / "docs/measurements.md").read_text()
    measured = re.search(r"\| \*\*sum\*\* \| \*\*(\d+)\*\*", text)
    assert measured is not None
    needs = needs_of(profile, catalogue, missing=[], running=[])
    assert needs.memory_bytes == pytest.approx(1e6 * int(measured[1]), rel=0.2)
    assert needs.disk_bytes == 0


def test_each_process_of_the_call_server_needs_its_memory() -> None:
    catalogue = read_catalogue()
    profile = read_profile(DEFAULT_PROFILE, catalogue)
    assert profile.voice is not None

    def memory(num_processes: int) -> float:
        voice = dataclasses.replace(profile.voice, max_calls=4, num_processes=num_processes)
        return needs_of(dataclasses.replace(profile, voice=voice), catalogue, [], []).memory_bytes

    assert memory(2) - memory(1) > memory(3) - memory(2) > 200e6  # with several there is a front as well


def test_what_runs_needs_nothing_more_and_what_is_missing_needs_disk() -> None:
    catalogue = read_catalogue()
    profile = read_profile(DEFAULT_PROFILE, catalogue)
    names = [name for name, _, _ in profile.edges]
    assert needs_of(profile, catalogue, [], names).memory_bytes == 0
    part = needs_of(profile, catalogue, ["smollm2-135m-instruct"], names[:-1])
    assert 0 < part.memory_bytes < 1e9
    assert part.disk_bytes > 2 * catalogue.model("smollm2-135m-instruct").size_bytes
    more = needs_of(profile, catalogue, ["smollm2-135m-instruct", "whisper-base"], [])
    assert more.disk_bytes > part.disk_bytes
