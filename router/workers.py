"""The workers of one model: their load, their health, and how they are asked."""

from __future__ import annotations

import asyncio
import logging

import aiohttp

from router.choice import Load
from router.config import ModelConfig, RouterConfig, WorkerConfig
from wire.config import read_key

logger = logging.getLogger(__name__)


class Worker:
    def __init__(self, config: WorkerConfig, model: str) -> None:
        self.url = config.url.rstrip("/")
        self.model = config.model or model
        self.num_active = 0
        self.is_healthy = True  # until shown otherwise: the first request need not wait for the first check
        self._key = read_key(config.api_key_file) if config.api_key_file is not None else None

    @property
    def load(self) -> Load:
        return Load(self.url, self.is_healthy, self.num_active)

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"} if self._key is not None else {}

    def note(self, *, is_healthy: bool, why: str = "") -> None:
        if is_healthy != self.is_healthy:
            logger.warning("worker %s is %s%s", self.url, "back" if is_healthy else "gone: ", why)
        self.is_healthy = is_healthy

    async def check(self, http: aiohttp.ClientSession, timeout_s: float) -> None:
        """`/health`, or `/v1/models` at servers that have none."""
        try:
            async with asyncio.timeout(timeout_s):
                for path in ("/health", "/v1/models"):
                    async with http.get(f"{self.url}{path}", headers=self.headers()) as response:
                        if response.status != 404 or path == "/v1/models":
                            self.note(is_healthy=response.status == 200, why=f"{path} answers {response.status}")
                            return
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.note(is_healthy=False, why=str(error) or type(error).__name__)


class Pool:
    """Workers that serve the same model."""

    def __init__(self, config: ModelConfig) -> None:
        self.model = config.id
        self.workers = {worker.url: worker for worker in (Worker(c, config.id) for c in config.workers)}


async def watch(pools: list[Pool], http: aiohttp.ClientSession, config: RouterConfig) -> None:
    """Check every worker until cancelled; one that is gone no less often, because it is back within seconds."""

    async def watch_one(worker: Worker) -> None:
        while True:
            await worker.check(http, config.connect_timeout_s + config.health_interval_s)
            await asyncio.sleep(config.health_interval_s)

    async with asyncio.TaskGroup() as tasks:
        for pool in pools:
            for worker in pool.workers.values():
                tasks.create_task(watch_one(worker))
