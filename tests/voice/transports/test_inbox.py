from __future__ import annotations

import asyncio

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voice.transports.inbox import MAX_EVENTS, Inbox
from wire import calls
from wire.pcm import Pcm16

SIZE = 100


def audio(number: int, size: int = 10) -> Pcm16:
    return np.full(size, number, np.int16)


async def drained(inbox: Inbox) -> list[object]:
    inbox.close()
    found: list[object] = []
    while (item := await inbox.get()) is not None:
        found.append(int(item[0]) if isinstance(item, np.ndarray) else item)
    return found


async def test_the_oldest_audio_makes_room_and_no_key_does() -> None:
    inbox = Inbox(SIZE)
    inbox.put(calls.Dtmf("1"))
    for number in range(25):
        inbox.put(audio(number))
    assert await drained(inbox) == [calls.Dtmf("1"), *range(15, 25)]


async def test_events_make_room_for_events_alone() -> None:
    inbox = Inbox(SIZE)
    inbox.put(audio(7))
    for sample in range(MAX_EVENTS + 3):
        inbox.put(calls.Played(sample))
    assert await drained(inbox) == [7, *(calls.Played(sample) for sample in range(3, MAX_EVENTS + 3))]


async def test_of_audio_that_is_longer_than_all_the_end_is_kept() -> None:
    inbox = Inbox(SIZE)
    inbox.put(np.arange(250, dtype=np.int16))
    item = await inbox.get()
    assert isinstance(item, np.ndarray)
    assert item.tolist() == list(range(150, 250))


async def test_who_waits_is_woken_by_what_comes_and_by_the_end() -> None:
    inbox = Inbox(SIZE)
    waiting = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    inbox.put(calls.Played(1))
    assert await waiting == calls.Played(1)
    waiting = asyncio.create_task(inbox.get())
    await asyncio.sleep(0)
    inbox.close()
    inbox.put(calls.Played(2))
    assert await waiting is None
    assert await inbox.get() is None


@given(st.lists(st.one_of(st.integers(1, 150), st.just("key")), max_size=200))
def test_it_is_bounded_and_in_order_whatever_comes(sizes: list[int | str]) -> None:
    async def fill() -> tuple[list[object], int]:
        inbox, most = Inbox(SIZE), 0
        for number, size in enumerate(sizes):
            inbox.put(calls.Played(number) if isinstance(size, str) else audio(number, size))
            held = sum(item.size for item in inbox._items if isinstance(item, np.ndarray))
            most = max(most, held)
        return await drained(inbox), most

    found, most = asyncio.run(fill())
    order = [item.sample if isinstance(item, calls.Played) else item for item in found]
    assert order == sorted(order)  # type: ignore[type-var]
    assert most <= SIZE
