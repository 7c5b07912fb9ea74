"""Read the key files that a profile names, and find out who sends which to whom."""

from __future__ import annotations

import hashlib
import stat
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from deploy.doctor.keys import KeyFile, Use
from deploy.profile import Profile, read_key_file
from wire.config import ConfigError, is_loopback


def read_keys(profile: Profile) -> tuple[list[KeyFile], list[Use]]:
    files = {where: _read(where, path, is_key) for where, (path, is_key) in profile.key_files.items()}
    by_port = {edge.port: files.get(f"{where}.api_key_file") for _, where, edge in profile.edges}
    uses = []
    for client, url_key, url in _clients(profile):
        parts = urllib.parse.urlsplit(url)
        if is_loopback(parts.hostname or "") and parts.port in by_port:
            uses.append(Use(client, url_key, files.get(client), by_port[parts.port]))
    return list(files.values()), uses


def _clients(profile: Profile) -> Iterator[tuple[str, str, str]]:
    """Where the sent key is named, where the address is named, and the address."""
    if (voice := profile.voice) is not None:
        for name, url in (("stt_url", voice.stt_url), ("tts_url", voice.tts_url), ("llm_url", voice.llm_url)):
            yield "voice.service_key_file", f"voice.{name}", url
    for i, model in enumerate(profile.router.models if profile.router is not None else ()):
        for j, worker in enumerate(model.workers):
            where = f"router.models[{i}].workers[{j}]"
            yield f"{where}.api_key_file", f"{where}.url", worker.url


def _read(where: str, path: Path, is_key: bool) -> KeyFile:
    try:
        secret = read_key_file(path, is_key=is_key)
    except ConfigError as error:
        return _unread(where, path, str(error))
    return KeyFile(where, path, digest=hashlib.sha256(secret.encode()).hexdigest())


def _unread(where: str, path: Path, error: str) -> KeyFile:
    try:
        mode = path.stat().st_mode
    except OSError:
        return KeyFile(where, path, error=error, exists=False)
    return KeyFile(where, path, error=error, is_file=stat.S_ISREG(mode), is_open=bool(mode & 0o004))
