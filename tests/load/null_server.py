"""An agent without a mind on a thread of its own: commands run their own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from load.null_agent import NullAgent
from tests.load.test_hearing import tone


@contextlib.contextmanager
def null_server(answer_after_s: float) -> Iterator[str]:
    """Yields its address."""
    addresses: list[str] = []
    is_up, loop = threading.Event(), asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with NullAgent(tone(0.4, 24000), answer_after_s=answer_after_s).running() as url:
            addresses.append(url)
            is_up.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert is_up.wait(10)
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()
