"""The call's line to recognition: one connection, utterance after utterance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from voice.clients.socket import Link
from wire import listen
from wire.errors import DeadlineExceeded, Overloaded, Unavailable, WireError
from wire.messages import PROTOCOL_VERSION
from wire.pcm import MAX_AUDIO_MESSAGE_S, Pcm16, to_bytes

RETRY_AFTER_S = 1.0
REFUSAL_S = 0.1  # beyond a deadline, for the service to say itself that it was missed: one that says nothing hangs
_MESSAGE_SAMPLES = int(listen.SAMPLE_RATE_HZ * MAX_AUDIO_MESSAGE_S)


class SttClient:
    """Samples are counted as sent on the present connection; a lost connection starts at 0 and loses its utterance."""

    def __init__(
        self, url: str, *, key: str | None, call: str, language: str, on_partial: Callable[[int, str], None]
    ) -> None:
        hello = listen.Hello(version=PROTOCOL_VERSION, language=language, call=call)
        self.link: Link[listen.ServerMessage] = Link(
            f"{url}/v1/listen",
            hello,
            listen.SERVER_MESSAGES,
            key=key,
            on_message=self._on_message,
            on_lost=self._on_lost,
        )
        self._on_partial = on_partial
        self._num_sent = 0
        self.num_connections = 0
        self._num_requests = 0
        self._waiting: dict[int, asyncio.Future[str]] = {}

    async def feed(self, pcm: Pcm16) -> None:
        """int16, 16 kHz. Raises: Unavailable."""
        for start in range(0, pcm.size, _MESSAGE_SAMPLES):
            part = pcm[start : start + _MESSAGE_SAMPLES]
            await self.link.send(to_bytes(part))
            self._num_sent += part.size

    @property
    def position(self) -> int:
        """Samples sent so far: the `end_sample` of what is asked now."""
        return self._num_sent

    async def speculate(self, end_sample: int, deadline_s: float) -> str:
        """Text up to `end_sample`, which may then be finalized at no cost. Raises: WireError."""
        return await self._ask(listen.Speculate, end_sample, deadline_s)

    async def finalize(self, end_sample: int, deadline_s: float) -> str:
        """Text up to `end_sample`; that audio is done with. Raises: WireError."""
        return await self._ask(listen.Finalize, end_sample, deadline_s)

    async def discard(self, end_sample: int) -> None:
        """Forget the audio up to `end_sample`. Raises: Unavailable."""
        await self.link.send(listen.Discard(min(end_sample, self._num_sent)))

    async def _ask(self, kind: type[listen.Speculate] | type[listen.Finalize], end: int, deadline_s: float) -> str:
        self._num_requests += 1
        request = self._num_requests
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[request] = answer
        try:
            async with asyncio.timeout(deadline_s + REFUSAL_S):
                await self.link.send(kind(request, end, round(1000 * deadline_s)))
                return await answer
        except TimeoutError:
            self.link.drop()
            raise DeadlineExceeded(f"no transcript within {deadline_s:.1f} s") from None
        finally:
            del self._waiting[request]

    async def _on_message(self, message: listen.ServerMessage | bytes) -> None:
        match message:
            case listen.Ready():
                self._num_sent = 0
                self.num_connections += 1
                self.link.ready()
            case listen.Partial():
                self._on_partial(message.revision, message.text)
            case listen.Speculation() | listen.Final():
                self._settle(message.id, message.text)
            case listen.Error(id=None):
                self.link.refuse(message.code, message.message)
            case listen.Error():
                self._settle(message.id, _error(message))

    def _settle(self, request: int | None, result: str | WireError) -> None:
        """A request nobody waits for any more is a cancelled one."""
        answer = self._waiting.get(request) if request is not None else None
        if answer is None or answer.done():
            return
        if isinstance(result, str):
            answer.set_result(result)
        else:
            answer.set_exception(result)

    def _on_lost(self) -> None:
        self._num_sent = 0
        for request in self._waiting:
            self._settle(request, Unavailable("recognition was lost"))


def _error(message: listen.Error) -> WireError:
    match message.code:
        case Overloaded.code:
            return Overloaded(message.message, retry_after_s=RETRY_AFTER_S)
        case DeadlineExceeded.code:
            return DeadlineExceeded(message.message)
        case _:
            return Unavailable(message.message)
