from __future__ import annotations

import asyncio
import time

import pytest

from load.offered import Fixed, Open
from load.offering import offer


def clock_from_now():
    start_s = time.monotonic()
    return lambda: time.monotonic() - start_s


async def test_an_open_load_does_not_wait_for_calls_that_take_long() -> None:
    begun: list[tuple[int, float]] = []
    everyone = asyncio.Event()

    async def begin(number: int, scheduled_s: float) -> None:
        begun.append((number, scheduled_s))
        if len(begun) == 3:
            everyone.set()
        await everyone.wait()

    await asyncio.wait_for(offer(Open((0.0, 0.01, 0.02)), begin, clock_from_now(), 1), 5)
    assert begun == [(0, 0.0), (1, 0.01), (2, 0.02)]


@pytest.mark.parametrize("num_concurrent", [1, 3])
async def test_a_fixed_load_has_so_many_calls_at_once_and_no_more(num_concurrent: int) -> None:
    running, most, numbers = 0, 0, []

    async def begin(number: int, scheduled_s: float) -> None:
        nonlocal running, most
        numbers.append(number)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    await offer(Fixed(num_concurrent, 9, None, stagger_s=0.0), begin, clock_from_now(), 1)
    assert sorted(numbers) == list(range(9))
    assert most == num_concurrent


async def test_no_call_begins_after_the_time_of_a_fixed_load() -> None:
    scheduled: list[float] = []

    async def begin(number: int, scheduled_s: float) -> None:
        scheduled.append(scheduled_s)
        await asyncio.sleep(0.02)

    await offer(Fixed(2, None, 0.1, stagger_s=0.0), begin, clock_from_now(), 1)
    assert len(scheduled) >= 3
    assert max(scheduled) < 0.1


async def test_what_ends_one_call_ends_all() -> None:
    async def begin(number: int, scheduled_s: float) -> None:
        if number:
            raise RuntimeError("no more")
        await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(offer(Open((0.0, 0.0)), begin, clock_from_now(), 1), 5)
