"""Start processes in the order of their needs, keep them alive, end them in the reverse order.

Decisions are `deploy.restarts`; here are their effects. Each process is a task that starts it, asks its /health until
it answers, and waits for its end. The first signal drains, the second kills. However this ends, nothing that was
started outlives it: process groups are killed here, and the kernel kills our children should we be killed ourselves
(`deploy.leash`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from deploy.child import Child, Spec
from deploy.errors import StartError
from deploy.ports import reachable_host
from deploy.restarts import GiveUp, Restarts

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 180.0  # the first start may convert weights
POLL_STARTING_S = 0.1
POLL_READY_S = 5.0
HEALTH_TIMEOUT_S = 5.0
HUNG_S = 30.0  # a process whose /health does not answer for so long is killed and started again
DRAIN_MARGIN_S = 5.0  # beyond a process's own drain timeout, before it is killed


class Stop:
    """What the user has asked for: nothing yet, a drain, or an end at once."""

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.now = asyncio.Event()

    def ask(self) -> None:
        if self.drain.is_set():
            self.now.set()
        else:
            self.drain.set()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ask)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


class Supervisor:
    """`on_ready` is called once, when all processes answered for the first time."""

    def __init__(
        self,
        specs: Sequence[Spec],
        logs: Path,
        *,
        on_ready: Callable[[], None],
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._restarts = Restarts({spec.name: spec.needs for spec in specs})
        self._logs = logs
        self._on_ready = on_ready
        self._start_timeout_s = start_timeout_s
        self._children: dict[str, Child] = {}
        self._changed = asyncio.Event()

    async def run(self, stop: Stop) -> None:
        """Until `stop.drain`; everything has ended when it returns.

        Raises: StartError when a process cannot be started or kept alive.
        """
        keep = asyncio.create_task(self._keep())
        asked = asyncio.create_task(stop.drain.wait())
        failure: StartError | None = None
        try:
            await asyncio.wait((keep, asked), return_when=asyncio.FIRST_COMPLETED)
            if keep.done():
                keep.result()
        except* StartError as group:
            failure = _first(group)
        finally:
            asked.cancel()
            keep.cancel()
            await asyncio.wait((keep, asked))
            await self._end_all(stop)
        if failure is not None:
            raise failure

    async def _keep(self) -> None:
        announced = False
        async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as lives:
            while True:
                now = time.monotonic()
                for name in self._restarts.due(now):
                    self._restarts.started(name, now)
                    lives.create_task(self._live(self._specs[name], http))
                if self._restarts.all_ready and not announced:
                    announced = True
                    self._on_ready()
                self._changed.clear()
                try:
                    async with asyncio.timeout(self._restarts.next_due_s(now)):
                        await self._changed.wait()
                except TimeoutError:
                    continue

    async def _live(self, spec: Spec, http: aiohttp.ClientSession) -> None:
        """One life of a process, from its start to its end."""
        logger.info("%s: starting", spec.name)
        try:
            child = await Child.start(spec, self._logs)
        except OSError as error:
            raise StartError(f"{spec.name} cannot be started: {error}") from None
        self._children[spec.name] = child
        ended = asyncio.create_task(child.wait())
        try:
            await self._watch(spec, child, ended, http)
            how = await ended
        finally:
            ended.cancel()
        del self._children[spec.name]  # its pid may belong to somebody else from now on
        verdict = self._restarts.ended(spec.name, time.monotonic())
        if isinstance(verdict, GiveUp):
            times = f", {verdict.num_crashes} times in a row: given up" if verdict.was_ready else " before it was ready"
            raise StartError(f"{spec.name} {how}{times}", f"all of its log: {child.log_path}", child.log_tail())
        logger.warning("%s %s; starting it again in %.1f s", spec.name, how, verdict.wait_s)
        if verdict.is_crash_loop:
            logger.error("%s crashes again and again (%d times); its log says:", spec.name, verdict.num_crashes)
            for line in child.log_tail():
                logger.error("  | %s", line)
        self._changed.set()

    async def _watch(self, spec: Spec, child: Child, ended: asyncio.Task[str], http: aiohttp.ClientSession) -> None:
        """Until the process has ended, by itself or killed for not answering.

        Raises: StartError when it is not ready in time.
        """
        is_ready = False
        answered_s = time.monotonic()
        while not ended.done():
            statuses = await asyncio.gather(*(_health(host, port, http) for host, port in spec.addresses))
            now = time.monotonic()
            if None not in statuses:
                answered_s = now
            if not is_ready and all(status == 200 for status in statuses) and not ended.done():
                is_ready = True
                self._restarts.ready(spec.name, now)
                self._changed.set()
                logger.info("%s: ready after %.1f s (pid %d)", spec.name, now - child.started_s, child.pid)
            elif not is_ready and now - child.started_s > self._start_timeout_s:
                problem = f"{spec.name} is not ready after {self._start_timeout_s:.0f} s"
                raise StartError(problem, f"all of its log: {child.log_path}", child.log_tail())
            elif is_ready and now - answered_s > HUNG_S:
                logger.error("%s has not answered for %.0f s: killing it", spec.name, HUNG_S)
                child.kill()
                return
            await asyncio.wait((ended,), timeout=POLL_READY_S if is_ready else POLL_STARTING_S)

    async def _end_all(self, stop: Stop) -> None:
        for names in self._restarts.drain_order():
            children = {name: self._children[name] for name in names if name in self._children}
            if children:
                logger.info("ending %s: running work may finish; Ctrl-C again ends all at once", ", ".join(children))
                patience_s = DRAIN_MARGIN_S + max(self._specs[name].drain_timeout_s for name in children)
                await _end(children, patience_s, stop.now)


async def _end(children: Mapping[str, Child], patience_s: float, hurry: asyncio.Event) -> None:
    """Ask them to drain; kill those that have not ended after `patience_s`, or when `hurry` is set."""
    for child in children.values():
        child.terminate()
    ends = {asyncio.create_task(child.wait()): name for name, child in children.items()}
    hurried = asyncio.create_task(hurry.wait())
    deadline_s = time.monotonic() + patience_s
    while not hurried.done() and not all(end.done() for end in ends):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            break
        pending = [end for end in ends if not end.done()]
        await asyncio.wait((*pending, hurried), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
    if late := [name for end, name in ends.items() if not end.done()]:
        logger.warning("killing %s", ", ".join(late))
        for name in late:
            children[name].kill()
    hurried.cancel()
    await asyncio.wait((*ends, hurried))


async def _health(host: str, port: int, http: aiohttp.ClientSession) -> int | None:
    """The status of its /health, None when there was no answer."""
    url = f"http://{reachable_host(host)}:{port}/health"
    try:
        async with http.get(url, timeout=aiohttp.ClientTimeout(HEALTH_TIMEOUT_S)) as response:
            return response.status
    except (aiohttp.ClientError, TimeoutError):
        return None


def _first(group: BaseExceptionGroup[StartError]) -> StartError:
    first = group.exceptions[0]
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, StartError)
    return first
