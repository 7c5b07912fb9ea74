"""One connection of `WS /v1/listen`: messages in, requests to the pool, answers out. Rules: `wire.listen`.

Every speculate and finalize is answered by exactly one message with its id, a result or an `error`. A finalize whose
audio was speculated up to the same sample takes that result, also while it is still being computed. A request for audio
that was finalized or discarded meanwhile is answered with `discarded`. A finalize refused on arrival keeps the audio.
"""

from __future__ import annotations

import asyncio
import logging
import time

from stt import metrics
from stt.recognition import Model, Recognition
from stt.schedule import Priority
from stt.stream import Span, Stream
from stt.whisper import Transcript
from wire import listen
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable, WireError
from wire.messages import PROTOCOL_VERSION
from wire.pcm import from_bytes
from wire.sockets import Disconnected, Socket

logger = logging.getLogger(__name__)

MAX_PENDING = 16  # unanswered requests of a connection; a turn has one or two
RETRY_AFTER_S = 0.5  # after MAX_PENDING: about the time of that many engine steps

ListenSocket = Socket[listen.ClientMessage]


class Connection:
    def __init__(
        self, socket: ListenSocket, model: Model, hello: listen.Hello, *, partial_interval_s: float, deadline_s: float
    ) -> None:
        self._socket = socket
        self._model = model
        self._hello = hello
        self._deadline_s = deadline_s
        self._stream: Stream[Recognition] = Stream(partial_interval_s)
        self._speculating: dict[int, Recognition] = {}  # unanswered, by the number of the request
        self._finalizing: dict[int, Recognition] = {}
        self._num_requests = 0
        self._partial: Recognition | None = None

    async def run(self) -> None:
        """Until the peer is gone or broke the protocol."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._converse(group)
        except* Disconnected as gone:
            logger.debug("x listen: %s", gone.exceptions[0])
        finally:
            for recognition in (*self._speculating.values(), *self._finalizing.values()):
                recognition.drop()
            self._drop_partial()

    async def _converse(self, group: asyncio.TaskGroup) -> None:
        """Raises: Disconnected, which ends the tasks of `group` too."""
        await self._socket.send(listen.Ready(PROTOCOL_VERSION, self._model.id))
        try:
            while True:
                await self._receive(await self._socket.receive(), group)
        except PeerError as error:
            await self._socket.fail(error)
            raise Disconnected(error.code) from None

    async def _receive(self, message: listen.ClientMessage | bytes, group: asyncio.TaskGroup) -> None:
        match message:
            case bytes():
                self._stream.push(from_bytes(message, listen.SAMPLE_RATE_HZ))
                self._offer_partial(group)
            case listen.Speculate() | listen.Finalize():
                try:
                    self._request(message, group)
                except WireError as error:
                    await self._socket.send(listen.Error(error.code, str(error), message.id))
            case listen.Discard():
                self._stream.drop(message.end_sample)
                self._forget(keep=None)
            case listen.Hello():
                raise PeerError("hello was said already", code="bad_message")

    def _request(self, message: listen.Speculate | listen.Finalize, group: asyncio.TaskGroup) -> None:
        """Raises: WireError when `message` cannot be served; nothing has changed then."""
        if len(self._speculating) + len(self._finalizing) >= MAX_PENDING:
            raise Overloaded(f"{MAX_PENDING} requests are unanswered", retry_after_s=RETRY_AFTER_S)
        left_s = self._deadline_s if message.deadline_ms is None else message.deadline_ms / 1000
        deadline_s = time.monotonic() + left_s
        span = self._stream.span(message.end_sample)
        self._num_requests += 1
        if isinstance(message, listen.Finalize):
            recognition, reused = self._recognise(span, Priority.FINAL, deadline_s)
            metrics.REUSED.inc(reused)
            self._finalizing[self._num_requests] = recognition
            self._stream.drop(span.end_sample)
            self._forget(keep=recognition)
            answer = self._finalize(message.id, self._num_requests, span, deadline_s, reused=reused)
        else:
            recognition, reused = self._recognise(span, Priority.SPECULATE, deadline_s)
            self._speculating[self._num_requests] = recognition
            self._stream.remember(span.end_sample, recognition)
            answer = self._speculate(message.id, self._num_requests, span, deadline_s, reused=reused)
        group.create_task(answer)

    def _recognise(self, span: Span, priority: Priority, deadline_s: float) -> tuple[Recognition, bool]:
        """The recognition of `span`, and whether it had been asked for before.

        Raises: Overloaded, DeadlineExceeded, Unavailable.
        """
        known = self._stream.speculated(span.end_sample)
        if known is not None and not known.failed:
            known.share(priority, deadline_s)
            return known, True
        return self._submit(span, priority, deadline_s, with_words=self._hello.words), False

    def _submit(self, span: Span, priority: Priority, deadline_s: float, *, with_words: bool) -> Recognition:
        language = self._hello.language
        return self._model.submit(span.pcm, language, priority, deadline_s, with_words=with_words)

    async def _speculate(self, name: int, request: int, span: Span, deadline_s: float, *, reused: bool) -> None:
        recognition = self._speculating[request]
        try:
            transcript = await recognition.result(deadline_s)
        except WireError as error:
            await self._socket.send(listen.Error(error.code, str(error), name))
            return
        finally:
            del self._speculating[request]
        compute_ms = 0.0 if reused else _ms(recognition.compute_s)
        revision = self._stream.next_revision()
        await self._socket.send(listen.Speculation(name, revision, transcript.text, span.end_sample, compute_ms))

    async def _finalize(self, name: int, request: int, span: Span, deadline_s: float, *, reused: bool) -> None:
        recognition = self._finalizing[request]
        try:
            transcript = await recognition.result(deadline_s)
        except WireError as error:
            await self._socket.send(listen.Error(error.code, str(error), name))
            return
        finally:
            del self._finalizing[request]
        final = listen.Final(
            name,
            self._stream.next_revision(),
            transcript.text,
            span.start_sample,
            span.end_sample,
            0.0 if reused else _ms(recognition.compute_s),
            _words(transcript, span.start_sample) if self._hello.words else None,
        )
        await self._socket.send(final)

    def _forget(self, keep: Recognition | None) -> None:
        """The audio is gone: nobody needs what was asked about it, but `keep` and what is being finalized."""
        needed = (keep, *self._finalizing.values())
        for recognition in self._speculating.values():
            if recognition not in needed:
                recognition.fail(PeerError("its audio was finalized or discarded", code="discarded"))
        self._drop_partial()

    def _offer_partial(self, group: asyncio.TaskGroup) -> None:
        """The newest audio replaces a partial that still waits; one that runs is let run."""
        if not self._hello.partials or self._finalizing or not self._stream.partial_due:
            return
        if self._partial is not None:
            if self._partial.started:
                return
            self._drop_partial()
        span = self._stream.take_partial()
        deadline_s = time.monotonic() + self._deadline_s
        try:
            self._partial = self._submit(span, Priority.PARTIAL, deadline_s, with_words=False)
        except (Overloaded, Unavailable) as error:
            logger.debug("no partial: %s", error)  # partials come "now and then"
            return
        group.create_task(self._send_partial(self._partial, span, deadline_s))

    async def _send_partial(self, recognition: Recognition, span: Span, deadline_s: float) -> None:
        """Ends as cancelled when the partial is dropped."""
        try:
            text = (await recognition.result(deadline_s)).text
        except (DeadlineExceeded, Overloaded, Unavailable) as error:
            logger.debug("no partial: %s", error)
            return
        finally:
            if self._partial is recognition:
                self._partial = None
        if text:
            await self._socket.send(listen.Partial(self._stream.next_revision(), text, span.end_sample))

    def _drop_partial(self) -> None:
        if self._partial is not None:
            self._partial.drop()
            self._partial = None


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _words(transcript: Transcript, first_sample: int) -> tuple[listen.Word, ...] | None:
    if transcript.words is None:
        return None
    return tuple(
        listen.Word(word.text, word.start_sample + first_sample, word.end_sample + first_sample)
        for word in transcript.words
    )
