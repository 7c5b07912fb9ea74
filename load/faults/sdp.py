"""The addresses in an SDP, and the same SDP with others in their place. Pure.

A relay that media must pass says of itself what the other side said: every candidate (RFC 8839, 5.1) is replaced by the
relay's address that stands for it. What no relay can stand for is left out, and with it the word that no more
candidates come, after which an agent gives up: TCP candidates, names under `.local`, components but RTP. At the relay
all candidates are of type host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TypeAlias

Address: TypeAlias = tuple[str, int]

_CANDIDATE = "a=candidate:"
_END = "a=end-of-candidates"
_NOWHERE = ("0.0.0.0", 9)  # RFC 8840, 4.1: no default candidate is known yet


def candidates(sdp: str) -> list[Address]:
    """Where media may be sent, each address once, the one its owner likes best first."""
    found: dict[Address, int] = {}
    for line in sdp.splitlines():
        if (address := _usable(line)) is not None:
            priority = int(line.split()[3])
            found[address] = max(priority, found.get(address, 0))
    return sorted(found, key=lambda address: -found[address])


def rewritten(sdp: str, places: Mapping[Address, Address]) -> str:
    """`sdp`, or a fragment of one (RFC 8840), with `places` instead of the addresses they are for."""
    sections: list[list[str]] = [[]]
    for line in sdp.splitlines():
        if line.startswith("m="):
            sections.append([])
        sections[-1].append(line)
    is_complete = all(_usable(line) in places for line in sdp.splitlines() if line.startswith(_CANDIDATE))
    lines = [line for section in sections for line in _section(section, places)]
    if not is_complete:
        lines = [line for line in lines if not line.startswith(_END)]
    return "".join(f"{line}\r\n" for line in lines)


def _section(lines: list[str], places: Mapping[Address, Address]) -> list[str]:
    """One description of media, or what stands before the first."""
    default = _default(lines)
    host, port = _NOWHERE if default is None else places.get(default, _NOWHERE)
    result: list[str] = []
    placed: set[str] = set()  # two candidates may have one place
    for line in lines:
        if line.startswith(_CANDIDATE):
            address = _usable(line)
            new = _placed(line, places[address]) if address is not None and address in places else None
            if new is not None and new not in placed:
                placed.add(new)
                result.append(new)
        elif line.startswith("c="):
            result.append(f"c=IN {_family(host)} {host}")
        elif line.startswith("a=rtcp:"):
            result.append(f"a=rtcp:{_NOWHERE[1]} IN IP4 {_NOWHERE[0]}")
        else:
            result.append(_with_port(line, port) if line.startswith("m=") else line)
    return result


def _with_port(line: str, port: int) -> str:
    """A port of 0 is a refusal and stays one (RFC 9429, 5.3.1)."""
    kind, _, rest = line.partition(" ")
    offered, _, rest = rest.partition(" ")
    return f"{kind} {port} {rest}" if offered.isdecimal() and offered != "0" else line


def _default(lines: list[str]) -> Address | None:
    port = next((line.split()[1] for line in lines if line.startswith("m=") and len(line.split()) > 3), "")
    host = next((line.split()[-1] for line in lines if line.startswith("c=")), "")
    return (host, int(port)) if port.isdecimal() else None


def _usable(line: str) -> Address | None:
    """The address of a candidate line that UDP can be sent to."""
    if not line.startswith(_CANDIDATE):
        return None
    parts = line.split()
    if len(parts) < 8 or not (parts[3].isdecimal() and parts[5].isdecimal()):
        return None
    _, component, transport, _, host, port, *_ = parts
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return None
    return (host, int(port)) if component == "1" and transport.lower() == "udp" and 0 < int(port) < 65536 else None


def _placed(line: str, place: Address) -> str:
    parts = line.split()
    parts[4], parts[5] = place[0], str(place[1])
    rest = parts[8:]
    kept = [
        f"{key} {value}" for key, value in zip(rest[::2], rest[1::2], strict=False) if key not in ("raddr", "rport")
    ]
    return " ".join([*parts[:6], "typ", "host", *kept])


def _family(host: str) -> str:
    return "IP6" if ":" in host else "IP4"
