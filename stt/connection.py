"""One connection of `WS /v1/listen`: messages in, requests to the pool, answers out. Rules: `wire.listen`.

Every speculate and finalize is answered by exactly one message with its id, a result or an `error`. A finalize whose
audio was speculated up to the same sample takes that result, also while it is still being computed. A request for audio
that was finalized or discarded meanwhile is answered with `discarded`. A finalize refused on arrival keeps the audio.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class _Request:
    """A speculate or finalize on its way. `reused`: the recognition had been asked for before."""

    message: listen.Speculate | listen.Finalize
    span: Span
    recognition: Recognition
    reused: bool
    deadline_s: float

    @property
    def is_final(self) -> bool:
        return isinstance(self.message, listen.Finalize)


class Connection:
    def __init__(
        self, socket: ListenSocket, model: Model, hello: listen.Hello, *, partial_interval_s: float, deadline_s: float
    ) -> None:
        self._socket = socket
        self._model = model
        self._hello = hello
        self._deadline_s = deadline_s
        self._stream: Stream[Recognition] = Stream(partial_interval_s)
        self._unanswered: set[_Request] = set()
        self._partial: Recognition | None = None

    async def run(self) -> None:
        """Until the peer is gone or broke the protocol."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._converse(group)
        except* Disconnected as gone:
            logger.debug("x listen: %s", gone.exceptions[0])
        finally:
            for request in self._unanswered:
                request.recognition.drop()
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
                self._drop(message.end_sample)
            case listen.Hello():
                raise PeerError("hello was said already", code="bad_message")

    def _request(self, message: listen.Speculate | listen.Finalize, group: asyncio.TaskGroup) -> None:
        """Raises: WireError when `message` cannot be served; nothing has changed then."""
        if len(self._unanswered) >= MAX_PENDING:
            raise Overloaded(f"{MAX_PENDING} requests are unanswered", retry_after_s=RETRY_AFTER_S)
        left_s = self._deadline_s if message.deadline_ms is None else message.deadline_ms / 1000
        deadline_s = time.monotonic() + left_s
        span = self._stream.span(message.end_sample)
        priority = Priority.FINAL if isinstance(message, listen.Finalize) else Priority.SPECULATE
        recognition, reused = self._recognise(span, priority, deadline_s)
        request = _Request(message, span, recognition, reused, deadline_s)
        self._unanswered.add(request)
        if request.is_final:
            metrics.REUSED.inc(reused)
            self._drop(span.end_sample)
        else:
            self._stream.remember(span.end_sample, recognition)
        group.create_task(self._answer(request))

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

    async def _answer(self, request: _Request) -> None:
        try:
            transcript = await request.recognition.result(request.deadline_s)
        except WireError as error:
            await self._socket.send(listen.Error(error.code, str(error), request.message.id))
            return
        finally:
            self._unanswered.remove(request)
        await self._socket.send(self._result(request, transcript))

    def _result(self, request: _Request, transcript: Transcript) -> listen.Final | listen.Speculation:
        number, span, revision = request.message.id, request.span, self._stream.next_revision()
        compute_ms = 0.0 if request.reused else _ms(request.recognition.compute_s)
        if not request.is_final:
            return listen.Speculation(number, revision, transcript.text, span.end_sample, compute_ms)
        words = _words(transcript, span.start_sample) if self._hello.words else None
        return listen.Final(number, revision, transcript.text, span.start_sample, span.end_sample, compute_ms, words)

    def _drop(self, end_sample: int | None) -> None:
        """Forget audio, and fail what was asked about it, but for what is being finalized. Raises: PeerError."""
        if not self._stream.drop(end_sample):
            return
        needed = {request.recognition for request in self._unanswered if request.is_final}
        for request in self._unanswered:
            if request.recognition not in needed:
                request.recognition.fail(PeerError("its audio was finalized or discarded", code="discarded"))
        self._drop_partial()

    def _offer_partial(self, group: asyncio.TaskGroup) -> None:
        """The newest audio replaces a partial that still waits; one that runs is let run."""
        if not self._hello.partials or not self._stream.partial_due:
            return
        if any(request.is_final for request in self._unanswered):
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
