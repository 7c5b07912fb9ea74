"""What a call needs of a transport. A transport moves audio and events; it knows nothing of turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from wire import calls
from wire.pcm import Pcm16

Received: TypeAlias = Pcm16 | calls.Played | calls.Dtmf | calls.Hangup


class Transport(Protocol):
    """Audio in both directions is int16 mono at the two rates given.

    `lead_s`: how far ahead of real time the agent's audio is best given to it. `listener_delay_s`: from there until the
    caller hears it, as far as the transport knows; None where only the caller can tell. `way_s`: of a message
    of the caller's. `takes_back`: what was given to it and not heard can be dropped, by `clear` and `rewind`. `take`,
    where a transport uses it, is offered audio before which nothing of the caller's waits, and tells whether it was
    taken: then `receive` has none of it.
    """

    sample_rate_hz: int
    output_sample_rate_hz: int
    lead_s: float
    listener_delay_s: float | None
    takes_back: bool
    take: Callable[[Pcm16], bool] | None

    @property
    def way_s(self) -> float: ...

    async def receive(self) -> Received:
        """The next audio or event of the caller.

        Raises: wire.sockets.Disconnected when the caller is gone; wire.errors.PeerError for what is no message.
        """

    async def send(self, payload: Pcm16 | calls.ServerMessage) -> None:
        """In the order of the calls. Raises: wire.sockets.Disconnected."""
