"""The server's end of a WebSocket against a real client."""

import asyncio
import contextlib
import json
from collections import Counter
from pathlib import Path

import pytest
from fastapi import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.serving import serving
from wire import listen, service, sockets
from wire.config import EdgeConfig
from wire.errors import Overloaded, PeerError, WireError
from wire.service import Lifecycle, create_app
from wire.sockets import MESSAGES_IN_A_ROW, Disconnected, Socket


@contextlib.asynccontextmanager
async def echoing(ended: asyncio.Queue[str]):
    """Echoes binary messages, fails on a hello with version 2, floods on version 3."""
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0)
    app = create_app(lifecycle, edge)

    @app.websocket("/ws")
    async def echo(websocket: WebSocket) -> None:
        peer = Socket(websocket, listen.CLIENT_MESSAGES, listen.Error)
        await peer.accept()
        try:
            while True:
                match await peer.receive():
                    case bytes() as data:
                        await peer.send(data)
                    case listen.Hello(version=2):
                        raise Overloaded("full", retry_after_s=1)
                    case listen.Hello(version=3):
                        while True:
                            await peer.send(bytes(1 << 19))
                    case _:
                        await peer.close(1000, "bye")
        except Disconnected as gone:
            ended.put_nowait(str(gone))
        except WireError as error:
            await peer.fail(error)
            ended.put_nowait(error.code)

    async with serving(app, lifecycle, edge) as base:
        yield base.replace("http", "ws") + "/ws"


@contextlib.asynccontextmanager
async def connected(ended: asyncio.Queue[str] | None = None):
    async with echoing(ended or asyncio.Queue()) as url, connect(url, proxy=None) as client:
        yield client


async def outcome(client: ClientConnection) -> tuple[str, int]:
    """Code of the error message, and of the close that follows."""
    error = json.loads(await client.recv())
    with pytest.raises(ConnectionClosed) as closed:
        await client.recv()
    assert closed.value.rcvd is not None
    return error["code"], closed.value.rcvd.code


async def test_binary_is_handed_on_as_it_is():
    async with connected() as client:
        await client.send(b"abc")

        assert await client.recv() == b"abc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("garbage", ("bad_json", PeerError.close_code)),
        ('{"type":"hello"}', ("bad_message", PeerError.close_code)),
        ('{"type":"hello","version":2}', ("overloaded", 1013)),
    ],
)
async def test_a_failure_is_told_before_the_close(text: str, expected: tuple[str, int]):
    async with connected() as client:
        await client.send(text)

        assert await outcome(client) == expected


async def test_a_peer_that_sends_very_much_leaves_others_their_turn():
    lifecycle, edge = Lifecycle("test"), EdgeConfig(port=0)
    app = create_app(lifecycle, edge)
    others_turns, at_message = 0, []
    all_here = asyncio.Event()

    @app.websocket("/ws")
    async def read(websocket: WebSocket) -> None:
        peer = Socket(websocket, listen.CLIENT_MESSAGES, listen.Error)
        await peer.accept()
        with contextlib.suppress(Disconnected):
            while True:
                await peer.receive()
                at_message.append(others_turns)
                if len(at_message) == 500:
                    all_here.set()

    async def other() -> None:
        nonlocal others_turns
        while True:
            others_turns += 1
            await asyncio.sleep(0)

    async with serving(app, lifecycle, edge) as base:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(base + "/ws"))
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        running = asyncio.create_task(other())
        writer.write(500 * frame(b'{"type":"hello","version":1}'))
        await all_here.wait()
        running.cancel()
        writer.transport.abort()

    assert max(Counter(at_message).values()) <= MESSAGES_IN_A_ROW


async def test_a_vanished_peer_is_noticed():
    ended: asyncio.Queue[str] = asyncio.Queue()
    async with connected(ended) as client:
        client.transport.abort()

        assert await ended.get() in ("1005", "1006")


@pytest.mark.slow
async def test_a_peer_that_stops_reading_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sockets, "SEND_TIMEOUT_S", 0.2)
    ended: asyncio.Queue[str] = asyncio.Queue()
    async with echoing(ended) as url, connect(url, proxy=None, max_queue=1) as client:
        await client.send('{"type":"hello","version":3}')

        assert await ended.get() == "the peer stopped reading"
        client.transport.abort()


@pytest.mark.slow
async def test_the_socket_of_a_peer_that_never_reads_is_freed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sockets, "SEND_TIMEOUT_S", 0.2)
    monkeypatch.setattr(service, "STUCK_PEER_S", 0.5)
    ended: asyncio.Queue[str] = asyncio.Queue()
    async with echoing(ended) as url:
        before = num_established(url)
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(url), limit=1024)
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(frame(b'{"type":"hello","version":3}'))
        assert await ended.get() == "the peer stopped reading"
        async with asyncio.timeout(20):
            while num_established(url) > before:  # noqa: ASYNC110 -- the kernel has no event for it
                await asyncio.sleep(0.05)
        writer.transport.abort()


UPGRADE = (
    b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def frame(text: bytes) -> bytes:
    """A masked text frame with a mask of zeros (RFC 6455, 5.2)."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


LISTEN_OR_LINGERING = ("0A", "05", "06")  # include/net/tcp_states.h: LISTEN, FIN_WAIT2, TIME_WAIT


def num_established(url: str) -> int:
    """Connections of the listening side that the kernel still keeps, in any state but those it ends by itself."""
    local = f":{port_of(url):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(local) and row[3] not in LISTEN_OR_LINGERING for row in rows)
