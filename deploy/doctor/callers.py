"""Can callers reach the call server, with their microphone and with their media? Pure; `read_reach` looks.

Browsers hand out the microphone in secure contexts only: https, or a page from this machine itself (W3C Secure
Contexts, 3.1). WebRTC media comes over UDP to the addresses in the profile, not through a proxy in front of the page.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deploy.doctor.findings import Finding
from deploy.ports import reachable_host
from wire.config import is_loopback


@dataclass(frozen=True)
class Reach:
    """`addresses`: those of the media. `unbindable`: why no UDP socket can be opened at one of them."""

    host: str
    port: int
    addresses: tuple[str, ...]
    unbindable: Mapping[str, str]
    has_servers: bool  # STUN or TURN


def check_callers(reach: Reach) -> Iterator[Finding]:
    yield _microphone(reach)
    yield _media(reach)
    if not reach.unbindable and not is_loopback(reach.host):
        yield _outside(reach)


def _microphone(reach: Reach) -> Finding:
    url = f"http://{reachable_host(reach.host)}:{reach.port}"
    if is_loopback(reach.host):
        found = f"browsers on this machine hand it to {url}"
        return Finding("callers", "microphone", "ok", found)
    found = f"browsers on other machines refuse it to http://{reach.host}:{reach.port}: they want https"
    mend = (
        f"a reverse proxy with TLS in front of {url}, or on the caller's machine: "
        f"ssh -L {reach.port}:{reachable_host(reach.host)}:{reach.port} HOST, then http://127.0.0.1:{reach.port}"
    )
    return Finding("callers", "microphone", "warning", found, mend)


def _media(reach: Reach) -> Finding:
    for address, why in reach.unbindable.items():
        mend = "profile: voice.webrtc.ice_addresses: addresses of this machine"
        return Finding("callers", "media", "problem", f"no UDP socket at {address}: {why}", mend)
    named = ", ".join(reach.addresses) or "every address of this machine"
    return Finding("callers", "media", "ok", f"UDP at {named}")


def _outside(reach: Reach) -> Finding:
    """Whether callers outside the local network find a way in."""
    if reach.has_servers:
        return Finding("callers", "outside", "ok", "STUN or TURN servers are set")
    if any(ipaddress.ip_address(address).is_global for address in reach.addresses):
        return Finding("callers", "outside", "ok", "one of the addresses is public")
    found = "media has private addresses only: callers outside this network cannot reach it by WebRTC"
    mend = 'profile: voice.webrtc.ice_servers: [{url: "stun:HOST:3478"}]; behind a strict firewall a TURN server'
    return Finding("callers", "outside", "warning", found, mend)
