"""Which addresses a call's media may use: the part of ICE (RFC 8445) that is policy.

Left alone, aioice offers every address of the machine but loopback, and aiortc asks a public STUN server. Here nobody
is asked but those the profile names, host candidates are those of the addresses it names, and a server that is open to
this machine only does not look at candidates elsewhere. Candidates under a `.local` name are never looked up: that
would ask the whole network by multicast DNS, and a browser that hides its addresses so finds us by its own checks.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

import aioice.ice

from wire.config import is_loopback

MAX_CANDIDATES = 32  # of a peer, in all: a machine with many addresses names a dozen, and each is checked
MAX_PORT_DIGITS = 5

_every_address = aioice.ice.get_host_addresses


def addresses_for(host: str, named: Sequence[str]) -> tuple[str, ...]:
    """Addresses for host candidates of a server that listens on `host`; none means every one of the machine."""
    if named:
        return tuple(named)
    if is_loopback(host):
        return ("127.0.0.1",)
    try:
        return () if ipaddress.ip_address(host).is_unspecified else (host,)
    except ValueError:
        return ()


def use_addresses(addresses: Sequence[str]) -> None:
    """Host candidates of every connection made in this process from now on; none means every address but loopback.

    aioice has no option for it: it calls this function of its module, which a test watches over.
    """
    aioice.ice.get_host_addresses = (lambda use_ipv4, use_ipv6: list(addresses)) if addresses else _every_address


def admits(host: str, addresses: Sequence[str]) -> bool:
    """Whether a peer's candidate at `host` is to be checked from `addresses`."""
    try:
        remote = ipaddress.ip_address(host)
    except ValueError:
        return False
    return remote.is_loopback or not addresses or not all(is_loopback(address) for address in addresses)


def admitted_lines(lines: Iterable[str], addresses: Sequence[str]) -> list[str]:
    """SDP lines without the candidates that are not to be checked, and without the word that no more will come.

    After that word aioice gives up when it has no pair left to check, although the peer may still find us.
    """
    return [line for line in lines if not _is_barred(line, addresses)]


def _is_barred(line: str, addresses: Sequence[str]) -> bool:
    if line.startswith("a=end-of-candidates"):
        return True
    if not line.startswith("a=candidate:"):
        return False
    parts = line.split()  # RFC 8839, 5.1: foundation component transport priority address port typ ...
    if len(parts) < 8 or not parts[5].isdecimal() or len(parts[5]) > MAX_PORT_DIGITS:
        return True
    _, component, transport, _, host, port, *_ = parts
    is_usable = component == "1" and transport.lower() == "udp" and 0 < int(port) < 65536
    return not (is_usable and admits(host, addresses))
