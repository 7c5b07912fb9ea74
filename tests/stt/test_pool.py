from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from stt.pool import Pool, Ticket
from stt.schedule import Priority
from wire.errors import DeadlineExceeded, Overloaded, Unavailable

FINAL, SPECULATE, FILE, PARTIAL = Priority


class Gate:
    """Steps that note their job, and wait until the gate opens."""

    def __init__(self, num_instances: int = 1, max_waiting: int = 4) -> None:
        self.started: list[str] = []
        self.threads: dict[str, int] = {}
        self._open = threading.Event()
        self.pool: Pool[str, str] = Pool("gate", [self._step] * num_instances, max_waiting)

    def open(self) -> None:
        self._open.set()

    def submit(self, job: str, priority: Priority = FINAL, left_s: float = 30.0) -> Ticket[str, str]:
        return self.pool.submit(job, priority, time.monotonic() + left_s)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.pool.running():
            try:
                yield
            finally:
                self.open()

    def _step(self, job: str) -> str:
        self.started.append(job)
        self.threads[job] = threading.get_ident()
        assert self._open.wait(20)
        if job == "bad":
            raise RuntimeError("broken step")
        return job.upper()


async def test_a_job_comes_back_from_the_thread_of_its_instance() -> None:
    gate = Gate()
    async with gate.running():
        gate.open()
        ticket = gate.submit("a")
        assert await ticket.outcome == "A"
        assert ticket.started
        assert gate.threads["a"] != threading.get_ident()


async def test_an_instance_is_only_ever_called_by_one_thread() -> None:
    gate = Gate()
    async with gate.running():
        gate.open()
        for job in "abcd":
            await gate.submit(job).outcome
    assert len(set(gate.threads.values())) == 1


async def test_finals_overtake_what_waits() -> None:
    gate = Gate()
    async with gate.running():
        tickets = [
            gate.submit("busy"),
            gate.submit("file", FILE),
            gate.submit("guess", SPECULATE),
            gate.submit("final"),
        ]
        gate.open()
        await asyncio.gather(*(ticket.outcome for ticket in tickets))
    assert gate.started == ["busy", "final", "guess", "file"]


async def test_a_partial_waits_until_another_instance_stays_free() -> None:
    gate = Gate(num_instances=2)
    async with gate.running():
        busy, partial = gate.submit("busy"), gate.submit("partial", PARTIAL)
        final = gate.submit("final")
        assert not partial.started
        gate.open()
        await asyncio.gather(busy.outcome, final.outcome, partial.outcome)
    assert set(gate.started[:2]) == {"busy", "final"}


async def test_an_expired_request_is_never_computed() -> None:
    gate = Gate()
    async with gate.running():
        busy, late = gate.submit("busy"), gate.submit("late", left_s=0.001)
        while time.monotonic() <= late.deadline_s:
            pass  # a millisecond of the real clock, which is the pool's
        gate.open()
        await busy.outcome
        with pytest.raises(DeadlineExceeded):
            await late.outcome
    assert "late" not in gate.started


async def test_a_deadline_that_has_passed_is_refused_on_arrival() -> None:
    gate = Gate()
    async with gate.running():
        before = num_expired()
        with pytest.raises(DeadlineExceeded):
            gate.submit("late", left_s=-1)
    assert num_expired() == before + 1


def num_expired() -> float:
    return REGISTRY.get_sample_value("stt_expired_total", {"model": "gate", "priority": "final"}) or 0.0


async def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    gate = Gate(max_waiting=1)
    async with gate.running():
        gate.submit("busy")
        gate.submit("waits")
        with pytest.raises(Overloaded) as caught:
            gate.submit("refused")
    assert caught.value.retry_after_s > 0
    assert "refused" not in gate.started


async def test_a_final_takes_the_place_of_a_speculation() -> None:
    gate = Gate(max_waiting=1)
    async with gate.running():
        gate.submit("busy")
        guess = gate.submit("guess", SPECULATE)
        final = gate.submit("final")
        with pytest.raises(Overloaded):
            await guess.outcome
        gate.open()
        assert await final.outcome == "FINAL"


async def test_what_nobody_waits_for_is_not_computed() -> None:
    gate = Gate()
    async with gate.running():
        busy, unwanted = gate.submit("busy"), gate.submit("unwanted")
        gate.pool.drop(unwanted)
        gate.open()
        await busy.outcome
    assert gate.started == ["busy"]
    assert unwanted.outcome.cancelled()


async def test_a_running_request_that_is_dropped_does_not_hold_up_the_next() -> None:
    gate = Gate()
    async with gate.running():
        busy, following = gate.submit("busy"), gate.submit("next")
        gate.pool.drop(busy)
        gate.open()
        assert await following.outcome == "NEXT"


async def test_a_step_that_raises_fails_its_own_request_only(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    async with gate.running():
        gate.open()
        with pytest.raises(Unavailable, match="recognition failed"):
            await gate.submit("bad").outcome
        assert await gate.submit("good").outcome == "GOOD"
    [record] = caplog.records
    assert record.exc_info is not None


async def test_at_shutdown_what_waits_fails_and_what_runs_ends() -> None:
    gate = Gate()
    async with gate.pool.running():
        running, waiting = gate.submit("running"), gate.submit("waiting")
        gate.open()
    assert running.outcome.result() == "RUNNING"
    with pytest.raises(Unavailable):
        await waiting.outcome
    with pytest.raises(Unavailable):
        gate.submit("late")
