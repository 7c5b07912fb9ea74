"""A profile made over for a measurement on this machine, beside whatever else runs here. Pure.

What it says about the agent stays. Every process gets a port of its own on 127.0.0.1, and addresses that led to one of
them lead there; API keys stay demanded. The call server is parted from the services, because its addresses lead to
proxies, and `offhook up` takes an address of this machine only when it leads to its own processes.
"""

from __future__ import annotations

import copy
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load.errors import LoadError
from load.faults.stages import Stage
from wire.config import is_loopback

LOOPBACK = "127.0.0.1"
ADDRESSES: dict[Stage, str] = {"stt": "stt_url", "llm": "llm_url", "tts": "tts_url"}  # of section `voice`
CALL_SERVER = "voice"
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Derived:
    """`services` is empty where all of them run elsewhere."""

    services: Mapping[str, Any]
    call_server: Mapping[str, Any]
    port: int  # of the call server
    targets: Mapping[Stage, str]  # base URLs of the services behind the stages
    key_files: Mapping[str, Path]  # of the API keys that a section's process demands of its clients

    def call_server_at(self, addresses: Mapping[Stage, str]) -> dict[str, Any]:
        """The call server's profile, with other addresses of its services."""
        named = {ADDRESSES[stage]: url for stage, url in addresses.items()}
        return {**self.call_server, CALL_SERVER: {**self.call_server[CALL_SERVER], **named}}


def overridden(profile: Mapping[str, Any], overrides: Mapping[str, object]) -> dict[str, Any]:
    """`overrides`: dotted path to value, such as `voice.max_calls` to 4.

    Raises: LoadError for a path through what is no section.
    """
    made = copy.deepcopy(dict(profile))
    for path, value in overrides.items():
        *names, key = path.split(".")
        section: Any = made
        for name in names:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise LoadError(f"'{path}' cannot be set in the profile: '{name}' is no section")
        section[key] = value
    return made


def num_ports(profile: Mapping[str, Any]) -> int:
    """How many processes of it listen."""
    return sum(1 for _ in _edges(profile))


def derived(profile: Mapping[str, Any], ports: Sequence[int]) -> Derived:
    """`profile`: the file as plain values, unchecked: `offhook up` does that. `ports`: as many as `num_ports`.

    Raises: LoadError when no call server is in it, or not its addresses.
    """
    made = copy.deepcopy(dict(profile))
    voice = made.get(CALL_SERVER)
    if not isinstance(voice, dict) or not isinstance(voice.get("edge"), dict):
        raise LoadError("the profile has no call server: no section 'voice' with an 'edge'")
    moved: dict[int, int] = {}
    for edge, port in zip(_edges(made), ports, strict=True):
        if isinstance(before := edge.get("port"), int):
            moved[before] = port
        edge |= {"port": port, "host": LOOPBACK}
    _readdress(made, moved)
    if isinstance(webrtc := voice.get("webrtc"), dict):
        webrtc.pop("ice_addresses", None)  # those of the host it was to listen on
    targets = {stage: voice.get(key) for stage, key in ADDRESSES.items()}
    if missing := [f"voice.{ADDRESSES[stage]}" for stage, url in targets.items() if not isinstance(url, str)]:
        raise LoadError(f"the profile names no {' and no '.join(missing)}")
    return Derived(
        services={name: section for name, section in made.items() if name != CALL_SERVER},
        call_server={CALL_SERVER: voice},
        port=voice["edge"]["port"],
        targets={stage: str(url) for stage, url in targets.items()},
        key_files=dict(_key_files(made)),
    )


def _edges(profile: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of every section, and of the LLM's workers."""
    for section in profile.values():
        if not isinstance(section, dict):
            continue
        workers = section.get("workers")
        for each in (section, *(workers if isinstance(workers, list) else ())):
            if isinstance(each, dict) and isinstance(edge := each.get("edge"), dict):
                yield edge


def _key_files(profile: Mapping[str, Any]) -> Iterator[tuple[str, Path]]:
    for name, section in profile.items():
        if isinstance(section, dict) and isinstance(edge := section.get("edge"), dict) and "api_key_file" in edge:
            yield name, Path(str(edge["api_key_file"])).expanduser()


def _readdress(value: object, moved: Mapping[int, int]) -> None:
    """In place, wherever an address stands."""
    if isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str) and isinstance(key, str) and key.endswith("url"):
                value[key] = _at_new_port(each, moved)
            else:
                _readdress(each, moved)
    elif isinstance(value, list):
        for each in value:
            _readdress(each, moved)


def _at_new_port(url: str, moved: Mapping[int, int]) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        return url
    if not is_loopback(parts.hostname or "") or port not in moved:
        return url
    return parts._replace(netloc=f"{LOOPBACK}:{moved[port]}").geturl()
