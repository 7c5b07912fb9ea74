"""The instances of one engine, shared by all who ask.

One thread owns each instance and blocks on its inbox; all decisions are taken on the event loop by `stt.schedule`, so
nothing here is locked. An instance that runs cannot be interrupted: a request cancelled or expired while it runs is
computed to its end and its result dropped.

    submit -> Ticket waits in the schedule -> inbox of an idle instance -> thread -> loop -> Ticket.outcome
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from stt import metrics
from stt.schedule import Entry, Priority, Schedule
from wire.errors import DeadlineExceeded, Overloaded, Unavailable, WireError

logger = logging.getLogger(__name__)

FIRST_STEP_S = 0.1  # taken for typical until a step was measured; only `retry_after_s` depends on it
SMOOTHING = 0.1  # weight of the newest step in the typical one

J = TypeVar("J")
R = TypeVar("R")


class Ticket(Entry, Generic[J, R]):
    """A submitted request. Several may wait for `outcome`, each behind a shield."""

    def __init__(self, job: J, priority: Priority, deadline_s: float, now: float) -> None:
        super().__init__(priority, deadline_s)
        self.job = job
        self.submitted_s = now
        self.compute_s = 0.0
        self.outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()

    def fail(self, error: WireError) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)
            self.outcome.exception()  # marks it as seen: nobody may be waiting


class Pool(Generic[J, R]):
    """`steps`: one callable per instance, each called by one thread only. `name` labels metrics and logs."""

    def __init__(self, name: str, steps: Sequence[Callable[[J], R]], max_waiting: int) -> None:
        self.name = name
        self._steps = tuple(steps)
        self._schedule: Schedule[Ticket[J, R]] = Schedule(len(self._steps), max_waiting)
        self._inboxes: list[queue.SimpleQueue[Ticket[J, R] | None]] = [queue.SimpleQueue() for _ in self._steps]
        self._idle = list(range(len(self._steps)))
        self._typical_s = FIRST_STEP_S
        self._is_open = False

    @property
    def num_waiting(self) -> int:
        return len(self._schedule)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Bracket of the time in which `submit` is allowed. At its end running steps are awaited, waiting ones fail."""
        loop = asyncio.get_running_loop()
        threads = [
            threading.Thread(target=self._work, args=(loop, instance), name=f"{self.name}-{instance}", daemon=True)
            for instance in range(len(self._steps))
        ]
        for thread in threads:
            thread.start()
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            for ticket in self._schedule.clear():
                ticket.fail(Unavailable("recognition shuts down"))
            for inbox in self._inboxes:
                inbox.put(None)
            for thread in threads:
                await asyncio.to_thread(thread.join)

    def submit(self, job: J, priority: Priority, deadline_s: float) -> Ticket[J, R]:
        """`deadline_s` is an instant of `time.monotonic`.

        Raises: Overloaded when the queue is full of requests as urgent; DeadlineExceeded; Unavailable at shutdown.
        """
        now = time.monotonic()
        if not self._is_open:
            raise Unavailable("recognition is not running")
        if deadline_s <= now:
            metrics.EXPIRED.labels(self.name, priority.name.lower()).inc()
            raise DeadlineExceeded("the deadline had passed on arrival")
        ticket: Ticket[J, R] = Ticket(job, priority, deadline_s, now)
        self._drop_expired(now)
        self._schedule.add(ticket)
        self._dispatch(now)
        if refused := self._schedule.overflow():
            metrics.REFUSED.labels(self.name, refused.priority.name.lower()).inc()
            refused.fail(self._overloaded())
        self._note_depth()
        if refused is ticket:
            raise self._overloaded()
        return ticket

    def promote(self, ticket: Ticket[J, R], priority: Priority, deadline_s: float) -> None:
        """Someone more urgent, or with more time, waits for `ticket` too."""
        ticket.promote(priority, deadline_s)
        self._dispatch(time.monotonic())

    def drop(self, ticket: Ticket[J, R]) -> None:
        """Nobody waits for `ticket` any more."""
        if not ticket.outcome.done():
            ticket.outcome.cancel()
        if self._schedule.remove(ticket):
            metrics.CANCELLED.labels(self.name, ticket.priority.name.lower()).inc()
            self._note_depth()

    def _overloaded(self) -> Overloaded:
        wait_s = len(self._schedule) * self._typical_s / len(self._steps)
        return Overloaded(f"{len(self._schedule)} requests wait for {self.name}", retry_after_s=wait_s)

    def _drop_expired(self, now: float) -> None:
        for ticket in self._schedule.expired(now):
            ticket.fail(DeadlineExceeded("the deadline passed before recognition began"))

    def _dispatch(self, now: float) -> None:
        self._drop_expired(now)
        while (ticket := self._schedule.take()) is not None:
            label = ticket.priority.name.lower()
            metrics.QUEUE_WAIT.labels(self.name, label).observe(now - ticket.submitted_s)
            self._inboxes[self._idle.pop()].put(ticket)
        self._note_depth()

    def _note_depth(self) -> None:
        metrics.QUEUE_DEPTH.labels(self.name).set(len(self._schedule))

    def _work(self, loop: asyncio.AbstractEventLoop, instance: int) -> None:
        """The thread of one instance."""
        step, inbox = self._steps[instance], self._inboxes[instance]
        while (ticket := inbox.get()) is not None:
            started_s = time.monotonic()
            try:
                outcome: R | Unavailable = step(ticket.job)
            except Exception:  # one engine step ends its own request only
                logger.exception("%s: a step failed", self.name)
                metrics.FAILED.labels(self.name).inc()
                outcome = Unavailable("recognition failed")
            loop.call_soon_threadsafe(self._finished, instance, ticket, outcome, time.monotonic() - started_s)

    def _finished(self, instance: int, ticket: Ticket[J, R], outcome: R | Unavailable, compute_s: float) -> None:
        ticket.compute_s = compute_s
        self._typical_s += SMOOTHING * (compute_s - self._typical_s)
        metrics.COMPUTE.labels(self.name, ticket.priority.name.lower()).observe(compute_s)
        if isinstance(outcome, Unavailable):
            ticket.fail(outcome)
        elif not ticket.outcome.done():
            ticket.outcome.set_result(outcome)
        self._idle.append(instance)
        self._schedule.finish()
        self._dispatch(time.monotonic())
