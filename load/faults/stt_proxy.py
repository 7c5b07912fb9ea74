"""Faults of recognition on one connection of `WS /v1/listen`. What is speculated belongs to the finalize after it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from load.faults.socket_hop import Ends, message_of
from load.faults.stages import Plan, StageFault, SttEmpty, SttLate, SttNever
from wire import listen

_RESULTS = (listen.Speculation.TYPE, listen.Final.TYPE, listen.Error.TYPE)


class SttConversation:
    def __init__(self, plan: Plan, ends: Ends) -> None:
        self._plan = plan
        self._ends = ends
        self._met: dict[int, StageFault | None] = {}  # by id of the request; the service bounds those unanswered

    async def up(self, data: str | bytes) -> None:
        message = message_of(data)
        if isinstance(request := message.get("id"), int):
            if message.get("type") == listen.Finalize.TYPE:
                self._met[request] = self._plan.take()
            elif message.get("type") == listen.Speculate.TYPE:
                self._met[request] = self._plan.peek()
        await self._ends.to_service(data)

    async def down(self, data: str | bytes) -> None:
        fault, message = None, message_of(data)
        if message.get("type") in _RESULTS and isinstance(request := message.get("id"), int):
            fault = self._met.pop(request, None)
        elif message.get("type") == listen.Partial.TYPE:
            fault = self._plan.peek()
        match fault:
            case SttNever():
                return
            case SttLate(by_s=by_s):
                self._ends.spawn(self._send_late(data, by_s))
            case SttEmpty() if "text" in message:
                await self._ends.to_client(json.dumps(_without_words(message)))
            case _:
                await self._ends.to_client(data)

    async def _send_late(self, data: str | bytes, by_s: float) -> None:
        await asyncio.sleep(by_s)
        await self._ends.to_client(data)


def _without_words(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "text": "", **({"words": []} if message.get("words") is not None else {})}
