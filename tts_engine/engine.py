"""The thread that owns the voices, and what a connection sees of it.

    Line.open, add, end, cancel  ->  Schedule  ->  steps on the thread  ->  Line.events

Decisions are in `tts_engine.scheduler`; here they are carried out under one lock, which no model step holds. Results go
to the line's event loop. Of a cancelled utterance nothing is posted any more, but what was posted before the
cancelling may still be in the line's queue: whoever reads it drops it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tts_engine import metrics
from tts_engine.scheduler import MAX_UNSENT_CHUNKS, Schedule, Step, Utterance
from tts_engine.segmenter import Unit
from tts_engine.speaking import Chunk, Speaker
from wire.errors import DeadlineExceeded, Overloaded, Unavailable, WireError

logger = logging.getLogger(__name__)

MAX_OPEN_UTTERANCES = 16  # of one line


@dataclass(frozen=True)
class Audio:
    key: int
    chunk: Chunk


@dataclass(frozen=True)
class Finished:
    key: int
    num_samples: int
    compute_s: float


@dataclass(frozen=True)
class Failed:
    key: int
    error: WireError


Event: TypeAlias = Audio | Finished | Failed


@dataclass(frozen=True)
class Manner:
    """How an utterance is spoken."""

    voice: str
    seed: int = 0
    speed: float = 1.0


class Engine:
    def __init__(self, speakers: Mapping[str, Speaker], max_waiting: int) -> None:
        """`speakers` by voice id, all of one sample rate."""
        rates = {speaker.sample_rate_hz for speaker in speakers.values()}
        if len(rates) != 1:
            raise Unavailable(f"voices of different sample rates, {sorted(rates)} Hz, in one service")
        [self.sample_rate_hz] = rates
        self.voices = tuple(speakers)
        self._speakers = speakers
        self._schedule = Schedule(max_waiting, self.sample_rate_hz)
        self._changed = threading.Condition()
        self._lines: dict[int, Line] = {}
        self._manners: dict[int, Manner] = {}
        self._under_way: dict[int, Iterator[Chunk]] = {}  # the thread's own
        self._numbers = itertools.count(1)
        self._closing = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="voice", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Returns when the step under way, if any, has ended."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    @property
    def num_waiting(self) -> int:
        with self._changed:
            return self._schedule.num_waiting

    def line(self) -> Line:
        """A new connection, of the running event loop. Raises: Unavailable."""
        with self._changed:
            if self._stopped:
                raise Unavailable("the voice has stopped")
            line = Line(self, next(self._numbers))
            self._lines[line.number] = line
        return line

    def _run(self) -> None:
        try:
            while (work := self._next_work()) is not None:
                self._carry_out(*work)
        finally:
            with self._changed:
                self._stopped = True
                for utterance in self._schedule.take_all():
                    self._finish(utterance, Failed(utterance.key, Unavailable("the voice has stopped")))

    def _next_work(self) -> tuple[Step, Iterator[Chunk]] | None:
        """Waits for a step; None when the engine closes."""
        with self._changed:
            while not self._closing:
                now = time.monotonic()
                for utterance in self._schedule.take_late(now):
                    self._give_up(utterance, now)
                while done := self._schedule.take_done():
                    for utterance in done:
                        self._finish(utterance, Finished(utterance.key, utterance.num_samples, utterance.compute_s))
                step = self._schedule.next_step(now)
                metrics.WAITING.set(self._schedule.num_waiting)
                if step is not None:
                    return step, self._sound(step)
                self._changed.wait(self._schedule.wait_s(now))
        return None

    def _carry_out(self, step: Step, sound: Iterator[Chunk]) -> None:
        utterance, began_s = step.utterance, time.monotonic()
        try:
            chunk = next(sound, None)
        except Exception:  # one engine step: logged once, ends its utterance
            logger.exception("utterance %d failed", utterance.key)
            with self._changed:
                if self._schedule.remove(utterance.key) is not None:
                    self._finish(utterance, Failed(utterance.key, WireError("the voice failed")))
            return
        now = time.monotonic()
        with self._changed:
            size = chunk.pcm.size if chunk is not None else None
            if not self._schedule.record(step, now, now - began_s, size):
                if self._schedule.remove(utterance.key) is not None:
                    self._give_up(utterance, now)
            elif chunk is not None and size:
                self._post(utterance, Audio(utterance.key, chunk))

    def _sound(self, step: Step) -> Iterator[Chunk]:
        utterance = step.utterance
        if step.unit is not None:
            manner = self._manners[utterance.key]
            self._under_way[utterance.key] = self._speakers[manner.voice].speak(
                step.unit,
                index=step.index,
                first_sample=utterance.num_samples,
                seed=manner.seed,
                speed=manner.speed,
            )
        return self._under_way[utterance.key]

    def _give_up(self, utterance: Utterance, now: float) -> None:
        waited_s = now - utterance.arrived_s
        error = DeadlineExceeded(f"no audio in time, {waited_s:.3f} s after the first text")
        self._finish(utterance, Failed(utterance.key, error))

    def _finish(self, utterance: Utterance, event: Finished | Failed) -> None:
        self._post(utterance, event)
        if isinstance(event, Failed):
            self._forget(utterance.key, event.error.code)
            return
        self._forget(utterance.key, "done")
        if event.num_samples:
            metrics.RTF.observe(event.compute_s * self.sample_rate_hz / event.num_samples)

    def _forget(self, key: int, outcome: str) -> None:
        del self._manners[key]
        self._under_way.pop(key, None)
        metrics.UTTERANCES.labels(outcome).inc()

    def _post(self, utterance: Utterance, event: Event) -> None:
        if (line := self._lines.get(utterance.connection)) is not None:
            line.loop.call_soon_threadsafe(line.events.put_nowait, event)

    # What lines ask for, on their event loops.

    def _open(self, line: Line, manner: Manner, deadline_s: float | None) -> int:
        with self._changed:
            if self._stopped:
                raise Unavailable("the voice has stopped")
            key = next(self._numbers)
            self._schedule.open(key, line.number, time.monotonic(), deadline_s)
            self._manners[key] = manner
            self._changed.notify()
        return key

    def _change(self, change: Callable[[Schedule], object]) -> None:
        with self._changed:
            change(self._schedule)
            self._changed.notify()

    def _add(self, key: int, unit: Unit) -> None:
        with self._changed:
            try:
                self._schedule.add(key, unit)
            except Overloaded as error:
                self._forget(key, error.code)
                raise
            self._changed.notify()

    def _cancel(self, key: int) -> None:
        with self._changed:
            if self._schedule.remove(key) is not None:
                self._forget(key, "cancelled")
            self._changed.notify()

    def _close_line(self, line: Line) -> None:
        with self._changed:
            del self._lines[line.number]
            for utterance in self._schedule.disconnect(line.number):
                self._forget(utterance.key, "abandoned")
            self._changed.notify()


class Line:
    """One connection's utterances, used on its event loop. Results come in `events`, in order."""

    def __init__(self, engine: Engine, number: int) -> None:
        self.number = number
        self.loop = asyncio.get_running_loop()
        # Audio is bounded by the schedule; an utterance has one last event, and no more than `MAX_OPEN_UTTERANCES` are
        # open, but some that were cancelled meanwhile may have had theirs.
        self.events: asyncio.Queue[Event] = asyncio.Queue(MAX_UNSENT_CHUNKS + 4 * MAX_OPEN_UTTERANCES)
        self._engine = engine

    def open(self, manner: Manner, deadline_s: float | None) -> int:
        """A new utterance's key. Raises: Unavailable."""
        return self._engine._open(self, manner, deadline_s)

    def set_deadline(self, key: int, deadline_s: float) -> None:
        self._engine._change(lambda schedule: schedule.set_deadline(key, deadline_s))

    def add(self, key: int, unit: Unit) -> None:
        """Raises: Overloaded; then the utterance is over."""
        self._engine._add(key, unit)

    def end(self, key: int) -> None:
        self._engine._change(lambda schedule: schedule.end(key))

    def cancel(self, key: int) -> None:
        """Takes effect before the next step. What was posted before may still be in `events`."""
        self._engine._cancel(key)

    def sent(self) -> None:
        """An `Audio` event was dealt with."""
        self._engine._change(lambda schedule: schedule.sent(self.number))

    def close(self) -> None:
        """Abandons everything."""
        self._engine._close_line(self)
