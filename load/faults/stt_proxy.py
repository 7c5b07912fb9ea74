"""Faults of recognition on one connection of `WS /v1/listen`. What is speculated belongs to the finalize after it."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from load.faults.socket_hop import Ends, message_of
from load.faults.stages import Plan, StageFault, SttEmpty, SttLate, SttNever
from wire import listen
from wire.errors import DeadlineExceeded
from wire.messages import encode

_RESULTS = (listen.Speculation.TYPE, listen.Final.TYPE, listen.Error.TYPE)


class SttConversation:
    def __init__(self, plan: Plan, ends: Ends) -> None:
        self._plan = plan
        self._ends = ends
        self._met: dict[int, tuple[StageFault | None, float]] = {}  # by id; the service bounds those unanswered

    async def up(self, data: str | bytes) -> None:
        message = message_of(data)
        if isinstance(request := message.get("id"), int):
            if message.get("type") == listen.Finalize.TYPE:
                self._met[request] = (self._plan.take(), _deadline_s(message))
            elif message.get("type") == listen.Speculate.TYPE:
                self._met[request] = (self._plan.peek(), _deadline_s(message))
        await self._ends.to_service(data)

    async def down(self, data: str | bytes) -> None:
        fault, deadline_s, message = None, math.inf, message_of(data)
        if message.get("type") in _RESULTS and isinstance(request := message.get("id"), int):
            fault, deadline_s = self._met.pop(request, (None, math.inf))
        elif message.get("type") == listen.Partial.TYPE:
            fault = self._plan.peek()
        match fault:
            case SttNever():
                return
            case SttLate(by_s=by_s):
                self._ends.spawn(self._send_late(data, message, by_s, deadline_s))
            case SttEmpty() if "text" in message:
                await self._ends.to_client(json.dumps(_without_words(message)))
            case _:
                await self._ends.to_client(data)

    async def _send_late(self, data: str | bytes, message: dict[str, Any], by_s: float, deadline_s: float) -> None:
        left_s = deadline_s - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, min(by_s, left_s)))
        if left_s < by_s:
            data = encode(listen.Error(DeadlineExceeded.code, "the fault made it miss its deadline", message["id"]))
        await self._ends.to_client(data)


def _deadline_s(message: dict[str, Any]) -> float:
    """On the event loop's clock; infinite when the request has none."""
    left_ms = message.get("deadline_ms")
    return asyncio.get_running_loop().time() + left_ms / 1000 if isinstance(left_ms, int) else math.inf


def _without_words(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "text": "", **({"words": []} if message.get("words") is not None else {})}
