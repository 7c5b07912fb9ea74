from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest

from load.errors import LoadError
from load.faults.breaks import HalfClose, Reset, Stall
from load.faults.impairment import NO_IMPAIRMENT, Bandwidth, Delay, Impairment, Jitter
from load.faults.tcp import TcpRelay, instead, target_of
from tests.caller import calling
from tests.fakes import FakeLlm
from tests.speech import clip
from tests.voice.conftest import Stage
from wire import calls

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Target:
    """A server that hands its end of each connection to the test."""

    def __init__(self) -> None:
        self.accepted: asyncio.Queue[Ends] = asyncio.Queue()

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[tuple[str, int]]:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.accepted.put_nowait((reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        yield server.sockets[0].getsockname()
        server.close()


@contextlib.asynccontextmanager
async def connected(
    *breaks, up: Impairment = NO_IMPAIRMENT, down: Impairment = NO_IMPAIRMENT
) -> AsyncIterator[tuple[TcpRelay, Ends, Ends]]:
    """The relay, the caller's end, the server's end."""
    target = Target()
    async with target.up() as address, asyncio.timeout(20):
        relay = TcpRelay(*address, up, down, np.random.default_rng(1), breaks)
        async with relay.open() as at:
            caller = await asyncio.open_connection(*at)
            server = await target.accepted.get()
            try:
                yield relay, caller, server
            finally:
                for _, writer in (caller, server):
                    writer.transport.abort()
                await eventually(lambda: relay.statistics.num_open == 0)


async def eventually(holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until_s
        await asyncio.sleep(0.005)


async def to_its_end(reader: asyncio.StreamReader) -> None:
    while await reader.read(100):
        pass


async def is_silent(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.1):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


async def test_bytes_pass_both_ways_and_ends_one_by_one() -> None:
    async with connected() as (relay, (caller_in, caller_out), (server_in, server_out)):
        payload = bytes(range(256)) * 4000
        caller_out.write(payload)
        assert await server_in.readexactly(len(payload)) == payload
        caller_out.write_eof()
        assert await server_in.read() == b""
        server_out.write(payload)  # the other direction goes on
        server_out.write_eof()
        assert await caller_in.read() == payload
        await eventually(lambda: relay.statistics.num_open == 0)
    assert relay.statistics.num_up_bytes == relay.statistics.num_down_bytes == len(payload)
    assert relay.statistics.num_resets == 0


@pytest.mark.slow
async def test_delay_is_of_its_direction_and_loses_nothing() -> None:
    async with connected(up=Impairment(delay=Delay(0.2), jitter=Jitter(0.05))) as (_, caller, server):
        start_s = time.monotonic()
        for i in range(20):
            caller[1].write(bytes([i]))
            await asyncio.sleep(0.005)
        assert await server[0].readexactly(20) == bytes(range(20))
        assert time.monotonic() - start_s >= 0.2
        start_s = time.monotonic()
        server[1].write(b"x")
        await caller[0].readexactly(1)
        assert time.monotonic() - start_s < 0.2


@pytest.mark.slow
async def test_a_capped_direction_is_slow_and_holds_its_sender_up() -> None:
    async with connected(down=Impairment(bandwidth=Bandwidth(800_000))) as (_, caller, server):
        start_s = time.monotonic()
        server[1].write(bytes(50_000))
        await caller[0].readexactly(50_000)
        assert time.monotonic() - start_s >= 8 * 50_000 / 800_000 - 0.05
        server[1].write(bytes(64 << 20))
        await caller[0].readexactly(1)
        assert server[1].transport.get_write_buffer_size() > 32 << 20


async def test_a_stall_holds_and_then_gives_all() -> None:
    async with connected(Stall(after_bytes=3, direction="up")) as (relay, caller, server):
        caller[1].write(b"abcdef")
        assert await server[0].readexactly(3) == b"abc"
        assert await is_silent(server[0])
        server[1].write(b"down")
        assert await caller[0].readexactly(4) == b"down"
        relay.resume()
        assert await server[0].readexactly(3) == b"def"


async def test_a_stall_ends_by_itself() -> None:
    async with connected() as (relay, caller, server):
        relay.do(Stall(at_s=0, for_s=0.1))
        caller[1].write(b"later")
        assert await server[0].readexactly(5) == b"later"


async def test_of_several_stalls_the_longest_counts() -> None:
    async with connected() as (relay, caller, server):
        for for_s in (0.05, None, 0.01):
            relay.do(Stall(at_s=0, for_s=for_s))
        caller[1].write(b"later")
        assert await is_silent(server[0])
        relay.resume()
        assert await server[0].readexactly(5) == b"later"


async def test_a_half_close_ends_one_direction_and_leaves_its_sender_unaware() -> None:
    async with connected(HalfClose(after_bytes=3, direction="up")) as (_, caller, server):
        caller[1].write(b"abcdef")
        assert await server[0].read() == b"abc"
        caller[1].write(b"more")
        await caller[1].drain()
        server[1].write(b"still here")
        assert await caller[0].readexactly(10) == b"still here"


@pytest.mark.parametrize("what", [Reset(at_s=0.05), Reset(after_bytes=3), Reset(after_bytes=4, direction="up")])
async def test_a_reset_is_abrupt_for_both(what: Reset) -> None:
    async with connected(what) as (relay, caller, server):
        caller[1].write(b"abcd")
        server[1].write(b"abc")
        for reader, _ in (caller, server):
            with pytest.raises(ConnectionResetError):
                await to_its_end(reader)
        await eventually(lambda: relay.statistics.num_resets == 1)


async def test_breaks_meet_the_connection_they_are_for() -> None:
    target = Target()
    async with target.up() as address:
        relay = TcpRelay(*address, NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1), [Reset(0, connection=2)])
        async with relay.open() as at:
            first, second = await asyncio.open_connection(*at), await asyncio.open_connection(*at)
            with pytest.raises(ConnectionResetError):
                await second[0].read()
            assert await is_silent(first[0])
            first[1].close()
        while not target.accepted.empty():
            target.accepted.get_nowait()[1].close()


async def test_a_reset_of_one_end_reaches_the_other() -> None:
    async with connected() as (_, caller, server):
        caller[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller[1].transport.abort()
        with pytest.raises(ConnectionResetError):
            await server[0].read()


async def test_nobody_at_the_target_ends_the_connection() -> None:
    relay = TcpRelay("127.0.0.1", 9, NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1))
    async with relay.open() as at:
        reader, writer = await asyncio.open_connection(*at)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_a_taken_port_is_one_clear_line() -> None:
    relay = TcpRelay("127.0.0.1", 9, NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1))
    async with relay.open() as (_, port):
        with pytest.raises(LoadError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with relay.open(port):
                pass


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x", "http://:80", "ws://x:99999/"])
def test_an_address_that_is_none_is_one_clear_line(url: str) -> None:
    with pytest.raises(LoadError, match="is no address"):
        target_of(url)


def test_an_address_is_replaced_and_the_rest_stays() -> None:
    assert target_of("wss://example.org/v1/calls?x=1") == ("example.org", 443)
    assert instead("ws://127.0.0.1:8080/v1/calls?x=1", ("127.0.0.1", 9000)) == "ws://127.0.0.1:9000/v1/calls?x=1"


@pytest.mark.slow
async def test_a_call_over_websocket_is_held_through_the_relay() -> None:
    stage = Stage(llm=FakeLlm(replies=["One two three."]))
    pcm, _ = clip("hello_world")
    path = Impairment(delay=Delay(0.05), jitter=Jitter(0.04))
    async with stage.up() as base:
        relay = TcpRelay(*target_of(base), path, path, np.random.default_rng(3))
        async with relay.open() as at, calling(instead(base, at)) as caller:
            caller.say(pcm)
            turn = await caller.until(calls.Turn)
            assert turn.outcome == "answered"
            relay.do(HalfClose(at_s=0))
            await caller.until_closed()


async def test_a_relay_that_closes_over_a_connection_reports_no_error() -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    target = Target()
    async with target.up() as address:
        relay = TcpRelay(*address, NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1))
        async with relay.open() as at:
            _, caller = await asyncio.open_connection(*at)
            _, server = await target.accepted.get()
            await eventually(lambda: relay.statistics.num_open == 1)
        await asyncio.sleep(0)
        for writer in (caller, server):
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    assert told == []
