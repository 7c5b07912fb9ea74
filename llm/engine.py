"""One thread owns the model: requests come in by one queue, events go out to the event loop.

    submit -> inbox -> [ aborts, deadlines -> scheduler -> runner -> sampler ] one step at a time -> events

Everything below `_run` is the thread's; the event loop calls `submit` and `Stream` only. An abort or a deadline takes
effect before the next step. The inbox holds at most `max_running + max_waiting` requests and an abort for each:
`submit` refuses above that.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from llm import metrics
from llm.blocks import BLOCK_TOKENS, BlockPool, root_hash
from llm.config import WorkerConfig
from llm.loading import Loaded
from llm.runner import Runner
from llm.sampling import Sampler
from llm.scheduler import Chunk, Scheduler
from llm.sequence import Event, Failed, Finished, FinishReason, Generation, Likely, Sequence, Text
from llm.stops import TextStream
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable, WireError

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 1.0  # an answer of 40 tokens at 25 ms each frees its place after a second
LEAST_LOGPROB = -1e4  # told instead of minus infinity, which is no JSON


@dataclass(frozen=True)
class _Abort:
    sequence: Sequence


_Order: TypeAlias = Sequence | _Abort | None  # None: end the thread


class Stream:
    """The events of one request; iteration ends after Finished or raises what Failed carries.

    Leaving early without `abort` would let the engine work on for nobody.
    """

    def __init__(self, engine: Engine, generation: Generation) -> None:
        self._engine = engine
        # An event a token and one more when it is aborted: the queue never fills, whoever reads it.
        self._events: asyncio.Queue[Event] = asyncio.Queue(generation.max_tokens + 1)
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._sequence = engine.sequence(generation, self._emit)

    async def __aiter__(self) -> AsyncIterator[Text | Finished]:
        """Raises: WireError."""
        while True:
            event = await self._events.get()
            if isinstance(event, Failed):
                raise event.error
            yield event
            if isinstance(event, Finished):
                return

    def abort(self) -> None:
        """Stop within one step; what was computed stays findable. Does nothing after the end."""
        if not self._ended:
            self._engine.abort(self._sequence)

    def _emit(self, event: Event) -> None:
        """Called by the engine's thread."""
        self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: Event) -> None:
        if isinstance(event, Finished | Failed):
            self._ended = True
            self._engine.num_inside -= 1
        self._events.put_nowait(event)


class Engine:
    def __init__(self, config: WorkerConfig, loaded: Loaded) -> None:
        self.config = config
        self.num_inside = 0  # submitted and not ended; the event loop's
        self.context_tokens = min(config.context_tokens, loaded.model.shape.context_tokens)
        self._tokenizer = loaded.tokenizer
        self._root = root_hash(config.id)
        self._runner = Runner(loaded.model, config.kv_tokens // BLOCK_TOKENS)
        self._scheduler = Scheduler(
            BlockPool(config.kv_tokens // BLOCK_TOKENS),
            self._root,
            max_running=config.max_running,
            chunk_tokens=config.prefill_chunk_tokens,
            copy_block=self._runner.kv.copy_block,
        )
        self._inbox: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="llm-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Fails what runs and waits; returns when the thread has ended."""
        self._inbox.put(None)
        self._thread.join()

    def submit(self, generation: Generation) -> Stream:
        """Raises: PeerError for an empty prompt or one that cannot fit the context, Overloaded, DeadlineExceeded,
        Unavailable.
        """
        try:
            self._admit(generation)
        except WireError as error:
            metrics.FAILED.labels(self.config.id, error.code).inc()
            raise
        stream = Stream(self, generation)
        self.num_inside += 1
        self._inbox.put(stream._sequence)
        return stream

    def _admit(self, generation: Generation) -> None:
        """Raises: as `submit`."""
        if not generation.prompt:
            raise PeerError("prompt: must hold at least one token")
        wanted = len(generation.prompt) + generation.max_tokens
        if wanted > self.context_tokens:
            raise PeerError(
                f"prompt of {len(generation.prompt)} tokens and answer of {generation.max_tokens} exceed the context "
                f"of {self.context_tokens}",
                code="context_length_exceeded",
            )
        if generation.deadline_s is not None and generation.deadline_s <= time.monotonic():
            raise DeadlineExceeded("the deadline passed before the request arrived")
        limit = self.config.max_running + self.config.max_waiting
        if self.num_inside >= limit:
            raise Overloaded(f"{limit} requests are running or waiting", retry_after_s=RETRY_AFTER_S)
        if not self._thread.is_alive():
            raise Unavailable("the engine has ended")

    def abort(self, sequence: Sequence) -> None:
        self._inbox.put(_Abort(sequence))

    def sequence(self, generation: Generation, emit: Callable[[Event], None]) -> Sequence:
        return Sequence(
            generation=generation,
            emit=emit,
            arrived_s=time.monotonic(),
            parent=self._root,
            sampler=Sampler(generation.sampling, generation.prompt),
            output=TextStream(generation.stops),
            tokens=list(generation.prompt),
        )

    @torch.inference_mode()
    def _run(self) -> None:
        torch.set_num_threads(self.config.num_threads)
        scheduler = self._scheduler
        try:
            while self._receive():
                self._work()
        finally:
            for sequence in (*scheduler.running, *scheduler.waiting):
                self._fail(sequence, Unavailable("the worker is ending"))

    def _work(self) -> None:
        scheduler, chunks = self._scheduler, list[Chunk]()
        try:
            self._expire(time.monotonic())
            chunks = scheduler.next_batch()
            if chunks:
                self._step(chunks)
            self._observe()
        except Exception:  # one engine step
            logger.exception("x step of %d sequences", len(chunks))
            # Without a batch it was the scheduler that failed, and it would fail the same way in every further step.
            for sequence in [chunk.sequence for chunk in chunks] or [*scheduler.running, *scheduler.waiting]:
                if sequence in scheduler.running or sequence in scheduler.waiting:
                    self._fail(sequence, Unavailable("the engine failed on this request"))

    def _receive(self) -> bool:
        """Take what is in the inbox, waiting for it when there is nothing to do; False ends the thread."""
        scheduler = self._scheduler
        while True:
            busy = bool(scheduler.running or scheduler.waiting)
            if not busy:
                scheduler.audit()
                self._observe()
            try:
                order = self._inbox.get(block=not busy)
            except queue.Empty:
                return True
            match order:
                case None:
                    return False
                case _Abort(sequence):
                    if sequence in scheduler.running or sequence in scheduler.waiting:
                        self._finish(sequence, "", "abort")
                case Sequence():
                    scheduler.add(order)

    def _expire(self, now: float) -> None:
        for sequence in self._scheduler.expired(now):
            self._fail(sequence, DeadlineExceeded(f"no token after {now - sequence.arrived_s:.3f} s"))

    def _step(self, chunks: list[Chunk]) -> None:
        started_s = time.monotonic()
        logits = iter(self._runner.run(chunks))
        for chunk in chunks:
            samples = chunk.samples
            first_chunk = chunk.sequence.num_computed == chunk.sequence.num_cached
            self._scheduler.computed(chunk)
            if first_chunk and not chunk.sequence.num_generated:
                self._count_prompt(chunk.sequence)
            if samples:
                self._sample(chunk.sequence, next(logits))
            elif chunk.sequence.num_computed == len(chunk.sequence.tokens):
                self._finish(chunk.sequence, "", "length")  # prefill only
        kind = "prefill" if any(not chunk.sequence.num_generated or chunk.count > 1 for chunk in chunks) else "decode"
        metrics.STEP.labels(self.config.id, kind).observe(time.monotonic() - started_s)

    def _sample(self, sequence: Sequence, logits: torch.Tensor) -> None:
        wanted = sequence.generation.num_logprobs
        likely = None
        try:
            logprobs = None if wanted is None else logits.log_softmax(0)  # before the sampler changes them
            token = sequence.sampler.sample(logits)
            if logprobs is not None and wanted is not None:
                likely = _likely(logprobs, token, wanted)
        except Exception:  # one request: the others of the step go on
            logger.exception("x sampling")
            self._fail(sequence, Unavailable("sampling failed on this request"))
            return
        self._take(sequence, token, likely)

    def _take(self, sequence: Sequence, token: int, likely: Likely | None = None) -> None:
        """`token` is the sequence's next: pass its text on, or end."""
        sequence.tokens.append(token)
        self._count_token(sequence, time.monotonic())
        generation, output = sequence.generation, sequence.output
        if token in self._tokenizer.eos and not generation.ignore_eos:
            self._finish(sequence, output.finish(), "stop", likely)
            return
        text = output.push(self._tokenizer.bytes_of(token))
        if output.stopped:
            self._finish(sequence, text, "stop", likely)
        elif sequence.num_generated == generation.max_tokens:
            self._finish(sequence, text + output.finish(), "length", likely)
        else:
            sequence.emit(Text(text, likely))

    def _finish(self, sequence: Sequence, text: str, reason: FinishReason, likely: Likely | None = None) -> None:
        self._scheduler.end(sequence)
        metrics.SUCCESS.labels(self.config.id, reason).inc()
        metrics.TOTAL.labels(self.config.id).observe(time.monotonic() - sequence.arrived_s)
        sequence.emit(Finished(text, reason, sequence.usage, likely))

    def _fail(self, sequence: Sequence, error: WireError) -> None:
        self._scheduler.end(sequence)
        metrics.FAILED.labels(self.config.id, error.code).inc()
        sequence.emit(Failed(error))

    def _count_prompt(self, sequence: Sequence) -> None:
        model = self.config.id
        metrics.CACHE_QUERIES.labels(model).inc(len(sequence.generation.prompt))
        metrics.CACHE_HITS.labels(model).inc(sequence.num_cached)
        metrics.PROMPT_TOKENS.labels(model).inc(len(sequence.generation.prompt))

    def _count_token(self, sequence: Sequence, now: float) -> None:
        model = self.config.id
        metrics.GENERATION_TOKENS.labels(model).inc()
        if sequence.num_generated == 1:
            metrics.TTFT.labels(model).observe(now - sequence.arrived_s)
        else:
            metrics.TPOT.labels(model).observe(now - sequence.last_token_s)
        sequence.last_token_s = now

    def _observe(self) -> None:
        model, scheduler = self.config.id, self._scheduler
        metrics.RUNNING.labels(model).set(len(scheduler.running))
        metrics.WAITING.labels(model).set(len(scheduler.waiting))
        held = scheduler.pool.num_blocks - scheduler.pool.num_free
        metrics.KV_USAGE.labels(model).set(held / scheduler.pool.num_blocks)


def _likely(logprobs: torch.Tensor, token: int, count: int) -> Likely:
    logprobs = logprobs.clamp(min=LEAST_LOGPROB)
    values, ids = logprobs.topk(min(count, logprobs.numel()))
    return Likely(token, float(logprobs[token]), tuple(zip(ids.tolist(), values.tolist(), strict=True)))
