"""Look at the addresses of a profile: bind, and ask /health where somebody listens.

Nothing is started and nobody is contacted but this machine and the services that the profile names.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from deploy.doctor.services import Answer, Elsewhere, Listener
from deploy.ports import bind_error, owner_of, reachable_host
from deploy.profile import Profile
from wire.config import EdgeConfig, is_loopback

TIMEOUT_S = 3.0  # of one question
MAX_ANSWER_BYTES = 65_536
CODE = Path(__file__).parents[2]


async def read_listeners(profile: Profile, path: Path) -> list[Listener]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_listener(profile, path, *edge)) for edge in profile.edges]
    return [task.result() for task in tasks]


async def read_elsewhere(profile: Profile) -> list[Elsewhere]:
    urls = elsewhere(profile)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(url)) for url in urls.values()]
    return [Elsewhere(key, url, task.result()) for (key, url), task in zip(urls.items(), tasks, strict=True)]


def elsewhere(profile: Profile) -> dict[str, str]:
    """Base URLs of services that the profile needs and does not start, by the key that names them."""
    named: dict[str, str] = {}
    if (voice := profile.voice) is not None:
        named |= {"voice.stt_url": voice.stt_url, "voice.tts_url": voice.tts_url, "voice.llm_url": voice.llm_url}
    for i, model in enumerate(profile.router.models if profile.router is not None else ()):
        named |= {f"router.models[{i}].workers[{j}].url": worker.url for j, worker in enumerate(model.workers)}
    ours = {edge.port for _, _, edge in profile.edges}
    return {key: url for key, url in named.items() if not _is_ours(url, ours)}


def _is_ours(url: str, ports: set[int]) -> bool:
    parts = urllib.parse.urlsplit(url)
    return is_loopback(parts.hostname or "") and parts.port in ports


async def ask(url: str) -> Answer:
    """`/health`, or `/v1/models` at servers that have none."""
    answer = await _get(f"{url.rstrip('/')}/health")
    return await _get(f"{url.rstrip('/')}/v1/models") if answer.status == 404 else answer


async def _listener(profile: Profile, path: Path, name: str, where: str, edge: EdgeConfig) -> Listener:
    worker = profile.llm_workers.get(name)
    service, model = (name, None) if worker is None else ("llm", worker.id)
    error = bind_error(edge.host, edge.port)
    if error is None:
        return Listener(name, where, edge.host, edge.port, service, model)
    is_taken = error.errno == errno.EADDRINUSE
    answer = await ask(f"http://{reachable_host(edge.host)}:{edge.port}") if is_taken else None
    return Listener(
        name,
        where,
        edge.host,
        edge.port,
        service,
        model,
        bind_error=error.strerror or str(error),
        is_taken=is_taken,
        owner=owner_of(edge.port) if is_taken else None,
        answer=answer,
        newer=_newer(path, service, answer.body) if answer is not None else "",
    )


def _newer(profile: Path, package: str, health: Mapping[str, object]) -> str:
    uptime_s = health.get("uptime_s")
    if not isinstance(uptime_s, int | float):
        return ""
    started_s = time.time() - uptime_s
    if _changed_s(profile) > started_s:
        return str(profile)
    code = [path for name in (package, "wire") for path in (CODE / name).rglob("*.py")]
    return "its code" if max(map(_changed_s, code), default=0.0) > started_s else ""


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


async def _get(url: str) -> Answer:
    parts = urllib.parse.urlsplit(url)
    if not parts.hostname:
        return Answer(None, error="no host in it")
    is_tls = parts.scheme == "https"
    request = f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\nUser-Agent: offhook-doctor\r\n\r\n"
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                parts.hostname,
                parts.port or (443 if is_tls else 80),
                ssl=ssl.create_default_context() if is_tls else None,
            )
            try:
                writer.write(request.encode())
                raw = bytearray()
                while len(raw) < MAX_ANSWER_BYTES and (chunk := await reader.read(MAX_ANSWER_BYTES)):
                    raw += chunk
            finally:
                writer.close()
    except TimeoutError:
        return Answer(None, error=f"no answer within {TIMEOUT_S:.0f} s")
    except (OSError, UnicodeError) as error:
        return Answer(None, error=str(error))
    return parse_answer(bytes(raw))


def parse_answer(raw: bytes) -> Answer:
    """Of an HTTP response; the body counts when it is a JSON object."""
    status = re.match(rb"HTTP/1\.\d (\d{3})", raw)
    if status is None:
        return Answer(None, error="what answers there does not speak HTTP")
    try:
        body = json.loads(raw.partition(b"\r\n\r\n")[2])
    except (ValueError, RecursionError):
        body = None
    return Answer(int(status[1]), body if isinstance(body, dict) else {})
