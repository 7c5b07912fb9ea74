"""Read the key files that a profile names, and find out who sends which to whom."""

from __future__ import annotations

import hashlib
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from deploy.doctor.keys import KeyFile, Use
from deploy.profile import Profile
from wire.config import ConfigError, is_loopback, read_key, read_secret


def read_keys(profile: Profile) -> tuple[list[KeyFile], list[Use]]:
    files = {where: _read(where, path, is_key) for where, path, is_key in _named(profile)}
    by_port = {edge.port: files.get(f"{where}.api_key_file") for _, where, edge in profile.edges}
    uses = []
    for client, url_key, url in _clients(profile):
        parts = urllib.parse.urlsplit(url)
        if is_loopback(parts.hostname or "") and parts.port in by_port:
            uses.append(Use(client, url_key, files.get(client), by_port[parts.port]))
    return list(files.values()), uses


def _named(profile: Profile) -> Iterator[tuple[str, Path, bool]]:
    """Key of the profile, path, and whether it is one of our API keys."""
    for _, where, edge in profile.edges:
        if edge.api_key_file is not None:
            yield f"{where}.api_key_file", edge.api_key_file, True
    if (voice := profile.voice) is not None:
        if voice.service_key_file is not None:
            yield "voice.service_key_file", voice.service_key_file, True
        for i, server in enumerate(voice.webrtc.ice_servers):
            if server.credential_file is not None:
                yield f"voice.webrtc.ice_servers[{i}].credential_file", server.credential_file, False
    for i, model in enumerate(profile.router.models if profile.router is not None else ()):
        for j, worker in enumerate(model.workers):
            if worker.api_key_file is not None:
                yield f"router.models[{i}].workers[{j}].api_key_file", worker.api_key_file, True


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
        secret = read_key(path) if is_key else read_secret(path, "TURN password")
    except ConfigError as error:
        exists, is_open = _look(path)
        return KeyFile(where, path, error=str(error), exists=exists, is_open=is_open)
    return KeyFile(where, path, digest=hashlib.sha256(secret.encode()).hexdigest())


def _look(path: Path) -> tuple[bool, bool]:
    """Whether it is there, and whether everyone may read it."""
    try:
        return True, bool(path.stat().st_mode & 0o004)
    except OSError:
        return False, False
