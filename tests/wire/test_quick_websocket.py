"""Whatever comes in, and however it is cut: the application and the peer get what uvicorn's own protocol gives them.

That one is given a byte at a time, because it drops the messages that come in one piece with a breach of the protocol.
"""

import asyncio
import base64
import contextlib
import os
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, WebSocket
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidState
from websockets.frames import Close, Frame, Opcode

from tests.serving import serving
from wire.config import EdgeConfig
from wire.quick_websocket import MAX_WAITING, QuickWebSocket
from wire.service import Lifecycle

MAX_BYTES = 1000
KEY = base64.b64encode(bytes(16)).decode()
REQUEST = (
    f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {KEY}\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
).encode()


class Wire(asyncio.Transport):
    """What the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False
        self.is_reading = True

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


async def serve(kind: type[WebSocketsSansIOProtocol], chunks: list[bytes], early: bytes) -> tuple[list[Any], bytes]:
    """What the application receives, and what leaves after the handshake."""
    received: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while not received or received[-1]["type"] != "websocket.disconnect":
            received.append(await receive())

    config = uvicorn.Config(
        app, ws=kind, ws_max_size=MAX_BYTES, ws_ping_interval=None, ws_per_message_deflate=False, log_config=None
    )
    config.load()
    state, wire = ServerState(), Wire()
    protocol = kind(config, state, {}, asyncio.get_running_loop())
    protocol.connection_made(wire)
    protocol.data_received(REQUEST)
    if early:
        protocol.data_received(early)
    for _ in range(5):
        await asyncio.sleep(0)
    shaken = len(wire.written.split(b"\r\n\r\n")[0])
    for chunk in chunks:
        if wire.is_closed:
            break
        try:
            protocol.data_received(chunk)
        except InvalidState:  # uvicorn's, for text that is none after the close
            break
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    await asyncio.gather(*state.tasks)
    return received, wire.written[shaken:]


def frame(opcode: Opcode, payload: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, payload, fin).serialize(mask=True)


payloads = st.one_of(st.binary(max_size=40), st.binary(min_size=120, max_size=300))
messages = st.one_of(
    payloads.map(lambda data: frame(Opcode.BINARY, data)),
    st.text(max_size=20).map(lambda text: frame(Opcode.TEXT, text.encode())),
    st.binary(max_size=20).map(lambda data: frame(Opcode.PING, data)),
    st.lists(st.binary(max_size=20), min_size=2, max_size=3).map(
        lambda parts: b"".join(
            frame(Opcode.BINARY if i == 0 else Opcode.CONT, part, fin=i == len(parts) - 1)
            for i, part in enumerate(parts)
        )
    ),
)
breaches = st.one_of(
    st.just(frame(Opcode.CLOSE, Close(1000, "").serialize())),
    st.just(Frame(Opcode.BINARY, b"unmasked").serialize(mask=False)),
    st.just(frame(Opcode.BINARY, bytes(MAX_BYTES + 1))),
    st.just(frame(Opcode.BINARY, b"one", fin=False) + frame(Opcode.BINARY, b"within")),
    st.just(frame(Opcode.CONT, b"of nothing")),
    st.just(frame(Opcode.TEXT, b"\xff\xfe")),
    st.binary(min_size=2, max_size=30),
)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.one_of(messages, breaches), max_size=8),
    st.lists(st.integers(1, 400), max_size=30),
    st.one_of(st.just(b""), messages.map(lambda data: data[:3])),
)
def test_all_is_as_in_uvicorns_own(parts: list[bytes], cuts: list[int], early: bytes):
    data, chunks = b"".join(parts), []
    for cut in cuts:
        chunks.append(data[:cut])
        data = data[cut:]
    chunks = [chunk for chunk in [*chunks, data] if chunk]

    ours = asyncio.run(serve(QuickWebSocket, chunks, early))
    if not early:  # else all goes through `websockets`
        chunks = [bytes([byte]) for chunk in chunks for byte in chunk]
    theirs = asyncio.run(serve(WebSocketsSansIOProtocol, chunks, early))

    assert ours == theirs


@pytest.mark.slow
async def test_a_sender_who_is_too_fast_has_to_wait():
    go_on, num_received = asyncio.Event(), 0
    app = FastAPI()

    @app.websocket("/")
    async def slow(websocket: WebSocket) -> None:
        nonlocal num_received
        await websocket.accept()
        await go_on.wait()
        while await websocket.receive_bytes() != b"end":
            num_received += 1
        await websocket.close()

    message, num_sent = os.urandom(60_000), 0
    async with (
        serving(app, Lifecycle("slow"), EdgeConfig(port=0)) as url,
        connect(url.replace("http", "ws"), compression=None) as client,
    ):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while num_sent < 1000:
                    await client.send(message)
                    num_sent += 1
        held_back = 1000 - num_sent
        go_on.set()
        for _ in range(20):
            await client.send(message)
        await client.send(b"end")
        await client.wait_closed()

    assert held_back > 0, f"{num_sent} messages of {len(message)} bytes are in somebody's memory"
    assert num_received >= max(MAX_WAITING, num_sent) + 20


async def accepted(wire: Wire) -> QuickWebSocket:
    """A connection that the application has taken and does not listen to."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await asyncio.Event().wait()

    config = uvicorn.Config(app, ws=QuickWebSocket, ws_ping_interval=None, ws_per_message_deflate=False)
    config.load()
    protocol = QuickWebSocket(config, ServerState(), {}, asyncio.get_running_loop())
    protocol.connection_made(wire)
    protocol.data_received(REQUEST)
    for _ in range(5):
        await asyncio.sleep(0)
    assert wire.written.startswith(b"HTTP/1.1 101")
    wire.written = b""
    return protocol


async def test_pings_of_a_peer_that_does_not_read_do_not_pile_up():
    wire = Wire()
    protocol = await accepted(wire)
    protocol.pause_writing()
    for number in range(1000):
        protocol.data_received(frame(Opcode.PING, b"%d" % number))
    assert wire.written == b""
    protocol.resume_writing()
    assert wire.written == Frame(Opcode.PONG, b"999").serialize(mask=False)
    protocol.data_received(frame(Opcode.PING, b"more"))
    assert wire.written.endswith(Frame(Opcode.PONG, b"more").serialize(mask=False))
    for task in protocol.tasks:
        task.cancel()


async def test_a_frame_that_comes_in_many_pieces_is_kept_once():
    protocol = await accepted(Wire())
    data = frame(Opcode.BINARY, bytes(60_000)) + frame(Opcode.BINARY, b"next")[:3]
    protocol.data_received(data[:1])
    kept = protocol._rest
    for at in range(1, len(data)):
        protocol.data_received(data[at : at + 1])
        assert protocol._rest is kept
    assert len(kept) == 3
    for task in protocol.tasks:
        task.cancel()
