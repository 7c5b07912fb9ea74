"""All checks in their order. Never raises for what it finds: a broken profile and a missing package are findings too.

What needs packages is `deploy.doctor.examine_profile`; the rest imports the standard library alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from pathlib import Path

from deploy.distribution import read_distribution
from deploy.doctor.findings import Finding
from deploy.doctor.imports import NATIVE_MODULES, read_versions, try_imports, try_torch
from deploy.doctor.machine import Needs, check_machine
from deploy.doctor.packages import (
    Import,
    Torch,
    check_distribution,
    check_imports,
    check_torch,
    check_versions,
    name_of,
)
from deploy.doctor.read_machine import read_machine
from deploy.paths import offhook

SEE_PACKAGES = "install what the group 'packages' names, then run this again"


def examine(profile: Path, catalogue: Path, cache: Path) -> list[Finding]:
    packages = list(_packages())
    try:
        from deploy.doctor.examine_profile import examine_profile
    except ImportError as error:
        unread = Finding("profile", "profile", "problem", f"cannot be read: {error}", SEE_PACKAGES)
        needs, rest = Needs(), [unread]
    else:
        needs, rest = examine_profile(profile, catalogue, cache)
    return [*check_machine(read_machine(cache), needs, offhook()), *packages, *rest]


def _packages() -> Iterator[Finding]:
    distribution = read_distribution()
    yield check_distribution(distribution)
    requirements = distribution.requirements if distribution is not None else ()
    names = [name_of(text) for text in requirements]
    versions = read_versions(names)
    yield from check_versions(requirements, versions)
    absent = set(names) - set(versions)
    imports, torch = asyncio.run(_imports(absent))
    yield from check_imports(imports, requirements)
    yield from check_torch(torch)


async def _imports(absent: Collection[str]) -> tuple[list[Import], Torch | None]:
    """`absent`: packages that are not installed, which is a finding already."""
    modules = [name for name in NATIVE_MODULES if name not in absent]
    if "torch" in absent:
        return await try_imports(modules), None
    async with asyncio.TaskGroup() as group:
        imports, torch = group.create_task(try_imports(modules)), group.create_task(try_torch())
    result, found = torch.result()
    return [*imports.result(), result], found
