"""However a call ends, its line is free again and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest
from aiortc import RTCPeerConnection, RTCSessionDescription

from tests.rtc_caller import rtc_calling
from tests.rtc_peer import QUIET, connected, offer_of, peer, post, request, until_free
from tests.voice.conftest import Stage
from voice.rtc import CONNECT_TIMEOUT_S
from voice.transports.webrtc import SILENT_S
from wire import calls

pytestmark = pytest.mark.slow


async def test_of_fifty_offers_at_once_as_many_are_taken_as_there_are_lines_and_lost_ones_are_freed(
    stage: Stage,
) -> None:
    """None of them ever sends a packet, so the lines are free again after the time to connect."""
    async with stage.up() as base:
        async with peer() as connection:
            offer = await offer_of(connection)
        answers = await asyncio.gather(*(post(base, offer) for _ in range(50)))
        statuses = [status for status, _, _ in answers]
        assert (statuses.count(201), statuses.count(429)) == (2, 48)
        assert all(int(headers["retry-after"]) >= 1 for status, headers, _ in answers if status == 429)
        await until_free(base, CONNECT_TIMEOUT_S + 5)


async def test_a_caller_who_vanishes_frees_the_line(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        _, _, answer = await post(base, await offer_of(connection))
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)
        for transceiver in connection.getTransceivers():  # the network is gone: nobody says goodbye
            for protocol in transceiver.sender.transport.transport._connection._protocols:
                protocol.transport.abort()
        await until_free(base, SILENT_S + 5)


@pytest.mark.timeout(300)
async def test_two_hundred_calls_leave_nothing_behind(stage: Stage) -> None:
    """Hung up in turn by message, by DELETE, by closing, and before the media was there."""
    stage.settings["max_calls"] = 4

    async def one(base: str, number: int) -> None:
        if number % 4 == 0:
            async with rtc_calling(base, QUIET) as caller:
                await caller.until(calls.Ready)
                await caller.send(calls.Hangup())
                await caller.until_gone()
            return
        async with peer(channel=number % 4 != 2) as connection:
            _, headers, answer = await post(base, await offer_of(connection), "?greeting=false")
            if number % 4 == 3:
                await request("DELETE", base + headers["location"])
                return
            await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await connected(connection)
            if number % 4 == 1:
                await request("DELETE", base + headers["location"])

    async with stage.up() as base:

        async def rounds(count: int) -> None:
            for start in range(0, count, 4):
                await asyncio.gather(*(one(base, number) for number in range(start, start + 4)))
                await until_free(base, 10)

        await rounds(20)
        before = _held()
        await rounds(200)
        after = _held()

    assert after["peers"] == 0
    assert {k: after[k] - before[k] for k in ("tasks", "sockets", "threads")} == {
        "tasks": 0,
        "sockets": 0,
        "threads": 0,
    }
    assert after["memory_bytes"] - before["memory_bytes"] < 48 << 20  # the allocator's own swing; a peer holds more


def _held() -> dict[str, int]:
    gc.collect()
    links = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "peers": sum(type(thing) is RTCPeerConnection for thing in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "sockets": sum(link.startswith("socket:") for link in links),
        # asyncio's own pool grows up to its bound as it pleases
        "threads": sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate()),
        "memory_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
    }
