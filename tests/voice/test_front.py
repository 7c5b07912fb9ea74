"""A call server of several processes, as it is started: `python -m voice`, on scripted services."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from tests.caller import OUTPUT_HZ, Caller, calling
from tests.fakes import FakeLlm, FakeStt, FakeTts
from tests.rtc_peer import FRAGMENT, offer_of, peer, post, request
from tests.serving import free_ports, serving
from tests.stack import are_gone, eventually
from voice import arrivals
from voice.front import END_S
from voice.spread import SILENT_S
from voice.worker import BEAT_S
from wire import calls
from wire.config import EdgeConfig
from wire.service import Lifecycle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
]

READY_S = 60.0
SOON_S = 10.0
QUIET = calls.Hello(1, output_sample_rate_hz=OUTPUT_HZ, greeting=False)


@dataclass
class Server:
    process: subprocess.Popen[str]
    log: Path
    base: str

    @property
    def workers(self) -> dict[int, int]:
        """Pid by number, of the life that became ready last."""
        found = re.findall(r"worker (\d+) is ready after .* \(pid (\d+)\)", self.log.read_text())
        return {int(number): int(pid) for number, pid in found}

    @property
    def begun(self) -> Counter[int]:
        """Calls by worker, as the log tells."""
        return Counter(
            int(number) for number in re.findall(r" voice-(\d+) INFO .*: call \w+ begins", self.log.read_text())
        )

    def children(self) -> str:
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()

    async def get(self, path: str) -> tuple[int, dict]:
        async with aiohttp.ClientSession() as http, http.get(self.base + path) as response:
            return response.status, await response.json()

    async def until_taken(self, num_calls: int) -> None:
        await self.until_health(lambda _, told: told["calls"] == num_calls)

    async def until_health(self, holds: Callable[[int, dict], bool]) -> dict:
        async with asyncio.timeout(SOON_S):
            while True:
                with contextlib.suppress(aiohttp.ClientError):  # it is about to answer when it dies
                    status, told = await self.get("/health")
                    if holds(status, told):
                        return told
                await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, str]]:
    """Their URLs; on a loop of their own, because those of tests end with the test."""
    urls: concurrent.futures.Future[dict[str, str]] = concurrent.futures.Future()
    loop, over = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with contextlib.AsyncExitStack() as stack:
            edge, found = EdgeConfig(port=0), {}
            for name, fake in (("stt_url", FakeStt()), ("tts_url", FakeTts()), ("llm_url", FakeLlm())):
                found[name] = await stack.enter_async_context(serving(fake.app(), Lifecycle("fake"), edge))
            urls.set_result(found)
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    yield urls.result(SOON_S)
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


def start(folder: Path, services: dict[str, str], **settings: object) -> Server:
    [port] = free_ports(1)
    edge = {"port": port, "drain_timeout_s": 2.0}
    (folder / "profile.yaml").write_text(
        yaml.safe_dump({"voice": {"edge": edge, "llm_model": "fake", **services, **settings}})
    )
    with (folder / "voice.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "voice", "--profile", str(folder / "profile.yaml")],
            stdin=subprocess.DEVNULL,
            stderr=log,
            text=True,
            process_group=0,
            env={**os.environ, "TMPDIR": str(folder)},
        )
    return Server(process, folder / "voice.log", f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def running(folder: Path, services: dict[str, str], **settings: object) -> Iterator[Server]:
    server = start(folder, services, **settings)
    try:
        until_s = time.monotonic() + READY_S
        while "listening on" not in server.log.read_text():
            assert server.process.poll() is None, server.log.read_text()
            assert time.monotonic() < until_s, server.log.read_text()
            time.sleep(0.05)
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait(SOON_S)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, services: dict[str, str]) -> Iterator[Server]:
    """Two processes for four calls; tests leave it as they found it."""
    with running(tmp_path_factory.mktemp("two"), services, num_processes=2, max_calls=4) as server:
        yield server


@pytest.fixture
def own(tmp_path: Path, services: dict[str, str]) -> Iterator[Server]:
    with running(tmp_path, services, num_processes=2, max_calls=2) as server:
        yield server


async def called(server: Server, stack: contextlib.AsyncExitStack, hello: calls.Hello = QUIET) -> Caller:
    caller = await stack.enter_async_context(calling(server.base, hello))
    await caller.until(calls.Ready)
    return caller


async def test_a_burst_spreads_evenly_and_is_refused_only_when_all_lines_are_taken(two: Server) -> None:
    before = two.begun
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(called(two, stack) for _ in range(4)))
        await two.until_taken(4)
        assert two.begun - before == {1: 2, 2: 2}

        refused = await stack.enter_async_context(calling(two.base, QUIET))
        assert (await refused.until(calls.Error)).message == "all 4 lines are busy"
        assert await refused.until_closed() == 1013
        async with peer() as connection:
            status, headers, _ = await post(two.base, await offer_of(connection))
        assert (status, int(headers["retry-after"]) >= 1) == (429, True)
        assert [(await two.get("/v1/calls"))[0] for _ in range(4)] == [429] * 4
    await two.until_taken(0)


async def leaves_without_hello(host: str, port: int) -> None:
    async with aiohttp.ClientSession() as http, http.ws_connect(f"http://{host}:{port}/v1/calls"):
        pass


async def sends_what_is_no_offer(host: str, port: int) -> None:
    assert (await post(f"http://{host}:{port}", "v=0", headers={"content-type": "text/plain"}))[0] == 415


async def sends_a_header_that_is_none(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /v1/calls HTTP/1.1\r\nUpgrade: websocket\r\nbad header: 1\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()


@pytest.mark.parametrize("comes", [leaves_without_hello, sends_what_is_no_offer, sends_a_header_that_is_none])
async def test_who_takes_no_line_is_counted_no_longer(
    two: Server, comes: Callable[[str, int], Coroutine[None, None, None]]
) -> None:
    """Else his worker would seem to have a call more, and the next two calls went to the other."""
    host, port = two.base.removeprefix("http://").split(":")
    await comes(host, int(port))
    await asyncio.sleep(2 * BEAT_S)
    before = two.begun
    for _ in range(2):
        async with contextlib.AsyncExitStack() as stack:
            await called(two, stack)
        await two.until_taken(0)

    assert two.begun - before == {1: 1, 2: 1}


async def test_every_process_tells_of_all(two: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            await called(two, stack)
        await two.until_taken(3)
        for _ in range(4):  # whoever answers
            assert await two.get("/v1/calls") == (200, {"calls": 3, "max_calls": 4})
            _, health = await two.get("/health")
            assert (health["calls"], health["max_calls"], health["active"], health["processes"]) == (3, 4, 3, 2)
            _, status = await two.get("/v1/status")
            assert status["processes"][0]["detail"] == "3 of 4 lines taken, 2 of 2 processes up"
            assert status["processes"][0]["active"] == 3
    await two.until_taken(0)


async def test_what_belongs_to_a_webrtc_call_finds_it(two: Server) -> None:
    """Candidates are sent in three times as many requests as there are processes, each on a connection of its own."""
    async with contextlib.AsyncExitStack() as stack:
        places = []
        for _ in range(2):
            connection = await stack.enter_async_context(peer())
            status, headers, _ = await post(two.base, await offer_of(connection))
            assert (status, headers["connection"]) == (201, "close")
            places.append(two.base + headers["location"])
        assert {place.rpartition("/")[2].partition("-")[0] for place in places} == {"1", "2"}
        for place in [*places] * 3:
            assert (await request("PATCH", place, data="", headers=FRAGMENT))[0] == 204
        for place in places:
            assert (await request("DELETE", place))[0] == 200
        await two.until_taken(0)
        for place in [*places, f"{two.base}/v1/calls/rtc/7-nobody", f"{two.base}/v1/calls/rtc/nobody"]:
            assert (await request("DELETE", place))[0] == 404


async def test_metrics_are_those_of_all(two: Server) -> None:
    async def metric(name: str) -> float:
        _, text = await request("GET", f"{two.base}/metrics")
        return sum(float(value) for value in re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE))

    ended = await metric('voice_calls_total{reason="hangup"}')
    async with contextlib.AsyncExitStack() as stack:
        callers = await asyncio.gather(*(called(two, stack) for _ in range(4)))
        assert [await metric("voice_calls_active") for _ in range(2)] == [4, 4]
        for caller in callers:
            await caller.send(calls.Hangup())
            await caller.until(calls.Bye)
    await two.until_taken(0)
    assert [await metric('voice_calls_total{reason="hangup"}') for _ in range(2)] == [ended + 4] * 2
    assert await metric("voice_calls_active") == 0


async def test_slow_and_senseless_clients_hold_nobody_up(two: Server) -> None:
    host, port = two.base.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(30)]
        for sock in socks[:10]:
            sock.sendall(b"GET /v1/calls HTTP/1.1\r\nUpgr")
        for sock in socks[10:15]:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        for sock in socks[15:20]:
            sock.sendall(b"NONSENSE\r\n\r\n")
        async with asyncio.timeout(arrivals.HEAD_TIMEOUT_S / 2):
            async with calling(two.base, QUIET) as caller:
                await caller.until(calls.Ready)
        for sock in socks[10:20]:
            sock.settimeout(SOON_S)
            assert (await asyncio.to_thread(sock.recv, 4096)).startswith(b"HTTP/1.1 400")
        for sock in [*socks[:10], *socks[20:]]:
            sock.settimeout(arrivals.HEAD_TIMEOUT_S + SOON_S)
            with contextlib.suppress(ConnectionResetError):  # what it sent was not read
                assert await asyncio.to_thread(sock.recv, 4096) == b""
    await two.until_taken(0)


async def test_a_head_that_comes_in_pieces_is_a_call(two: Server) -> None:
    host, port = two.base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"GET /v1/calls HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    for piece in re.findall(r"(?s).{1,20}", head):
        writer.write(piece.encode())
        await writer.drain()
        await asyncio.sleep(0)
    assert (await reader.readline()).startswith(b"HTTP/1.1 101")
    writer.close()


async def test_a_killed_worker_takes_its_calls_along_and_no_others_and_comes_back(own: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        callers = [await called(own, stack), await called(own, stack)]
        killed = own.workers[2]
        os.kill(killed, signal.SIGKILL)
        async with asyncio.timeout(SOON_S):
            closings = {asyncio.create_task(caller.until_closed()): caller for caller in callers}
            _, [waiting] = await asyncio.wait(closings, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        await own.until_taken(1)
        assert (await own.get("/v1/calls"))[0] == 429  # the only line left is taken
        await eventually(lambda: own.workers[2] != killed, READY_S)
        assert closings[waiting].close_code is None
        await called(own, stack)
        await own.until_taken(2)
    assert "WARNING voice.front: worker 2 was ended by SIGKILL; starting it again in 0.5 s" in own.log.read_text()


async def test_a_worker_that_hangs_is_asked_nothing(own: Server) -> None:
    hung = own.workers[1]
    os.kill(hung, signal.SIGSTOP)
    try:
        await asyncio.sleep(SILENT_S + BEAT_S)
        async with asyncio.timeout(SOON_S), contextlib.AsyncExitStack() as stack:
            assert [(await own.get("/health"))[0] for _ in range(4)] == [200] * 4
            await called(own, stack)
        assert own.begun == {2: 1}
    finally:
        os.kill(hung, signal.SIGCONT)


async def test_a_worker_that_is_told_to_end_drains_alone_and_comes_back(own: Server) -> None:
    told = own.workers[1]
    async with contextlib.AsyncExitStack() as stack:
        callers = [await called(own, stack), await called(own, stack)]
        os.kill(told, signal.SIGTERM)
        async with asyncio.timeout(SOON_S):
            byes = [asyncio.create_task(caller.until(calls.Bye)) for caller in callers]
            [done], [waiting] = await asyncio.wait(byes, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        assert done.result().reason == "drain"
        await eventually(lambda: own.workers[1] != told, READY_S)
        assert callers[byes.index(waiting)].close_code is None
        await own.until_taken(1)


async def test_where_no_worker_is_up_a_client_is_told(own: Server) -> None:
    for pid in own.workers.values():
        os.kill(pid, signal.SIGKILL)
    told = await own.until_health(lambda status, _: status == 503)
    assert told["error"]["code"] == "unavailable"


async def test_the_front_drains_all(own: Server) -> None:
    pids = [*own.workers.values()]
    async with contextlib.AsyncExitStack() as stack:
        callers = [await called(own, stack), await called(own, stack)]
        own.process.send_signal(signal.SIGTERM)
        for caller in callers:
            assert (await caller.until(calls.Bye)).reason == "drain"
            assert await caller.until_closed() == 1012
        assert await asyncio.to_thread(own.process.wait, SOON_S) == 0
    assert are_gone(pids)
    assert "starting it again" not in own.log.read_text()


async def test_a_draining_front_says_so(own: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await called(own, stack)
        own.process.send_signal(signal.SIGTERM)
        told = await own.until_health(lambda status, _: status == 503)
        assert (told["status"], told["calls"]) == ("draining", 1)


async def test_a_second_signal_ends_all_at_once_also_when_the_terminal_sends_it_to_all(own: Server) -> None:
    pids = [*own.workers.values()]
    async with contextlib.AsyncExitStack() as stack:
        caller = await called(own, stack)
        os.killpg(own.process.pid, signal.SIGINT)
        await asyncio.sleep(0.5)
        assert caller.close_code is None  # a first one lets it end well
        os.killpg(own.process.pid, signal.SIGINT)
        await caller.until_closed(END_S + SOON_S)
        assert await asyncio.to_thread(own.process.wait, SOON_S) == 0
    assert are_gone(pids)


async def test_when_the_front_is_killed_nobody_stays(own: Server) -> None:
    pids = [*own.workers.values()]
    async with contextlib.AsyncExitStack() as stack:
        caller = await called(own, stack)
        own.process.kill()
        await caller.until_closed()
    own.process.wait(SOON_S)
    await eventually(lambda: are_gone(pids), SOON_S)


def last_line(server: Server) -> str:
    assert server.process.wait(READY_S) == 1
    lines = server.log.read_text().splitlines()
    assert [line for line in lines if " ERROR " in line] == lines[-1:]
    assert "Traceback" not in server.log.read_text()
    return lines[-1]


def test_a_worker_that_cannot_start_is_one_clear_line(tmp_path: Path, services: dict[str, str]) -> None:
    server = start(tmp_path, services, num_processes=2, vad_model="nowhere")

    assert "model 'nowhere' is not in" in last_line(server)


def test_a_port_that_is_taken_is_one_clear_line(tmp_path: Path, services: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        edge = {"port": taken.getsockname()[1]}
        server = start(tmp_path, services, num_processes=2, edge=edge)

        assert "cannot listen on" in last_line(server)


def test_more_processes_than_calls_are_an_error_in_the_profile(tmp_path: Path, services: dict[str, str]) -> None:
    server = start(tmp_path, services, num_processes=3, max_calls=2)

    assert "num_processes must be 1 to max_calls" in last_line(server)


async def test_one_process_is_what_it_was(tmp_path: Path, services: dict[str, str]) -> None:
    with running(tmp_path, services) as server, contextlib.suppress(ProcessLookupError):
        assert server.children() == ""
        _, health = await server.get("/health")
        assert "processes" not in health
        async with peer() as connection:
            _, headers, _ = await post(server.base, await offer_of(connection))
        assert "connection" not in headers
        assert (await request("DELETE", server.base + headers["location"]))[0] == 200
        assert "process_cpu_seconds_total" in (await request("GET", f"{server.base}/metrics"))[1]
        server.process.terminate()
        assert await asyncio.to_thread(server.process.wait, SOON_S) == 0
    assert " voice INFO " in server.log.read_text()
