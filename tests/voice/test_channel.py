from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from voice.admission import Load
from voice.channel import FROM_FRONT, FROM_WORKER, Channel, Connection, Drain, Failed, Ready
from voice.spread import State


@dataclass
class Heard:
    """What one end of a channel hears."""

    channel: Channel
    messages: list = field(default_factory=list)
    connections: list[socket.socket | None] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self) -> None:
        self.channel.listen(self._hear, self.ended.set)

    def _hear(self, message: object, connection: socket.socket | None) -> None:
        self.messages.append(message)
        self.heard.set()
        if isinstance(message, Connection):
            self.connections.append(connection)

    async def until(self, num_messages: int) -> None:
        async with asyncio.timeout(5):
            while len(self.messages) < num_messages:
                self.heard.clear()
                await self.heard.wait()

    def close(self) -> None:
        self.channel.close()
        for connection in self.connections:
            if connection is not None:
                connection.close()


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Heard, Heard]]:
    """The front's and the worker's."""
    ours, theirs = socket.socketpair()
    front, worker = Heard(Channel(ours, FROM_WORKER)), Heard(Channel(theirs, FROM_FRONT))
    yield front, worker
    front.close()
    worker.close()


async def test_each_connection_comes_with_its_own_message(ends: tuple[Heard, Heard]) -> None:
    front, worker = ends
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(contextlib.closing(each)) for _ in range(20) for each in socket.socketpair()]
        clients, servers = pairs[::2], pairs[1::2]
        sent = []
        for i, (client, server) in enumerate(zip(clients, servers, strict=True)):
            client.sendall(bytes([i]))
            sent += [Connection(is_call=i % 2 == 0), Load(num_taken=i)]
            assert front.channel.send(sent[-2], server)
            assert front.channel.send(sent[-1])
            server.close()
        assert front.channel.send(Drain())
        worker.listen()
        await worker.until(41)
        assert worker.messages == [*sent, Drain()]
        assert [connection.recv(9) for connection in worker.connections] == [bytes([i]) for i in range(20)]


async def test_words_of_a_worker_arrive_and_so_does_its_end(ends: tuple[Heard, Heard]) -> None:
    front, worker = ends
    front.listen()
    sent = [Ready(), State(1, 2, 3, draining=True), Failed("no\nweights")]
    for message in sent:
        assert worker.channel.send(message)
    worker.channel.close()
    async with asyncio.timeout(5):
        await front.ended.wait()

    assert front.messages == sent
    assert not front.channel.send(Drain())


async def test_who_is_not_listened_to_is_told_so_and_loses_only_what_was_not_sent(ends: tuple[Heard, Heard]) -> None:
    front, worker = ends
    num_sent = 0
    while front.channel.send(Load(num_taken=num_sent)):
        num_sent += 1
    worker.listen()
    await worker.until(num_sent)
    assert [message.num_taken for message in worker.messages] == list(range(num_sent))
    assert front.channel.send(Drain())
