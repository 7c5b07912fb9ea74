"""Begins calls when the schedule says so, and waits until the last has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any, TypeAlias, assert_never

from load.offered import Fixed, Offered, Open

# Number from 0, scheduled time; returns at the call's end.
Begin: TypeAlias = Callable[[int, float], Coroutine[Any, Any, None]]


async def offer(offered: Offered, begin: Begin, clock: Callable[[], float], seed: int) -> None:
    """`clock`: seconds since the start of the run."""
    match offered:
        case Open(times_s):
            async with asyncio.TaskGroup() as tasks:
                for number, at_s in enumerate(times_s):
                    await _until(at_s, clock)
                    tasks.create_task(begin(number, at_s))
        case Fixed():
            numbers = count() if offered.num_calls is None else iter(range(offered.num_calls))
            async with asyncio.TaskGroup() as tasks:
                for first_s in offered.first_times_s(seed):
                    tasks.create_task(_one_after_the_other(offered, first_s, numbers, begin, clock))
        case _:
            assert_never(offered)


async def _one_after_the_other(
    offered: Fixed, first_s: float, numbers: Iterator[int], begin: Begin, clock: Callable[[], float]
) -> None:
    await _until(first_s, clock)
    at_s = first_s
    while offered.duration_s is None or at_s < offered.duration_s:
        number = next(numbers, None)
        if number is None:
            return
        await begin(number, at_s)
        at_s = clock()


async def _until(at_s: float, clock: Callable[[], float]) -> None:
    await asyncio.sleep(max(0.0, at_s - clock()))
