"""All checks in their order. Never raises for what it finds: a broken profile and a missing package are findings too.

What needs packages is imported where it is used, so that the checks which need none are made without them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from deploy.catalogue import Catalogue
    from deploy.profile import Profile

SEE_PACKAGES = "install what the group 'packages' names, then run this again"


def examine(profile: Path, catalogue: Path, cache: Path) -> list[Finding]:
    packages = list(_packages())
    try:
        from deploy.catalogue import read_catalogue
        from deploy.profile import read_profile
        from wire.config import ConfigError
    except ImportError as error:
        unread = Finding("profile", "profile", "problem", f"cannot be read: {error}", SEE_PACKAGES)
        return [*check_machine(read_machine(cache), Needs()), *packages, unread]
    try:
        known = read_catalogue(catalogue)
        parsed = read_profile(profile, known)
    except ConfigError as error:
        broken = Finding("profile", "profile", "problem", str(error), _mend_profile(profile))
        return [*check_machine(read_machine(cache), Needs()), *packages, broken]
    sections = ", ".join(name for name, _, _ in parsed.edges)
    good = Finding("profile", "profile", "ok", f"{profile}: {sections}")
    machine, rest = _with_profile(parsed, profile, known, cache)
    return [*machine, *packages, good, *rest]


def _packages() -> Iterator[Finding]:
    distribution = read_distribution()
    yield check_distribution(distribution)
    requirements = distribution.requirements if distribution is not None else ()
    names = [name_of(text) for text in requirements]
    versions = read_versions(names)
    yield from check_versions(requirements, versions)
    absent = set(names) - set(versions)
    imports, torch = asyncio.run(_imports([name for name in NATIVE_MODULES if name not in absent]))
    yield from check_imports(imports, requirements)
    yield from check_torch(torch)


async def _imports(modules: list[str]) -> tuple[list[Import], Torch | None]:
    async with asyncio.TaskGroup() as group:
        imports, torch = group.create_task(try_imports(modules)), group.create_task(try_torch())
    result, found = torch.result()
    return [*imports.result(), result], found


def _with_profile(
    profile: Profile, path: Path, catalogue: Catalogue, cache: Path
) -> tuple[list[Finding], list[Finding]]:
    """Findings about the machine, and all that come after those about the packages."""
    from deploy.doctor.keys import check_keys
    from deploy.doctor.needs import needs_of
    from deploy.doctor.read_keys import read_keys
    from deploy.doctor.read_services import read_elsewhere, read_listeners
    from deploy.doctor.services import check_services
    from deploy.doctor.weights import check_weights, read_weights
    from deploy.store import Store

    weights = read_weights(Store(cache), [(catalogue.model(model), where) for model, where in profile.models.items()])
    listeners = asyncio.run(read_listeners(profile, path))
    elsewhere = asyncio.run(read_elsewhere(profile))
    missing = [each.model.id for each in weights if each.is_missing]
    running = [listener.name for listener in listeners if listener.is_ours]
    machine = check_machine(read_machine(cache), needs_of(profile, catalogue, missing, running))
    rest = [
        *check_weights(weights, offhook()),
        *check_services(listeners, elsewhere, f"{offhook()} up --profile {path}", path, cache / "logs"),
        *_callers(profile),
        *check_keys(*read_keys(profile)),
    ]
    return list(machine), rest


def _callers(profile: Profile) -> Iterator[Finding]:
    if profile.voice is None:
        return
    try:
        from deploy.doctor.callers import check_callers
        from deploy.doctor.read_reach import read_reach
    except ImportError as error:
        yield Finding("callers", "media", "problem", f"cannot be looked at: {error}", SEE_PACKAGES)
        return
    yield from check_callers(read_reach(profile.voice))


def _mend_profile(profile: Path) -> str:
    if not profile.exists():
        from deploy.profile import nearest_profile

        return nearest_profile(profile)
    return "correct it; docs/profile.md lists every key, its default and its unit"
