from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from voice import arrivals

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@contextlib.asynccontextmanager
async def accepting(**limits: float) -> AsyncIterator[tuple[int, asyncio.Queue[tuple[bytes, bytes]]]]:
    """The port, and of each arrival its head and what can still be read."""
    arrived: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(
            arrivals.accept(listener, lambda sock, head: arrived.put_nowait((head, sock.recv(99_999))), **limits)
        )
        yield listener.getsockname()[1], arrived
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


@contextlib.asynccontextmanager
async def client(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    yield reader, writer
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_head_is_looked_at_and_left_for_who_serves_it() -> None:
    async with accepting() as (port, arrived), client(port) as (reader, writer):
        writer.write(HEAD + b"body")
        async with asyncio.timeout(5):
            assert await arrived.get() == (HEAD + b"body", HEAD + b"body")
            assert await reader.read() == b""


async def test_a_head_may_come_in_pieces() -> None:
    async with accepting() as (port, arrived), client(port) as (_, writer):
        for i in range(len(HEAD)):
            writer.write(HEAD[i : i + 1])
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            assert (await arrived.get())[0] == HEAD


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02", b"GET / HTTP/1.1\n\n", b"G" * 2 * arrivals.MAX_HEAD_BYTES])
async def test_what_is_no_head_is_not_waited_for(sent: bytes) -> None:
    async with accepting(head_timeout_s=60) as (port, arrived), client(port) as (_, writer):
        writer.write(sent)
        async with asyncio.timeout(5):
            head, _ = await arrived.get()

    assert head == sent[: arrivals.MAX_HEAD_BYTES]


@pytest.mark.parametrize("sent", [b"", HEAD[:-2]])
async def test_who_takes_too_long_is_closed(sent: bytes) -> None:
    async with accepting(head_timeout_s=0.05) as (port, arrived), client(port) as (reader, writer):
        writer.write(sent)
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionResetError):  # what it sent was not read
                assert await reader.read() == b""

    assert arrived.empty()


async def test_who_leaves_is_forgotten() -> None:
    async with accepting(max_waiting=1) as (port, arrived):
        for sent in (b"", HEAD[:-2]):
            async with client(port) as (_, writer):
                writer.write(sent)
        async with client(port) as (_, writer):
            writer.write(HEAD)
            async with asyncio.timeout(5):
                assert (await arrived.get())[0] == HEAD


async def test_of_too_many_who_wait_the_oldest_is_closed() -> None:
    async with accepting(max_waiting=2) as (port, arrived), contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client(port)) for _ in range(3)]
        async with asyncio.timeout(5):
            assert await clients[0][0].read() == b""
            for _, writer in clients[1:]:
                writer.write(HEAD)
                assert (await arrived.get())[0] == HEAD


async def test_of_many_who_come_at_once_no_more_wait() -> None:
    """All are there before the first is accepted, so that all are in one turn of the loop."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(50)]
        accepting = asyncio.create_task(arrivals.accept(listener, lambda *_: None, max_waiting=5, head_timeout_s=60))
        async with asyncio.timeout(5):
            for sock in clients[:45]:
                sock.setblocking(False)
                assert await asyncio.get_running_loop().sock_recv(sock, 1) == b""
        for sock in clients[45:]:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        accepting.cancel()
        await asyncio.wait([accepting])
