from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from hypothesis import given
from hypothesis import strategies as st

from tests.serving import serving
from tests.voice.conftest import EDGE, Stage
from voice import status
from voice.admission import Load
from voice.config import VoiceConfig
from voice.status import ProcessStatus, Status, read_health
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app

NOBODY = "http://127.0.0.1:1"  # tcpmux: nothing listens there


async def ask(base: str) -> dict[str, dict[str, object]]:
    async with aiohttp.ClientSession() as http, http.get(f"{base}{status.PATH}") as response:
        assert response.status == 200
        return {process["name"]: process for process in (await response.json())["processes"]}


@pytest.mark.slow
async def test_all_processes_are_told(stage: Stage):
    async with stage.up() as base:
        processes = await ask(base)

    assert list(processes) == ["voice", "stt", "tts_engine", "router"]
    assert {process["status"] for process in processes.values()} == {"ready"}
    assert processes["voice"]["detail"] == "0 of 2 lines taken"
    assert all(isinstance(process["uptime_s"], float) for process in processes.values())


@pytest.mark.slow
async def test_a_draining_call_server_says_so(stage: Stage):
    async with stage.up() as base:
        stage.lifecycle.draining = True
        processes = await ask(base)

    assert processes["voice"]["status"] == "draining"
    assert processes["stt"]["status"] == "ready"


async def test_a_dead_service_is_down_and_the_others_are_not():
    fake = create_app(Lifecycle("fake"), EDGE)
    async with serving(fake, Lifecycle("fake"), EDGE) as alive, status_of(NOBODY, alive, alive) as asked:
        told = {process["name"]: process["status"] for process in (await asked.answer())["processes"]}  # type: ignore[attr-defined]

    assert told == {"voice": "ready", "stt": "down", "tts_engine": "ready", "router": "ready"}


@pytest.mark.slow
async def test_a_silent_service_is_down_within_the_timeout():
    silent = FastAPI()
    never = asyncio.Event()

    @silent.get("/health")
    async def health() -> None:
        await never.wait()

    async with serving(silent, Lifecycle("silent"), EDGE) as base, status_of(base, base, base) as asked:
        async with asyncio.timeout(5):
            told = (await asked.answer())["processes"]
        never.set()

    assert [process["status"] for process in told] == ["ready", "down", "down", "down"]  # type: ignore[attr-defined]


async def test_many_pages_cost_the_services_one_question():
    counting = FastAPI()
    asked_with: list[str | None] = []

    @counting.get("/health")
    async def health(request: Request) -> JSONResponse:
        asked_with.append(request.headers.get("authorization"))
        return JSONResponse({"status": "ready"})

    async with (
        serving(counting, Lifecycle("counting"), EDGE) as base,
        status_of(base, base, base, key="secret") as asked,
    ):
        answers = await asyncio.gather(*(asked.answer() for _ in range(50)))

    assert asked_with == ["Bearer secret"] * 3
    assert "secret" not in json.dumps(answers)


@asynccontextmanager
async def status_of(*urls: str, key: str | None = None) -> AsyncIterator[Status]:
    asked = Status(VoiceConfig(EDGE, *urls, llm_model="fake"), Lifecycle("voice"), key, Load)
    async with asked.open():
        yield asked


def test_workers_are_told_through_their_router():
    workers = [
        {"url": "http://10.1.1.1:8000", "model": "small", "healthy": True, "active": 3},
        {"url": "http://10.1.1.2:8000", "model": "small", "healthy": False, "active": 0},
    ]
    body = json.dumps({"status": "ready", "active": 3, "uptime_s": 4.5, "workers": workers}).encode()

    assert read_health("router", 200, body) == [
        ProcessStatus("router", "ready", 3, 4.5),
        ProcessStatus("llm", "ready", 3, detail="small"),
        ProcessStatus("llm", "down", 0, detail="small"),
    ]
    assert "10.1.1" not in str(read_health("router", 200, body))


@pytest.mark.parametrize(
    ("http_status", "expected"), [(200, "ready"), (503, "draining"), (401, "failed"), (500, "failed")]
)
def test_a_server_without_words_is_judged_by_its_status(http_status: int, expected: str):
    [told] = read_health("router", http_status, b"")

    assert told.status == expected


KEYS = st.sampled_from(["active", "uptime_s", "workers", "voices", "waiting"])
LEAVES = st.none() | st.booleans() | st.floats() | st.text() | st.integers()
SAID = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)).map(
    lambda said: json.dumps(said).encode()
)


@pytest.mark.slow
@given(st.sampled_from([200, 302, 404, 503]), st.binary() | SAID)
def test_whatever_a_service_says_becomes_an_answer_that_is_json(http_status: int, body: bytes):
    told = read_health("stt", http_status, body)

    json.dumps([vars(process) for process in told], allow_nan=False).encode()


@pytest.mark.slow
async def test_the_key_of_the_services_reaches_no_caller(stage: Stage, tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("a-service-key-0123")
    key.chmod(0o600)
    stage.settings["service_key_file"] = key
    stage.edge = EdgeConfig(port=0)
    async with stage.up() as base:
        assert "a-service-key" not in json.dumps(await ask(base))
