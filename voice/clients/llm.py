"""The call server's line to the LLM tier: OpenAI's chat completions, streamed, and one token of a completion."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import aiohttp

from voice import sentence_end
from voice.history import Message
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable
from wire.request import RequestContext
from wire.sse import DONE, Decoder

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 2.0
KEEP_ALIVE_S = 4.0  # shorter than uvicorn's 5 s: a connection the server is about to close must not carry a turn
ASK_AGAIN_S = 60.0  # a server that refuses a question of ours may be another soon
READ_SIZE_BYTES = 1 << 16


class LlmClient:
    """One for all calls: it owns the connection pool. Closing an iterator early aborts the request upstream."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None,
        temperature: float,
        max_tokens: int,
        prefill_tokens: int,
        repetition_penalty: float = 1.0,
    ) -> None:
        self._url = f"{url}/v1/chat/completions"
        self._completions_url = f"{url}/v1/completions"
        self._asks_again_s = -math.inf  # when it may be asked what is likely
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._sampling = {"temperature": temperature, "max_tokens": max_tokens}
        if repetition_penalty != 1:  # vLLM and the embedded engine have it, OpenAI's API does not
            self._sampling["repetition_penalty"] = repetition_penalty
        self._prefill_tokens = prefill_tokens
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
        connector = aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, headers=self._headers)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def answer(self, messages: list[Message], context: RequestContext) -> AsyncGenerator[str, None]:
        """Text deltas as they are generated.

        Raises: WireError; DeadlineExceeded when the first token is not there by the context's deadline.
        """
        body = {"model": self._model, "messages": messages, "stream": True, **self._sampling}
        async with aclosing(self._stream(body, context)) as events:
            async for event in events:
                if text := _delta(event):
                    yield text

    async def prefill(self, messages: list[Message], context: RequestContext) -> None:
        """Have the worker compute and keep the prompt's KV. Raises: WireError."""
        body = {"model": self._model, "messages": messages, "stream": True, "max_tokens": self._prefill_tokens}
        async with aclosing(self._stream(body, context)) as events:
            async for _ in events:
                pass

    async def stop_logprob(self, words: str, context: RequestContext) -> float | None:
        """log P of a full stop after `words`. None where this LLM does not tell what is likely.

        Raises: WireError.
        """
        prompt = sentence_end.prompt(words)
        if prompt is None or time.monotonic() < self._asks_again_s:
            return None
        body = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0.0,
            "logprobs": sentence_end.NUM_TOKENS,
        }
        try:
            return sentence_end.log_probability(_likely(await self._post(self._completions_url, body, context)))
        except PeerError as error:
            self._asks_again_s = time.monotonic() + ASK_AGAIN_S
            logger.warning("the LLM is not asked for the ends of sentences for a while: %s", error)
            return None

    async def _post(self, url: str, body: dict[str, Any], context: RequestContext) -> bytes:
        """Raises: WireError."""
        assert self._session is not None, "open() first"
        now = time.monotonic()
        left_s = context.left_s(now)
        until = None if context.deadline_s is None else asyncio.get_running_loop().time() + left_s
        try:
            async with asyncio.timeout_at(until):
                async with self._session.post(url, json=body, headers=context.headers(now)) as response:
                    if response.status != 200:
                        raise await _refusal(response)
                    answer = bytearray()
                    async for chunk in response.content.iter_any():
                        answer += chunk
                        if len(answer) > READ_SIZE_BYTES:
                            raise PeerError(f"the LLM sent more than {READ_SIZE_BYTES} bytes")
                    return bytes(answer)
        except TimeoutError:
            raise DeadlineExceeded(f"no answer within {left_s:.1f} s") from None
        except aiohttp.ClientError as error:
            raise Unavailable(f"{url}: {error}") from None

    async def _stream(self, body: dict[str, Any], context: RequestContext) -> AsyncGenerator[dict[str, Any], None]:
        assert self._session is not None, "open() first"
        now = time.monotonic()
        deadline_s = context.left_s(now)
        until = None if context.deadline_s is None else asyncio.get_running_loop().time() + deadline_s
        try:
            async with asyncio.timeout_at(until) as timeout:
                async with self._session.post(self._url, json=body, headers=context.headers(now)) as response:
                    if response.status != 200:
                        raise await _refusal(response)
                    decoder = Decoder()
                    async for chunk in response.content.iter_any():
                        for data in decoder.feed(chunk):
                            if data == DONE:
                                return
                            timeout.reschedule(None)  # the deadline is for the first token
                            yield _event(data)
            raise Unavailable("the LLM's stream broke off")
        except TimeoutError:
            raise DeadlineExceeded(f"no token within {deadline_s:.1f} s") from None
        except aiohttp.ClientError as error:
            raise Unavailable(f"{self._url}: {error}") from None


def _event(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError:
        raise PeerError(f"the LLM sent an event that is not JSON: {data!r:.80}") from None
    if not isinstance(event, dict):
        raise PeerError(f"the LLM sent {data!r:.80}")
    if "error" in event:
        raise Unavailable(f"the LLM failed: {event['error']!r:.200}")
    return event


def _likely(answer: bytes) -> dict[str, float]:
    """What may come first, and log P of each. Raises: PeerError."""
    try:
        found = json.loads(answer)
    except ValueError:
        raise PeerError(f"the LLM sent an answer that is not JSON: {answer!r:.80}") from None
    match found:
        case {"choices": [{"logprobs": {"top_logprobs": [dict(top), *_]}}, *_]}:
            return {
                token: value for token, value in top.items() if isinstance(value, float | int) and -1e6 < value <= 0
            }
    raise PeerError(f"the LLM does not tell what is likely: {answer!r:.200}")


def _delta(event: dict[str, Any]) -> str:
    """The text of a chunk; usage and role chunks have none."""
    match event:
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return text
    return ""


async def _refusal(response: aiohttp.ClientResponse) -> Exception:
    body = (await response.content.read(READ_SIZE_BYTES)).decode(errors="replace")
    message = f"the LLM answered {response.status}: {body:.200}"
    if response.status == Overloaded.http_status:
        after = response.headers.get("retry-after", "1")
        return Overloaded(message, retry_after_s=float(after) if after.isdecimal() else 1.0)
    if response.status == DeadlineExceeded.http_status:
        return DeadlineExceeded(message)
    return PeerError(message) if response.status < 500 else Unavailable(message)
