"""The way of calls with faults on it: one address to call instead of the server's, whatever the transport.

A call over WebSocket goes through `TcpRelay`, one over WebRTC (an http address) through `RtcFront` and its relays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import urllib.parse
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import numpy as np

from load.errors import LoadError
from load.faults.breaks import BREAKS, Break
from load.faults.impairment import NETWORK_FAULTS, Impairment, NetworkFault, for_streams
from load.faults.signalling import RtcFront
from load.faults.tcp import TcpRelay, instead, target_of
from load.faults.udp import Statistics

PathFault = NetworkFault | Break


class CallPath:
    """`url` is what to call."""

    def __init__(self, url: str, relay: TcpRelay | RtcFront | None) -> None:
        self.url = url
        self._relay = relay

    def counts(self) -> Mapping[str, float]:
        """What passed and what did not, for the report; of all calls together."""
        match self._relay:
            case TcpRelay():
                return dataclasses.asdict(self._relay.statistics)
            case RtcFront():
                ups = _sum([relay.up for relay in self._relay.relays], "up")
                return {**ups, **_sum([relay.down for relay in self._relay.relays], "down")}
            case None:
                return {}

    def change(self, faults: Iterable[NetworkFault]) -> None:
        """From now on, on running calls too. Raises: LoadError for a path of TCP, or one that was opened without."""
        if not isinstance(self._relay, RtcFront):
            raise LoadError("only a WebRTC call's path changes while it runs", "set these faults before the call")
        self._relay.impair(*_both(faults))

    def do(self, what: Break) -> None:
        """Now, to every running connection. Raises: LoadError where there are none."""
        if not isinstance(self._relay, TcpRelay):
            raise LoadError(f"{what.KIND} is of a TCP connection", "give a ws:// address, and a path with faults")
        self._relay.do(what)


@contextlib.asynccontextmanager
async def call_path(
    url: str, faults: Sequence[PathFault], rng: np.random.Generator, *, port: int = 0, is_open: bool = False
) -> AsyncIterator[CallPath]:
    """To the server at `url`; without faults it is the url itself, unless `is_open` for those that come later.

    Raises: LoadError for an address that is none, a fault that the transport cannot have, or a port that is taken.
    """
    network = [fault for fault in faults if isinstance(fault, NETWORK_FAULTS)]
    breaks = [fault for fault in faults if isinstance(fault, BREAKS)]
    if not faults and not is_open:
        yield CallPath(url, None)
        return
    host, target_port = target_of(url)
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme in ("https", "wss"):
        raise LoadError(f"{url}: faults need a connection without TLS", "give a ws:// or http:// address")
    try:
        up, down = _both(for_streams(network) if scheme == "ws" else network)
    except ValueError as error:
        raise LoadError(str(error), f"the calls go over {'TCP' if scheme == 'ws' else 'UDP'}") from None
    if scheme == "ws":
        relay = TcpRelay(host, target_port, up, down, rng, breaks)
        async with relay.open(port) as address:
            yield CallPath(instead(url, address), relay)
        return
    if breaks:
        raise LoadError(f"{breaks[0].KIND} is of a TCP connection", "the calls go over UDP: give a ws:// address")
    front = RtcFront(f"http://{host}:{target_port}", up, down, rng)
    async with front.open(port) as base:
        yield CallPath(instead(url, target_of(base)), front)


def _both(faults: Iterable[NetworkFault]) -> tuple[Impairment, Impairment]:
    """Raises: ValueError."""
    faults = tuple(faults)
    return Impairment.of(faults, "up"), Impairment.of(faults, "down")


def _sum(statistics: Sequence[Statistics], direction: str) -> dict[str, float]:
    rows = [dataclasses.asdict(each) for each in statistics] or [dataclasses.asdict(Statistics())]
    return {
        f"{name}_{direction}": (max if name == "worst_late_s" else sum)(row[name] for row in rows) for name in rows[0]
    }
