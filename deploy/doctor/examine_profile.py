"""The checks that a profile asks for, and what it needs of the machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from deploy.catalogue import Catalogue, read_catalogue
from deploy.doctor.callers import check_callers
from deploy.doctor.findings import Finding
from deploy.doctor.keys import check_keys
from deploy.doctor.machine import Needs
from deploy.doctor.needs import needs_of
from deploy.doctor.read_keys import read_keys
from deploy.doctor.read_reach import read_reach
from deploy.doctor.read_services import read_elsewhere, read_listeners
from deploy.doctor.services import check_services
from deploy.doctor.weights import check_weights, read_weights
from deploy.paths import offhook
from deploy.profile import Profile, log_folder, nearest_profile, read_profile
from deploy.store import Store
from wire.config import ConfigError

CORRECT_IT = "correct it; docs/profile.md lists every key, its default and its unit"


def examine_profile(path: Path, catalogue_path: Path, cache: Path) -> tuple[Needs, list[Finding]]:
    """A profile that cannot be read is a finding, and needs nothing."""
    try:
        catalogue = read_catalogue(catalogue_path)
        profile = read_profile(path, catalogue)
    except ConfigError as error:
        mend = CORRECT_IT if os.path.lexists(path) else nearest_profile(path)
        return Needs(), [Finding("profile", "profile", "problem", str(error), mend)]
    return _examine(path, profile, catalogue, cache)


def _examine(path: Path, profile: Profile, catalogue: Catalogue, cache: Path) -> tuple[Needs, list[Finding]]:
    sections = ", ".join(name for name, _, _ in profile.edges)
    weights = read_weights(Store(cache), [(catalogue.model(model), where) for model, where in profile.models.items()])
    listeners = asyncio.run(read_listeners(profile, path))
    elsewhere = asyncio.run(read_elsewhere(profile))
    missing = [each.model.id for each in weights if not each.is_complete]
    running = [listener.name for listener in listeners if listener.is_ours]
    up, again = (f"{offhook()} {command} --profile {path}" for command in ("up", "doctor"))
    findings = [
        Finding("profile", "profile", "ok", f"{path}: {sections}"),
        *check_weights(weights, offhook()),
        *check_services(listeners, elsewhere, up, again, path, log_folder(cache, profile)),
        *(check_callers(read_reach(profile.voice)) if profile.voice is not None else ()),
        *check_keys(*read_keys(profile)),
    ]
    return needs_of(profile, catalogue, missing, running), findings
