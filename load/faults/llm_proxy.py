"""Faults of the LLM tier: `POST /v1/chat/completions`, streamed or not.

A request of at most `PREFILL_TOKENS` is one that warms the KV: it says nothing, so it is handed on and not counted.
Texts are counted as events with content, which for our engines is a token each.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from load.faults.http_hop import hand_on, lose, passed_headers, unreachable
from load.faults.stages import MAX_S, LlmDeath, LlmRefusal, LlmStall, Plan
from wire import sse
from wire.errors import PeerError
from wire.messages import read_json_object

PREFILL_TOKENS = 1
_CODES = {429: "overloaded", 500: "internal", 503: "unavailable"}


class LlmProxy:
    def __init__(self, plan: Plan, target: str, http: aiohttp.ClientSession) -> None:
        self._plan = plan
        self._target = target
        self._http = http

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault = self._plan.take() if _says_something(body) else None
        match fault:
            case LlmRefusal():
                return _refusal(fault)
            case LlmStall() | LlmDeath():
                return await self._stream(request, body, fault)
        return await hand_on(request, self._http, self._target)

    async def _stream(self, request: web.Request, body: bytes, fault: LlmStall | LlmDeath) -> web.StreamResponse:
        headers = {**passed_headers(CIMultiDict(request.headers)), "accept-encoding": "identity"}
        response: web.StreamResponse | None = None
        try:
            async with self._http.post(f"{self._target}{request.path_qs}", data=body, headers=headers) as answer:
                is_stream = answer.content_type == "text/event-stream"
                content = b"" if is_stream else await answer.read()
                if not is_stream:
                    await _strike(request, fault)
                response = web.StreamResponse(status=answer.status, headers=passed_headers(CIMultiDict(answer.headers)))
                await response.prepare(request)
                await response.write(content)
                if is_stream:
                    await _relay(request, answer, response, fault)
                return response
        except (aiohttp.ClientError, TimeoutError) as error:
            if response is None:
                return unreachable(self._target, error)
            lose(request)


async def _relay(
    request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse, fault: LlmStall | LlmDeath
) -> None:
    decoder, num_texts, is_struck = sse.Decoder(), 0, False
    async for chunk in answer.content.iter_any():
        for data in decoder.feed(chunk):
            has_text = _has_text(data)
            if not is_struck and (data == sse.DONE or (has_text and num_texts == fault.after_tokens)):
                is_struck = True
                await _strike(request, fault)
            num_texts += has_text
            await response.write(sse.encode(data))


async def _strike(request: web.Request, fault: LlmStall | LlmDeath) -> None:
    if isinstance(fault, LlmDeath):
        lose(request)
    await asyncio.sleep(MAX_S if fault.for_s is None else fault.for_s)


def _refusal(fault: LlmRefusal) -> web.Response:
    code = _CODES[fault.status]
    headers = {} if fault.retry_after_s is None else {"retry-after": str(fault.retry_after_s)}
    error = {"message": f"refused with {fault.status} as told", "type": code, "code": code, "param": None}
    return web.json_response({"error": error}, status=fault.status, headers=headers)


def _says_something(body: bytes) -> bool:
    try:
        asked = read_json_object(body).get("max_tokens")
    except PeerError:
        return False  # between the client and the service
    return not (isinstance(asked, int) and asked <= PREFILL_TOKENS)


def _has_text(data: str) -> bool:
    if data == sse.DONE:
        return False
    try:
        event: Any = json.loads(data)
    except ValueError:
        return False
    match event:
        case {"choices": [{"delta": {"content": str(text)}}, *_]}:
            return bool(text)
    return False
