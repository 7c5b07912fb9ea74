from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.doctor.findings import Finding
from deploy.doctor.read_services import MAX_ANSWER_BYTES, ask, elsewhere, parse_answer, read_listeners
from deploy.doctor.services import Answer, Elsewhere, Listener, check_services
from deploy.ports import Owner, Up
from tests.deploy.test_profile import LLM, ROUTER, STT, VOICE, profile_of
from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle, create_app

PROFILE = Path("/profiles/a.yaml")
FREE = Listener("stt", "stt.edge", "127.0.0.1", 8101, "stt")
HEALTH = {"service": "stt", "status": "ready", "active": 3}
RUNNING = dataclasses.replace(
    FREE, is_taken=True, owner=Owner(12, "python -m stt", Up(11, PROFILE)), answer=Answer(200, HEALTH)
)
SILENT = Answer(None, error="Connection refused")


def found(*listeners: Listener, elsewhere: tuple[Elsewhere, ...] = ()) -> list[Finding]:
    up, doctor = "bin/offhook up --profile a", "bin/offhook doctor --profile a"
    return list(check_services(listeners, elsewhere, up, doctor, PROFILE, Path("/logs")))


def test_free_port_is_ok() -> None:
    (finding,) = found(FREE)
    assert (finding.level, finding.found) == ("ok", "does not run; 127.0.0.1:8101 is free")


def test_running_service_is_ok() -> None:
    (finding,) = found(RUNNING)
    assert (finding.level, finding.found) == ("ok", "ready on 127.0.0.1:8101 (pid 12), 3 active")


def test_draining_service_is_a_warning() -> None:
    (finding,) = found(dataclasses.replace(RUNNING, answer=Answer(503, HEALTH | {"status": "draining"})))
    assert finding.level == "warning"
    assert "draining" in finding.found
    assert "bin/offhook up --profile a" in finding.mend


def test_service_older_than_its_profile_or_code_is_a_warning() -> None:
    (finding,) = found(dataclasses.replace(RUNNING, newer="its code"))
    assert finding.level == "warning"
    assert "started before its code was changed" in finding.found
    assert finding.mend == "kill 11, then: bin/offhook up --profile a"


def test_service_of_another_profile_is_a_warning() -> None:
    other = Owner(12, "python -m stt", Up(11, Path("/profiles/b.yaml")))
    (finding,) = found(dataclasses.replace(RUNNING, owner=other))
    assert finding.level == "warning"
    assert "of another profile, /profiles/b.yaml" in finding.found


def test_port_of_a_stranger_names_him_and_the_key() -> None:
    stranger = Owner(99, "nginx")
    (finding,) = found(dataclasses.replace(FREE, is_taken=True, owner=stranger, answer=Answer(200, {"service": "x"})))
    assert (finding.level, finding.found) == ("problem", "port 8101 is taken by process 99 (nginx)")
    assert finding.mend == "kill 99, or profile: stt.edge.port: another one"


def test_port_of_somebody_who_cannot_be_seen_is_a_problem() -> None:
    (finding,) = found(dataclasses.replace(FREE, is_taken=True, answer=SILENT))
    assert finding.level == "problem"
    assert "cannot be seen" in finding.found


def test_port_of_another_service_of_ours_names_its_supervisor() -> None:
    (finding,) = found(dataclasses.replace(RUNNING, answer=Answer(200, {"service": "llm"})))
    assert finding.level == "problem"
    assert "offhook up (pid 11)" in finding.found
    assert "kill 11" in finding.mend


def test_worker_that_serves_another_model_is_not_the_one() -> None:
    worker = dataclasses.replace(RUNNING, name="llm", service="llm", model="a")
    answers = [Answer(200, {"service": "llm", "status": "ready", "active": 0, "model": model}) for model in ("a", "b")]
    levels = [found(dataclasses.replace(worker, answer=answer))[0].level for answer in answers]
    assert levels == ["ok", "problem"]


def test_address_that_cannot_be_bound_names_the_keys() -> None:
    (finding,) = found(dataclasses.replace(FREE, host="192.0.2.1", bind_error="Cannot assign requested address"))
    assert finding.level == "problem"
    assert "stt.edge.host" in finding.mend


ROUTER_GONE = dataclasses.replace(FREE, name="router", where="router.edge", port=8103, service="router")


def test_service_that_its_supervisor_starts_again_is_to_be_waited_for() -> None:
    _, finding = found(RUNNING, ROUTER_GONE)
    assert (finding.level, finding.name) == ("warning", "router")
    assert finding.found == "does not listen on 127.0.0.1:8103; offhook up (pid 11) starts it"
    assert finding.mend == "look again in a moment: bin/offhook doctor --profile a; its log: /logs/router.log"


@pytest.mark.parametrize("up", [None, Up(11, Path("/profiles/b.yaml"))])
def test_service_that_alone_does_not_run_is_a_warning_with_its_log(up: Up | None) -> None:
    others = dataclasses.replace(RUNNING, owner=Owner(12, "python -m stt", up))
    _, finding = found(others, ROUTER_GONE)
    assert (finding.level, finding.name) == ("warning", "router")
    assert "/logs/router.log; end what runs" in finding.mend


@pytest.mark.parametrize(
    ("answer", "level", "words"),
    [
        (Answer(200), "ok", "answers"),
        (Answer(503, {"status": "draining"}), "warning", "draining"),
        (Answer(500), "problem", "/health answers 500"),
        (SILENT, "problem", "does not answer: Connection refused"),
    ],
)
def test_service_elsewhere(answer: Answer, level: str, words: str) -> None:
    (finding,) = found(elsewhere=(Elsewhere("router.models[0].workers[0].url", "http://10.0.0.7:8000", answer),))
    assert finding.level == level
    assert words in finding.found
    assert level != "problem" or "router.models[0].workers[0].url" in finding.mend


def test_services_elsewhere_are_those_the_profile_does_not_start(tmp_path: Path) -> None:
    assert elsewhere(profile_of(tmp_path, ROUTER + LLM)) == {}
    assert elsewhere(profile_of(tmp_path, VOICE + STT + ROUTER)) == {
        "voice.tts_url": "http://127.0.0.1:8102",
        "router.models[0].workers[0].url": "http://127.0.0.1:8104",
    }


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (b'HTTP/1.1 200 OK\r\nx: y\r\n\r\n{"status": "ready"}', Answer(200, {"status": "ready"})),
        (b"HTTP/1.0 503 Busy\r\n\r\n[1]", Answer(503)),
        (b"HTTP/1.1 404 Not Found\r\n\r\n<html>", Answer(404)),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 60_000, Answer(200)),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", Answer(200)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Answer(None, error="what answers there does not speak HTTP")),
        (b"", Answer(None, error="what answers there does not speak HTTP")),
    ],
)
def test_whatever_answers_is_read(raw: bytes, answer: Answer) -> None:
    assert parse_answer(raw) == answer


@given(st.binary(max_size=200), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{"]))
def test_nothing_that_answers_can_break_the_doctor(rest: bytes, start: bytes) -> None:
    answer = parse_answer(start + rest)
    assert answer.status is None or 0 <= answer.status <= 999


async def test_a_real_service_is_recognised_while_it_drains_and_when_it_is_gone(tmp_path: Path) -> None:
    lifecycle, edge = Lifecycle("stt"), EdgeConfig(port=0)
    path = tmp_path / "profile.yaml"
    async with serving(create_app(lifecycle, edge), lifecycle, edge) as url:
        profile = profile_of(tmp_path, STT.replace("8101", url.rpartition(":")[2]))
        (listener,) = await read_listeners(profile, path)
        assert listener.is_taken
        assert listener.is_ours
        lifecycle.draining = True
        (draining,) = await read_listeners(profile, path)
        assert draining.answer is not None
        assert (draining.answer.status, draining.answer.body["status"]) == (503, "draining")
    (gone,) = await read_listeners(profile, path)
    assert (gone.is_taken, gone.bind_error, gone.answer) == (False, "", None)


async def test_service_that_runs_longer_than_its_profile_is_old_is_found(tmp_path: Path) -> None:
    lifecycle, edge = Lifecycle("stt"), EdgeConfig(port=0)
    app = create_app(lifecycle, edge, details=lambda: {"uptime_s": 1e9})
    async with serving(app, lifecycle, edge) as url:
        profile = profile_of(tmp_path, STT.replace("8101", url.rpartition(":")[2]))
        (listener,) = await read_listeners(profile, tmp_path / "profile.yaml")
        (code,) = await read_listeners(profile, tmp_path / "gone.yaml")
    assert listener.newer == str(tmp_path / "profile.yaml")
    assert code.newer == "its code"


async def test_server_without_health_is_asked_for_its_models() -> None:
    lifecycle, edge = Lifecycle("vllm"), EdgeConfig(port=0)
    app = create_app(lifecycle, edge)
    app.router.routes.clear()

    @app.get("/v1/models")
    async def models() -> dict[str, str]:
        return {"object": "list"}

    async with serving(app, lifecycle, edge) as url:
        assert (await ask(f"{url}/")).status == 200


@asynccontextmanager
async def answering(raw: bytes, *, forever: bool) -> AsyncIterator[str]:
    """A server that says `raw`, again and again if `forever`."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(raw)
            while forever:
                await writer.drain()
                writer.write(raw)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_server_that_never_stops_talking_is_cut_off() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * MAX_ANSWER_BYTES, forever=True) as url:
        assert await ask(url) == Answer(200)


async def test_nobody_there_is_an_answer_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    answer = await ask(f"http://127.0.0.1:{port}")
    assert answer.status is None
    assert "refused" in answer.error.lower() or "connect" in answer.error.lower()
