"""See which addresses the call server's media would use, and whether a UDP socket can be opened there."""

from __future__ import annotations

import socket

from deploy.doctor.callers import Reach
from voice.config import VoiceConfig
from wire.ice import addresses_for

# RFC 5737, a network for documentation. Connecting a UDP socket sends nothing; it chooses the source address.
SOMEWHERE = ("192.0.2.1", 9)


def read_reach(voice: VoiceConfig) -> Reach:
    addresses = addresses_for(voice.edge.host, voice.webrtc.ice_addresses) or _outgoing()
    errors = {address: _udp_error(address) for address in addresses}
    return Reach(
        host=voice.edge.host,
        port=voice.edge.port,
        addresses=addresses,
        unbindable={address: error for address, error in errors.items() if error},
        has_servers=bool(voice.webrtc.ice_servers),
    )


def _outgoing() -> tuple[str, ...]:
    """The address this machine reaches others from; none without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(SOMEWHERE)
        except OSError:
            return ()
        return (str(sock.getsockname()[0]),)


def _udp_error(address: str) -> str:
    """Empty when a socket can be opened."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((address, 0))
    except OSError as error:
        return error.strerror or str(error)
    return ""
