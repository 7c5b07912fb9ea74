"""`python -m voice.worker NUMBER CONTROL`: one process of a call server that has several; `voice.front` starts it.

It is the call server of a single process, but for this: connections come from the front over CONTROL, the descriptor
of a `Channel`, instead of from a listening socket; it has a share of the lines; and what it tells of the whole it knows
from the front. When the front is gone, it ends at once.

An answer over HTTP says `connection: close`, because the next request on the connection may be for another process.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import pickle
import shutil
import signal
import socket
import sys
from contextvars import ContextVar
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voice.admission import Load, Seats
from voice.channel import FROM_FRONT, Channel, Connection, Drain, End, Failed, FromFront, Ready, Start
from voice.spread import State
from wire import log
from wire.config import ConfigError
from wire.errors import WireError
from wire.service import Lifecycle, server_for

logger = logging.getLogger("voice.worker")  # run as a module, it is __main__

BEAT_S = 1.0  # between two words to the front when nothing changes


class Arrival:
    """A connection that was handed over as a call: settled once it has a line, or is known never to take one."""

    def __init__(self) -> None:
        self.is_settled = False
        self.transport: asyncio.BaseTransport | None = None

    def settle(self) -> None:
        self.is_settled = True


_arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)  # of the request that is served
_ARRIVAL = "offhook.arrival"  # the same in the state of its scope


class Handed:
    """Around the whole application, for connections that were handed over."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        arrival = scope.get("state", {}).get(_ARRIVAL)
        _arrival.set(arrival)
        try:
            await self.app(scope, receive, closing)
        finally:
            if arrival is not None:
                arrival.settle()


class Worker:
    def __init__(self, number: int, start: Start, channel: Channel[FromFront]) -> None:
        """Raises: ConfigError, Unavailable."""
        from voice import server

        self._channel = channel
        self._metrics = start.metrics
        self._lifecycle = Lifecycle("voice", start.started_s)
        self._seats = Seats(start.share, num_all=start.config.max_calls, changed=self._on_seat)
        self._load = Load(num_free=start.config.max_calls)
        part = server.Part(self._seats, lambda: self._load, f"{number}-", self._collect)
        app = server.build(server.load(start.config, self._lifecycle), self._lifecycle, part)
        self._server = server_for(Handed(app), self._lifecycle, start.config.edge)
        self._arrivals: set[Arrival] = set()  # not settled
        self._num_settled = 0
        self._is_told = True  # the front, of what has changed

    def run(self) -> None:
        """Until drained, or the front is gone."""
        with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """The phases of `uvicorn.Server.serve`, without a listening socket."""
        server = self._server
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        with server.capture_signals():
            await server.startup(sockets=[])
            async with asyncio.TaskGroup() as self._tasks:
                self._channel.listen(self._hear, self._end_without_front)
                self._channel.send(Ready())
                beat = self._tasks.create_task(self._beat())
                await server.main_loop()
                self._channel.close()
                beat.cancel()
            await server.shutdown(sockets=[])

    def _hear(self, message: FromFront, connection: socket.socket | None) -> None:
        match message:
            case Connection():
                self._take(connection, is_call=message.is_call)
            case Load():
                self._load = message
            case Drain():
                if not self._lifecycle.draining:  # a terminal's Ctrl-C has reached us by itself
                    self._server.handle_exit(signal.SIGTERM, None)
            case End():
                self._end()

    def _take(self, connection: socket.socket | None, *, is_call: bool) -> None:
        arrival = Arrival() if is_call else None
        if arrival is not None:
            self._arrivals.add(arrival)
        if connection is not None:
            self._tasks.create_task(self._connect(connection, arrival))
            return
        logger.warning("a connection is lost: too many open files")
        if arrival is not None:
            arrival.settle()

    async def _connect(self, connection: socket.socket, arrival: Arrival | None) -> None:
        server = self._server

        def protocol() -> asyncio.Protocol:
            state: dict[str, Any] = {**server.lifespan.state, **({_ARRIVAL: arrival} if arrival is not None else {})}
            protocol_class: Any = server.config.http_protocol_class
            made: asyncio.Protocol = protocol_class(
                config=server.config, server_state=server.server_state, app_state=state
            )
            return made

        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(protocol, connection)
        except OSError as error:
            logger.debug("gone before it was served: %s", error)
            connection.close()
            if arrival is not None:
                arrival.settle()
            return
        if arrival is not None:
            arrival.transport = transport

    def _on_seat(self) -> None:
        if (arrival := _arrival.get()) is not None:
            arrival.settle()
        if self._is_told:
            self._is_told = False
            asyncio.get_running_loop().call_soon(self._tell)  # once the unit of work is counted too

    def _tell(self) -> None:
        for arrival in [*self._arrivals]:
            if arrival.is_settled or (arrival.transport is not None and arrival.transport.is_closing()):
                self._arrivals.remove(arrival)
                self._num_settled += 1
        state = State(self._seats.num_taken, self._lifecycle.num_active, self._num_settled, self._lifecycle.draining)
        self._channel.send(state)  # what is lost is said again with the next beat
        self._is_told = True

    async def _beat(self) -> None:
        while True:
            self._tell()
            await asyncio.sleep(BEAT_S)

    def _end(self) -> None:
        self._lifecycle.draining = True
        self._server.should_exit = self._server.force_exit = True

    def _end_without_front(self) -> None:
        logger.error("the front is gone")
        shutil.rmtree(self._metrics, ignore_errors=True)  # it would have removed them
        self._end()

    def _collect(self) -> bytes:
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._metrics))  # type: ignore[no-untyped-call]
        return generate_latest(registry)


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m voice.worker", description="Started by python -m voice")
    flags.add_argument("number", type=int)
    flags.add_argument("control", type=int)
    arguments = flags.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for all its processes: until we serve, the front acts
    start = pickle.load(sys.stdin.buffer)
    assert isinstance(start, Start)
    log.configure(f"voice-{arguments.number}", start.log_level)
    channel: Channel[FromFront] = Channel(socket.socket(fileno=arguments.control), FROM_FRONT)
    try:
        worker = Worker(arguments.number, start, channel)
    except (ConfigError, WireError) as error:
        channel.send(Failed(str(error)))
        return 1
    worker.run()
    logger.info("drained")
    return 0


if __name__ == "__main__":
    sys.exit(main())
