"""Are the packages there, in versions that fit, and does their native code load? Pure; see `deploy.doctor.imports`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from deploy.distribution import Distribution
from deploy.doctor.findings import Finding

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # as in the Makefile

Outcome: TypeAlias = Literal["loads", "fails", "crashes", "hangs"]


@dataclass(frozen=True)
class Import:
    """How it went to import a module in a process of its own; `detail` is its last line on stderr, or its signal."""

    module: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Torch:
    version: str
    cuda: str | None  # of the build
    device: str | None  # a GPU that it can use


def install(requirement: str) -> str:
    """The command that brings a package that `requirement` (PEP 508) describes."""
    command = f"{sys.executable} -m pip install {shlex.quote(requirement)}"
    return f"{command} --index-url {TORCH_CPU_INDEX}" if requirement.startswith("torch==") else command


def check_distribution(distribution: Distribution | None) -> Finding:
    if distribution is None:
        mend = "make serve, in the folder with pyproject.toml"
        return Finding("packages", "offhook", "problem", "neither installed nor run from its source", mend)
    if not distribution.is_installed:
        found = f"{distribution.version}, run from its source without being installed: no command `offhook`"
        return Finding("packages", "offhook", "ok", found)
    return Finding("packages", "offhook", "ok", distribution.version)


def check_versions(requirements: Sequence[str], installed: Mapping[str, str]) -> Iterator[Finding]:
    """`installed`: versions by the name that a requirement gives, without those that are not installed."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        mend = install("packaging")
        yield Finding("packages", "versions", "problem", "cannot be compared: 'packaging' is not installed", mend)
        return
    num_good = 0
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        wanted, version = f"{requirement.name}{requirement.specifier}", installed.get(requirement.name)
        if version is None:
            yield Finding("packages", requirement.name, "problem", "not installed", install(wanted))
        elif not requirement.specifier.contains(version, prereleases=True):
            found = f"{version}, but {requirement.specifier} is needed"
            yield Finding("packages", requirement.name, "problem", found, install(wanted))
        else:
            num_good += 1
    yield Finding("packages", "versions", "ok", f"{num_good} packages are installed in versions that fit")


def name_of(requirement: str) -> str:
    """The distribution's name, also where `packaging` is missing."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return found[0]


def check_imports(imports: Sequence[Import], requirements: Sequence[str]) -> Iterator[Finding]:
    wanted = {name_of(text): text.partition(";")[0].strip() for text in requirements}
    good = [each.module for each in imports if each.outcome == "loads"]
    for each in imports:
        if each.outcome != "loads":
            found = f"its import {each.outcome}" + (f": {each.detail}" if each.detail else "")
            mend = install(wanted.get(each.module, each.module)).replace(
                " install ", " install --force-reinstall --no-deps "
            )
            yield Finding("packages", each.module, "problem", found, mend)
    if good:
        yield Finding("packages", "native code", "ok", f"{', '.join(good)} load")


def check_torch(torch: Torch | None) -> Iterator[Finding]:
    if torch is None:
        return
    if torch.cuda is None:
        yield Finding("packages", "torch", "ok", f"{torch.version}, a CPU build; no GPU is needed")
    elif torch.device is not None:
        found = f"{torch.version}, CUDA {torch.cuda}, {torch.device}; the embedded engines run on the CPU"
        yield Finding("packages", "torch", "ok", found)
    else:
        found = f"{torch.version}, built for CUDA {torch.cuda}, but no GPU is usable; works on the CPU"
        yield Finding("packages", "torch", "ok", found)
