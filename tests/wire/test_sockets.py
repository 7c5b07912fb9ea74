"""The server's end of a WebSocket against a real client."""

import asyncio
import contextlib
import json

import pytest
from fastapi import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.serving import serving
from wire import listen, sockets
from wire.config import EdgeConfig
from wire.errors import Overloaded, PeerError, WireError
from wire.service import Lifecycle, create_app
from wire.sockets import Disconnected, Socket


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
