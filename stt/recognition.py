"""Recognising audio of any length with one model: pieces to the pool, transcripts joined.

A `Recognition` may have several waiters, each with its own deadline (a speculation that is then finalized); it is
dropped when the last one has left. They are counted when they announce themselves, not when their task first runs:
in between another's deadline may pass.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stt import metrics
from stt.config import EVERY_OTHER, ModelConfig
from stt.pool import Pool, Ticket
from stt.schedule import Priority
from stt.segments import cuts
from stt.whisper import Transcript, Whisper
from stt.words import UNSPACED, Word
from wire.errors import DeadlineExceeded, PeerError, WireError
from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16


@dataclass(frozen=True)
class Job:
    """At most `segments.MAX_PIECE_S`, int16, 16 kHz; the language is detected when None."""

    pcm: Pcm16
    language: str | None
    with_words: bool


class Model:
    """One model with its instances."""

    def __init__(self, config: ModelConfig, instances: Sequence[Whisper], max_queued: int) -> None:
        self.id = config.id
        self.languages = config.languages
        self.can_align = instances[0].can_align
        self._instances = tuple(instances)
        self.pool: Pool[Job, Transcript] = Pool(config.id, [_step(each) for each in self._instances], max_queued)

    def knows(self, language: str) -> bool:
        return self._instances[0].knows(language)

    def submit(
        self, pcm: Pcm16, language: str | None, priority: Priority, deadline_s: float, *, with_words: bool = False
    ) -> Recognition:
        """Raises: Overloaded, DeadlineExceeded, Unavailable."""
        tickets: list[Ticket[Job, Transcript]] = []
        start = 0
        try:
            for end in cuts(pcm):
                job = Job(pcm[start:end], language, with_words)
                tickets.append(self.pool.submit(job, priority, deadline_s))
                metrics.AUDIO.labels(self.id, priority.name.lower()).observe((end - start) / SAMPLE_RATE_HZ)
                start = end
        except WireError:
            for ticket in tickets:
                self.pool.drop(ticket)
            raise
        return Recognition(self.pool, tickets, language or "en")


class Recognition:
    """Made by `Model.submit` for one waiter; each waiter calls `result` once."""

    def __init__(self, pool: Pool[Job, Transcript], tickets: Sequence[Ticket[Job, Transcript]], language: str) -> None:
        self._pool = pool
        self._tickets = tuple(tickets)
        self._language = language
        self._num_waiters = 1

    @property
    def started(self) -> bool:
        return any(ticket.started for ticket in self._tickets)

    @property
    def done(self) -> bool:
        return all(ticket.outcome.done() for ticket in self._tickets)

    @property
    def failed(self) -> bool:
        """It will never have a result."""
        return any(
            ticket.outcome.done() and (ticket.outcome.cancelled() or ticket.outcome.exception() is not None)
            for ticket in self._tickets
        )

    @property
    def compute_s(self) -> float:
        return sum(ticket.compute_s for ticket in self._tickets)

    def share(self, priority: Priority, deadline_s: float) -> None:
        """Announce one more waiter."""
        self._num_waiters += 1
        for ticket in self._tickets:
            self._pool.promote(ticket, priority, deadline_s)

    def drop(self) -> None:
        """Its waiters, if any, are cancelled."""
        for ticket in self._tickets:
            self._pool.drop(ticket)

    def fail(self, error: WireError) -> None:
        """Its waiters get `error`."""
        for ticket in self._tickets:
            ticket.fail(error)
        self.drop()

    async def result(self, deadline_s: float) -> Transcript:
        """Times of words count from the start of the audio.

        Raises: DeadlineExceeded, Overloaded, Unavailable, or what `fail` was called with.
        """
        assert self._num_waiters > 0
        try:
            async with asyncio.timeout(max(0.0, deadline_s - time.monotonic())):
                pieces = [await asyncio.shield(ticket.outcome) for ticket in self._tickets]
        except (TimeoutError, DeadlineExceeded):
            if self._tickets:
                metrics.EXPIRED.labels(self._pool.name, self._tickets[0].priority.name.lower()).inc()
            raise DeadlineExceeded("no transcript within the deadline") from None
        finally:
            self._num_waiters -= 1
            if not self._num_waiters and not self.done:
                self.drop()
        starts = itertools.accumulate((ticket.job.pcm.size for ticket in self._tickets), initial=0)
        return join([(start, piece) for start, piece in zip(starts, pieces, strict=False)], self._language)


def join(pieces: Sequence[tuple[int, Transcript]], language: str) -> Transcript:
    """One transcript of pieces with their first samples; `language` is that of no pieces."""
    if not pieces:
        return Transcript("", language, ())
    spoken = [piece for _, piece in pieces if piece.text] or [pieces[0][1]]
    language = spoken[0].language  # of silence nothing is detected
    text = ("" if language in UNSPACED else " ").join(piece.text for piece in spoken)
    timed: list[Word] | None = []
    for start, piece in pieces:
        if piece.words is None or timed is None:
            timed = None
        else:
            timed += [Word(word.text, word.start_sample + start, word.end_sample + start) for word in piece.words]
    return Transcript(
        text,
        language,
        None if timed is None else tuple(timed),
        mean_logprob=min(piece.mean_logprob for piece in spoken),
        no_speech_prob=max(piece.no_speech_prob for piece in spoken),
    )


def _step(whisper: Whisper) -> Callable[[Job], Transcript]:
    return lambda job: whisper.transcribe(job.pcm, job.language, with_words=job.with_words)


class Models:
    """The models of a service, by language and by id."""

    def __init__(self, models: Sequence[Model]) -> None:
        assert models
        self.all = tuple(models)

    def for_language(self, language: str) -> Model:
        """Raises: PeerError when nobody recognises it."""
        knowing = [model for model in self.all if model.knows(language)]
        named = next((model for model in knowing if language in model.languages), None)
        rest = next((model for model in knowing if EVERY_OTHER in model.languages), None)
        if (model := named or rest) is None:
            known = ", ".join(sorted({language for model in self.all for language in model.languages} - {EVERY_OTHER}))
            raise PeerError(f"no model for language {language!r:.20}; known: {known}", code="unknown_language")
        return model

    def named(self, model_id: str) -> Model:
        """Raises: PeerError."""
        for model in self.all:
            if model.id == model_id:
                return model
        known = ", ".join(model.id for model in self.all)
        raise PeerError(f"unknown model {model_id!r:.60}; known: {known}", code="model_not_found", http_status=404)
