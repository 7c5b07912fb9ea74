"""Accepts connections and looks at what each begins with, without taking it: whoever serves it reads it again.

A client may be slow, silent or no client at all; others do not wait for it. It has `HEAD_TIMEOUT_S` for the head of its
first request, and when `MAX_WAITING` are in that state, the one that has been longest is closed for the next.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable

logger = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 5.0
MAX_HEAD_BYTES = 16_384  # of a longer one so much is looked at
MAX_WAITING = 512
FIRST_LOOK_S = 0.005  # a head that has come in part is looked at again after this, then after twice as long each time
LAST_LOOK_S = 0.5
NO_ACCEPT_S = 0.2  # out of descriptors

_END = re.compile(rb"\n\r?\n")


async def accept(
    listener: socket.socket,
    arrived: Callable[[socket.socket, bytes], None],
    *,
    max_waiting: int = MAX_WAITING,
    head_timeout_s: float = HEAD_TIMEOUT_S,
) -> None:
    """Until cancelled, call `arrived` with each connection and its first bytes. The connection is closed after that."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    waiting: dict[asyncio.Task[None], socket.socket] = {}  # oldest first

    async def look(sock: socket.socket) -> None:
        head = await _head(sock, head_timeout_s)
        if head:
            arrived(sock, head)

    def over(task: asyncio.Task[None]) -> None:  # also of one that was cancelled before it began
        waiting.pop(task).close()

    async with asyncio.TaskGroup() as tasks:
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                logger.warning("cannot accept: %s", error.strerror)
                await asyncio.sleep(NO_ACCEPT_S)
                continue
            if len(waiting) >= max_waiting:
                oldest = next(iter(waiting))
                oldest.cancel()
                try:
                    await asyncio.wait((oldest,))  # many may come in one turn of the loop
                except asyncio.CancelledError:
                    sock.close()
                    raise
            task = tasks.create_task(look(sock))
            waiting[task] = sock
            task.add_done_callback(over)


async def _head(sock: socket.socket, timeout_s: float) -> bytes:
    """Empty for a client that leaves, or takes too long."""
    again_s = FIRST_LOOK_S
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    head = sock.recv(MAX_HEAD_BYTES, socket.MSG_PEEK)
                except BlockingIOError:
                    await _readable(sock)
                    continue
                is_no_request = not head.lstrip(b"\r\n")[:1].isalpha()  # it is told so at once
                if not head or is_no_request or len(head) >= MAX_HEAD_BYTES or _END.search(head) is not None:
                    return head
                await asyncio.sleep(again_s)  # what has come stays, so the socket stays readable
                again_s = min(LAST_LOOK_S, 2 * again_s)
    except (TimeoutError, OSError):
        return b""


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sock)
