"""The front of a call server of several processes (`voice.num_processes`): it takes no calls, it hands them over.

    client --TCP--> front --descriptor--> worker 1, worker 2, ...

A process of Python uses one core, so the front starts workers (`voice.worker`), accepts connections, looks at what each
is after, and passes its descriptor to the worker that `voice.spread` chooses; what is sent then does not pass here. A
worker that ends is started again, and its calls have ended with it; the others know nothing of it. Where no worker is
up, a client is told so from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import signal
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from voice import arrivals
from voice.admission import Load
from voice.channel import FROM_WORKER, Channel, Connection, Drain, End, Failed, FromWorker, Ready, Start
from voice.config import VoiceConfig
from voice.metric_files import metric_files
from voice.spread import Spread, State, read_wish, shares
from wire.config import ConfigError
from wire.errors import Unavailable, WireError
from wire.log import LogLevel
from wire.replies import error_response
from wire.service import listen_socket, log_listening

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 0.5  # before a worker that ended is started again; doubled each time
MAX_WAIT_S = 10.0
HEALTHY_S = 60.0  # a worker that was up for so long has a clean record
LOOK_S = 1.0
HUNG_S = 30.0  # as the supervisor of a single process has it
START_TIMEOUT_S = 170.0  # below the supervisor's
DRAIN_MARGIN_S = 4.0  # beyond edge.drain_timeout_s; the supervisor's is 5
END_S = 3.0  # after a second signal


def run(config: VoiceConfig, log_level: LogLevel, environment: Mapping[str, str]) -> None:
    """Serve until drained. `environment`: of the workers.

    Raises: ConfigError, Unavailable, as the start of a single process does.
    """
    failure: BaseException | None = None
    with metric_files() as folder:
        try:
            asyncio.run(Front(config, log_level, environment, folder).run())
        except* (ConfigError, WireError) as group:
            failure = group.exceptions[0]
    if failure is not None:
        raise failure
    logger.info("drained")


@dataclass(frozen=True)
class Past:
    """A life that is over. `problem`: why it could not start, by its own word."""

    how: str
    problem: str = ""
    was_up: bool = False
    lived_s: float = 0.0


class Life:
    def __init__(self, process: asyncio.subprocess.Process, channel: Channel[FromWorker]) -> None:
        self.process = process
        self.channel = channel
        self.started_s = self.heard_s = time.monotonic()
        self.is_up = False
        self.was_up = False
        self.problem = ""
        self.told = Load()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def past(self) -> Past:
        code = self.process.returncode
        assert code is not None
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        how = f"cannot start: {self.problem}" if self.problem else how
        return Past(how, self.problem, self.was_up, time.monotonic() - self.started_s)


class Front:
    def __init__(self, config: VoiceConfig, log_level: LogLevel, environment: Mapping[str, str], folder: Path) -> None:
        self._config = config
        self._log_level = log_level
        self._environment = {**environment, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
        self._folder = folder
        self._shares = shares(config.max_calls, config.num_processes)
        self._spread = Spread(self._shares)
        self._lives: dict[int, Life] = {}
        self._started_s = time.monotonic()
        self._all_up = asyncio.Event()
        self._draining = asyncio.Event()

    async def run(self) -> None:
        """Raises: ExceptionGroup of ConfigError, Unavailable."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        async with asyncio.TaskGroup() as tasks:
            keepers = [tasks.create_task(self._keep(number)) for number in range(1, len(self._shares) + 1)]
            accepting = tasks.create_task(self._accept())
            await asyncio.wait(keepers)
            accepting.cancel()

    async def _accept(self) -> None:
        await self._all_up.wait()
        with listen_socket(self._config.edge) as listener:
            log_listening(listener, self._config.edge)
            await arrivals.accept(listener, self._hand_over)

    def _hand_over(self, sock: socket.socket, head: bytes) -> None:
        wish, without = read_wish(head), set[int]()
        while (number := self._spread.choose(wish, time.monotonic(), without)) is not None:
            if self._lives[number].channel.send(Connection(is_call=wish.kind == "call"), sock):
                self._spread.handed(number, wish)
                return
            without.add(number)
        refuse(sock)

    async def _keep(self, number: int) -> None:
        """Raises: Unavailable when a worker cannot be started for the first time."""
        was_up, num_crashes = False, 0
        while not self._draining.is_set():
            past = await self._live(number)
            if self._draining.is_set():
                return
            was_up = was_up or past.was_up
            if not was_up:
                raise Unavailable(past.problem or f"worker {number} {past.how} before it was ready")
            if past.was_up and past.lived_s >= HEALTHY_S:
                num_crashes = 0
            wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 2**num_crashes)
            num_crashes += 1
            logger.warning("worker %d %s; starting it again in %.1f s", number, past.how, wait_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._draining.wait()

    async def _live(self, number: int) -> Past:
        """One life of a worker, from its start to its end. Nothing is left of it when this returns, or is cancelled."""
        try:
            process, channel = await self._start(number)
        except OSError as error:
            return Past(f"cannot be started: {error}")
        life = self._lives[number] = Life(process, channel)
        if self._draining.is_set():
            life.kill()
        try:
            life.channel.listen(lambda message, _: self._hear(number, life, message), lambda: self._down(number, life))
            await self._give(process, number)
            await self._watch(number, life)
        finally:
            life.kill()
            await process.wait()
            self._down(number, life)
            life.channel.close()
            mark_process_dead(process.pid, str(self._folder))  # type: ignore[no-untyped-call]
        return life.past()

    async def _start(self, number: int) -> tuple[asyncio.subprocess.Process, Channel[FromWorker]]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "voice.worker", str(number), str(theirs.fileno())),
                    stdin=asyncio.subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    env=self._environment,
                )
            except OSError:
                ours.close()
                raise
        return process, Channel(ours, FROM_WORKER)

    async def _give(self, process: asyncio.subprocess.Process, number: int) -> None:
        assert process.stdin is not None
        share = self._shares[number - 1]
        start = Start(self._config, share, self._started_s, self._folder, self._log_level)
        process.stdin.write(pickle.dumps(start))
        with contextlib.suppress(ConnectionError):  # it has ended already
            await process.stdin.drain()
        process.stdin.close()

    async def _watch(self, number: int, life: Life) -> None:
        """Until it has ended, by itself or killed for its silence."""
        ended = asyncio.create_task(life.process.wait())
        try:
            while not ended.done():
                limit_s = HUNG_S if life.was_up else START_TIMEOUT_S
                if time.monotonic() - life.heard_s > limit_s:
                    logger.error("worker %d has said nothing for %.0f s: killing it", number, limit_s)
                    life.kill()
                self._tell(life)
                await asyncio.wait((ended,), timeout=LOOK_S)
        finally:
            ended.cancel()

    def _hear(self, number: int, life: Life, message: FromWorker) -> None:
        life.heard_s = now = time.monotonic()
        match message:
            case Ready():
                life.is_up = life.was_up = True
                self._spread.up(number, now)
                logger.info("worker %d is ready after %.1f s (pid %d)", number, now - life.started_s, life.process.pid)
                if self._spread.all_up:
                    self._all_up.set()
            case State():
                self._spread.heard(number, message, now)
            case Failed():
                life.problem = message.problem
        self._tell_all()

    def _down(self, number: int, life: Life) -> None:
        """Its end of the channel is closed: nothing is handed to it any more, and it is about to end."""
        if life.is_up:
            life.is_up = False
            self._spread.down(number)
            self._tell_all()

    def _tell_all(self) -> None:
        for life in self._lives.values():
            self._tell(life)

    def _tell(self, life: Life) -> None:
        """What could not be told is told at the next look."""
        load = self._spread.load
        if life.is_up and life.told != load and life.channel.send(load):
            life.told = load

    def _stop(self) -> None:
        """The first signal drains, a second one ends at once."""
        message: Drain | End = End() if self._draining.is_set() else Drain()
        patience_s = END_S if self._draining.is_set() else self._config.edge.drain_timeout_s + DRAIN_MARGIN_S
        self._draining.set()
        for life in self._lives.values():
            if not life.is_up:
                life.kill()
            elif not life.channel.send(message):
                life.process.terminate()
        asyncio.get_running_loop().call_later(patience_s, self._kill_all)

    def _kill_all(self) -> None:
        for life in self._lives.values():
            life.kill()


def refuse(sock: socket.socket) -> None:
    """No worker is up."""
    answer = error_response(Unavailable("the call server starts again: try again in a moment"))
    head = f"HTTP/1.1 {answer.status_code} Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n".encode()
    fields = b"".join(name + b": " + value + b"\r\n" for name, value in answer.raw_headers)
    with contextlib.suppress(OSError):
        sock.recv(arrivals.MAX_HEAD_BYTES)  # what is unread at the close would take the answer back
        sock.send(head + fields + b"\r\n" + bytes(answer.body))
