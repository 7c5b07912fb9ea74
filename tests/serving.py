"""A service inside a test: its own server on a free port of 127.0.0.1, on the test's event loop, without signals."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from wire.config import EdgeConfig
from wire.service import Lifecycle, listen_socket, server_for


@asynccontextmanager
async def serving(app: FastAPI, lifecycle: Lifecycle, edge: EdgeConfig) -> AsyncIterator[str]:
    """Serve `app` as `wire.service.run` does; yields the base URL. `edge.port` 0 takes a free port.

    Runs the phases of `uvicorn.Server._serve` one by one: `serve` would take the process's signals over, and `_serve`
    does not say when the port is open.
    """
    with listen_socket(edge) as sock:
        server = server_for(app, lifecycle, edge)
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[sock])
        loop = asyncio.create_task(server.main_loop())
        host, port = sock.getsockname()[:2]
        try:
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
            await loop
            await server.shutdown(sockets=[sock])


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [sock.getsockname()[1] for sock in socks]
