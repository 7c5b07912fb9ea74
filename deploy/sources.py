"""Where the bytes of the catalogue's files can be fetched from.

Wheels: pip knows the user's indexes, mirrors and find-links, so pip is asked for the URL and SHA-256 (its installation
report) and nothing is installed; the transfer itself is ours, because pip can neither continue a broken one nor
fetch a wheel for another Python. Hub files: the URL follows from repository, revision and path.
"""

from __future__ import annotations

import json
import netrc
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from deploy.catalogue import HubFile
from deploy.download import Remote
from deploy.errors import FetchError

PIP_TIMEOUT_S = 300.0
PIP_REPORT = (
    "install",
    "--dry-run",
    "--ignore-installed",
    "--no-deps",
    "--ignore-requires-python",  # these wheels are opened as archives, never imported
    "--only-binary=:all:",
    "--disable-pip-version-check",
    "--quiet",
    "--report=-",
)
DEFAULT_HUB_URL = "https://huggingface.co"

Resolve: TypeAlias = Callable[[Sequence[str]], Mapping[str, Remote]]


def resolve_with_pip(packages: Sequence[str]) -> dict[str, Remote]:
    """Where pip would take the pinned `packages` (name==version) from.

    Raises: FetchError.
    """
    report = json.loads(_pip(*PIP_REPORT, *packages))
    found = {}
    for item in report["install"]:
        info = item["download_info"]
        name = f"{_canonical(item['metadata']['name'])}=={item['metadata']['version']}"
        hashes = info.get("archive_info", {}).get("hashes", {})
        found[name] = Remote(info["url"], hashes.get("sha256"), _credentials(info["url"]))
    missing = [package for package in packages if _canonical_pin(package) not in found]
    if missing:
        raise FetchError(f"pip does not say where {missing[0]} is to be found")
    return {package: found[_canonical_pin(package)] for package in packages}


def hub_remote(file: HubFile, sha256: str) -> Remote:
    """`HF_ENDPOINT` names a mirror, as for the hub's own client."""
    base = os.environ.get("HF_ENDPOINT", DEFAULT_HUB_URL).rstrip("/")
    path = urllib.parse.quote(f"{file.repository}/resolve/{file.revision}/{file.path}")
    return Remote(f"{base}/{path}", sha256)


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"pip gave no answer within {PIP_TIMEOUT_S:.0f} s", "check the network and proxy") from None
    if done.returncode == 0:
        return done.stdout
    if "No module named pip" in done.stderr:
        raise FetchError(
            f"{sys.executable} has no pip, which finds the weights' wheels",
            f"install it: {sys.executable} -m ensurepip",
        )
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
    problem = errors[-1].removeprefix("ERROR:").strip() if errors else f"exit code {done.returncode}"
    raise FetchError(
        f"pip cannot find a wheel: {without_credentials(problem)}",
        "check the network, and pip's index settings: `python -m pip config list`",
    )


def without_credentials(text: str) -> str:
    return re.sub(r"//[^/\s@]+@", "//", text)


def _canonical(name: str) -> str:
    """Name comparison of the packaging specifications ("Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _canonical_pin(package: str) -> str:
    name, _, version = package.partition("==")
    return f"{_canonical(name)}=={version}"


def _credentials(url: str) -> str | None:
    """`user:password` for the host of `url`, from pip's settings or the user's netrc; pip's report leaves them out."""
    host = urllib.parse.urlsplit(url).hostname
    if host is None:
        return None
    for candidate in re.findall(r"https?://[^\s'\"]+@[^\s'\"]+", _pip("config", "list")):
        parts = urllib.parse.urlsplit(candidate)
        if parts.hostname == host:
            return f"{urllib.parse.unquote(parts.username or '')}:{urllib.parse.unquote(parts.password or '')}"
    try:
        entry = netrc.netrc().authenticators(host)
    except (FileNotFoundError, netrc.NetrcParseError):
        return None
    return f"{entry[0]}:{entry[2]}" if entry else None
