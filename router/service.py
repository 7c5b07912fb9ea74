"""The router's HTTP face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from fastapi import FastAPI

from router.config import RouterConfig
from router.proxy import Proxy
from router.workers import Pool, watch
from wire.service import Lifecycle, create_app

PATHS = ("/v1/chat/completions", "/v1/completions", "/tokenize")
KEEP_ALIVE_S = 4.0  # uvicorn, and so vLLM, closes after 5 s: a request on a connection just closed would be lost
MAX_CONNECTIONS = 1000  # to workers; admission bounds the calls long before


def build(config: RouterConfig, lifecycle: Lifecycle) -> FastAPI:
    """Raises: ConfigError for an unreadable key file."""
    pools = {model.id: Pool(model) for model in config.models}
    proxy = Proxy(pools, config, lifecycle)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=config.connect_timeout_s)
        connector = aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ttl_dns_cache=60, keepalive_timeout=KEEP_ALIVE_S)
        plain = {"accept-encoding": "identity"}  # a compressor in between would hold small chunks back
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, headers=plain) as http:
            proxy.http = http
            watching = asyncio.create_task(watch(list(pools.values()), http, config))
            try:
                yield
            finally:
                watching.cancel()
                await asyncio.wait([watching])

    def details() -> Mapping[str, object]:
        workers = [
            {"url": w.url, "model": pool.model, "healthy": w.is_healthy, "active": w.num_active}
            for pool in pools.values()
            for w in pool.workers.values()
        ]
        return {"workers": workers}

    app = create_app(lifecycle, config.edge, details=details, lifespan=lifespan)
    for path in PATHS:
        app.post(path)(proxy.answer)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "owned_by": "offhook", "created": 0} for name in pools],
        }

    return app
