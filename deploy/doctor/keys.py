"""Key files: can they be read, and does each client send the key that its service demands? Pure.

Keys themselves stay in `deploy.doctor.read_keys`; here they are digests, to be compared and never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.doctor.findings import Finding


@dataclass(frozen=True)
class KeyFile:
    """`where`: the profile's key that names it. `error`: what is wrong with it; then `digest` is empty."""

    where: str
    path: Path
    digest: str = ""
    error: str = ""
    exists: bool = True
    is_file: bool = True  # no folder, device or pipe
    is_open: bool = False  # readable by everyone


@dataclass(frozen=True)
class Use:
    """A client and the service it asks, both of this profile; None for no key."""

    client: str  # key of the profile that names what it sends
    url: str  # key of the profile that names whom it asks
    sent: KeyFile | None
    demanded: KeyFile | None


def check_keys(files: Sequence[KeyFile], uses: Sequence[Use]) -> Iterator[Finding]:
    for file in files:
        yield _file(file)
    for use in uses:
        if use.demanded is not None and not use.demanded.error and (use.sent is None or not use.sent.error):
            yield from _use(use, use.demanded)


def _file(file: KeyFile) -> Finding:
    if not file.error:
        return Finding("keys", file.where, "ok", f"{file.path} is readable, and not by everyone")
    if not file.is_file:
        mend = f"profile: {file.where}: a file that holds the key"
    elif file.is_open:
        mend = f"chmod 600 {file.path}"
    elif file.exists:
        mend = f"(umask 077; openssl rand -hex 24 > {file.path}), or make it readable for this user"
    else:
        mend = f"mkdir -p {file.path.parent} && (umask 077; openssl rand -hex 24 > {file.path})"
    return Finding("keys", file.where, "problem", file.error, mend)


def _use(use: Use, demanded: KeyFile) -> Iterator[Finding]:
    mend = f"profile: {use.client}: {demanded.path}"
    if use.sent is None:
        yield Finding("keys", use.client, "problem", f"not set, but the service at {use.url} demands a key", mend)
    elif use.sent.digest != demanded.digest:
        found = f"{use.sent.path} holds another key than the service at {use.url} demands ({demanded.path})"
        yield Finding("keys", use.client, "problem", found, mend)
