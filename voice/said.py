"""What the caller has said in the present turn: parts in order, each recognised or still being recognised.

A turn has several parts when the caller goes on before the answer is heard, or keys something in beside his words. A
part outlives the attempt at an answer that asked for it: its audio is gone from recognition, so dropping it would lose
words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from voice.clients.stt import SttClient
from wire.errors import WireError

Part: TypeAlias = asyncio.Future[str | WireError]


class Said:
    def __init__(self, stt: SttClient, spawn: Callable[[Coroutine[Any, Any, str | WireError]], Part]) -> None:
        self._stt = stt
        self._spawn = spawn
        self._parts: list[Part] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def known(self) -> str:
        """The words recognised by now."""
        results = [part.result() for part in self._parts if part.done() and not part.cancelled()]
        return " ".join(text for text in results if isinstance(text, str) and text)

    def add(self, end_sample: int, deadline_s: float) -> None:
        """The part that ends at `end_sample` of the recognition stream, known within `deadline_s`."""
        self._parts.append(self._spawn(self._recognise(end_sample, deadline_s)))

    def add_known(self, text: str) -> None:
        """A part that nobody has to recognise."""
        part: Part = asyncio.get_running_loop().create_future()
        part.set_result(text)
        self._parts.append(part)

    async def words(self) -> str:
        """All parts. Raises: WireError when one could not be recognised."""
        for part in self._parts:
            await asyncio.wait([part])
            if isinstance(error := part.result(), WireError):
                raise error
        return self.known

    async def _recognise(self, end_sample: int, deadline_s: float) -> str | WireError:
        try:
            return await self._stt.finalize(end_sample, deadline_s)
        except WireError as error:
            return error
