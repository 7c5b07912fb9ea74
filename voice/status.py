"""`GET /v1/status`: how this call server and every process behind it are, as far as it can see from here.

Services are asked together, each for its `/health`, and the answer is kept for `KEEP_S`: any number of pages that poll
cost the services no more than one does. LLM workers are known through the router, which watches them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

import aiohttp
from fastapi import FastAPI

from voice.admission import Load
from voice.config import VoiceConfig
from wire.errors import PeerError
from wire.messages import read_json_object
from wire.service import Lifecycle

logger = logging.getLogger(__name__)

PATH = "/v1/status"
TIMEOUT_S = 1.0
KEEP_S = 0.5
MAX_HEALTH_BYTES = 65_536

Health: TypeAlias = Literal["ready", "draining", "down", "failed"]


@dataclass(frozen=True)
class ProcessStatus:
    """`down`: no answer. `failed`: an answer that is none. `uptime_s` is None for a process seen through another."""

    name: str
    status: Health
    active: int | None = None
    uptime_s: float | None = None
    detail: str = ""


class Status:
    def __init__(self, config: VoiceConfig, lifecycle: Lifecycle, key: str | None, load: Callable[[], Load]) -> None:
        self._lifecycle = lifecycle
        self._services = {"stt": config.stt_url, "tts_engine": config.tts_url, "router": config.llm_url}
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._config = config
        self._load = load
        self._asking = asyncio.Lock()
        self._known: list[ProcessStatus] = []
        self._known_until_s = 0.0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, headers=self._headers) as self._http:
            yield

    def add_to(self, app: FastAPI) -> None:
        app.get(PATH)(self.answer)

    async def answer(self) -> dict[str, object]:
        return {"processes": [asdict(process) for process in [self._own(), *await self._others()]]}

    def _own(self) -> ProcessStatus:
        lifecycle, load, config = self._lifecycle, self._load(), self._config
        status: Health = "draining" if lifecycle.draining else "ready"
        detail = f"{load.num_taken} of {config.max_calls} lines taken"
        if config.num_processes > 1:
            detail += f", {load.num_processes} of {config.num_processes} processes up"
        return ProcessStatus("voice", status, load.num_active, round(lifecycle.uptime_s, 1), detail)

    async def _others(self) -> list[ProcessStatus]:
        async with self._asking:
            if time.monotonic() >= self._known_until_s:
                found = await asyncio.gather(*(self._ask(name, url) for name, url in self._services.items()))
                self._known = [process for processes in found for process in processes]
                self._known_until_s = time.monotonic() + KEEP_S
            return self._known

    async def _ask(self, name: str, url: str) -> list[ProcessStatus]:
        try:
            async with self._http.get(f"{url}/health", allow_redirects=False) as response:
                return read_health(name, response.status, await response.content.read(MAX_HEALTH_BYTES))
        except TimeoutError:
            return [ProcessStatus(name, "down", detail=f"no answer within {TIMEOUT_S:.0f} s")]
        except aiohttp.ClientError as error:
            logger.debug("%s does not answer: %s", name, error)
            return [ProcessStatus(name, "down", detail="cannot be reached")]


def read_health(name: str, http_status: int, body: bytes) -> list[ProcessStatus]:
    """What a `/health` says about its process and, if it is a router's, about the workers behind it.

    A server that is not ours may say nothing in its body (vLLM), so only the HTTP status decides.
    """
    try:
        fields = read_json_object(body)
    except PeerError:
        fields = {}
    status: Health = {200: "ready", 503: "draining"}.get(http_status, "failed")  # type: ignore[assignment]
    detail = f"/health answers {http_status}" if status == "failed" else _detail(fields)
    own = ProcessStatus(name, status, _count(fields.get("active")), _seconds(fields.get("uptime_s")), detail)
    workers = fields.get("workers")
    return [own, *(_worker(worker) for worker in (workers if isinstance(workers, list) else []))]


def _worker(said: object) -> ProcessStatus:
    fields: Mapping[str, object] = said if isinstance(said, dict) else {}
    healthy = fields.get("healthy") is True
    return ProcessStatus(
        "llm", "ready" if healthy else "down", _count(fields.get("active")), detail=str(fields.get("model", ""))[:80]
    )


def _detail(fields: Mapping[str, object]) -> str:
    voices = fields.get("voices")
    if isinstance(voices, list) and voices:
        return f"voice {', '.join(str(voice) for voice in voices)}"[:80]
    waiting = fields.get("waiting")
    if isinstance(waiting, dict):  # per model
        return ", ".join(str(model) for model in waiting)[:80]
    return ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(value: object) -> float | None:
    """JSON knows no infinity, but Python's reading of it does."""
    return value if isinstance(value, float) and math.isfinite(value) else None
