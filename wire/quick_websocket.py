"""uvicorn's WebSocket protocol, cheaper for what a call consists of: fifty small binary messages a second.

uvicorn 0.54 stops and starts reading for each message, two system calls, and `websockets` 17 parses a frame in 20 us of
Python. Here a connection is read on until `MAX_WAITING` messages wait, and whole binary messages are unmasked at once.
Everything else, and whatever is not as it should be, goes through `websockets`, one whole frame at a time.

The application finds it as `scope["state"]["websocket"]`: the first ping goes out at once, and `last_ping_rtt` is what
pings take; `on_binary` is offered binary messages before they wake anybody, which is what costs most.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State
from websockets.speedups import apply_mask

MAX_WAITING = 16  # messages before reading stops until all are taken; a third of a second of audio
WHOLE_BINARY = 0x82  # RFC 6455, 5.2: FIN, and opcode 2
OPCODES = {0, 1, 2, 8, 9, 10}  # without extensions
MASKED = 0x80
MASK_BYTES = 4


class QuickWebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rest = bytearray()  # of a frame that has not come as a whole
        self._is_framed = True  # `websockets` is at the border of a frame
        self._pong = b""  # to a peer that does not read
        self.on_binary: Callable[[bytes], bool] | None = None  # whether it has taken the message; must not raise

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            self.scope["state"]["websocket"] = self

    def start_keepalive(self) -> None:
        if self.ping_interval is not None and self.ping_interval > 0:
            self.send_keepalive_ping()

    def handle_ping(self) -> None:
        """Who pings and does not read is answered once he reads, and once (RFC 6455, 5.5.3)."""
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(pong)
        elif pong:
            self._pong = pong

    def resume_writing(self) -> None:
        super().resume_writing()
        pong, self._pong = self._pong, b""
        if pong and not self.transport.is_closing():
            self.transport.write(pong)

    def data_received(self, data: bytes) -> None:
        if self.conn.state is not State.OPEN or not self._is_framed:
            if self.handshake_initiated and self.conn.state is State.CONNECTING:
                self._is_framed = False  # a client that did not wait for our answer
            super().data_received(bytes(self._rest) + data if self._rest else data)
            self._rest.clear()
            return
        frames: bytes | bytearray = data
        if self._rest:
            self._rest += data
            frames = self._rest
        at = 0
        while (end := self._take_frame(frames, at)) is not None:
            at = end
        if frames is self._rest:
            del self._rest[:at]  # of a frame that comes in many pieces nothing is copied
        else:
            self._rest += memoryview(data)[at:]

    def _take_frame(self, data: bytes | bytearray, at: int) -> int | None:
        """Where the frame that begins at `at` ends; None if it is not there as a whole."""
        header = _header(data, at)
        if header is None or self.conn.parser_exc is not None or self.transport.is_closing():
            return None
        begin, length = header
        end = begin + length
        limit = self.config.ws_max_size - (self.conn.current_size or 0)
        if data[at] & 0x7F not in OPCODES or not data[at + 1] & MASKED or length > limit:  # told by `websockets`
            self._is_framed = False
            super().data_received(bytes(data[at:]))
            return len(data)
        if end > len(data):
            return None
        is_message = self.conn.state is State.OPEN and self.conn.current_size is None
        if is_message and data[at] == WHOLE_BINARY and data[at + 1] & MASKED:
            payload = apply_mask(data[begin:end], data[begin - MASK_BYTES : begin])
            if self.on_binary is not None and self.queue.empty() and self.on_binary(payload):
                return end
            self.queue.put_nowait({"type": "websocket.receive", "bytes": payload})
            if self.queue.qsize() >= MAX_WAITING and not self.read_paused:
                self.read_paused = True
                self.transport.pause_reading()
        else:
            super().data_received(bytes(data[at:end]))
        return end


def _header(data: bytes | bytearray, at: int) -> tuple[int, int] | None:
    """Where the payload of the frame at `at` begins, and how long it is; None if its header is not there as a whole."""
    if len(data) - at < 2:
        return None
    length, begin = data[at + 1] & 0x7F, at + 2
    if length >= 126:
        num_bytes = 2 if length == 126 else 8
        if len(data) < begin + num_bytes:
            return None
        length = int.from_bytes(data[begin : begin + num_bytes], "big")
        begin += num_bytes
    if data[at + 1] & MASKED:
        begin += MASK_BYTES
    return begin, length
