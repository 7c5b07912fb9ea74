"""What a call costs while nobody speaks: CPU of the call server, by transport, and of each of its processes.

    PYTHONPATH=. .venv/bin/python bench/idle_calls.py --calls 10 --seconds 20

Beside a running stack whose profile has `voice.max_calls` as high and `voice.idle_after_s` long. Each caller sends
silence every 20 ms, as telephones do, and hears nothing. Prints CPU of one core per call, from /proc/PID/stat; of a
call server of several processes (`voice.num_processes`) what each took, the front first, and their memory.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
import urllib.parse
from pathlib import Path

import numpy as np

from deploy.ports import owner_of
from load.lines.boundary import Line, LineClosed
from load.lines.webrtc import rtc_line
from load.lines.websocket import websocket_line
from wire import calls
from wire.pcm import AUDIO_FRAME_S

SETTLE_S = 3.0


async def be_silent(line: Line, rate_hz: int) -> None:
    silence = np.zeros(round(rate_hz * AUDIO_FRAME_S), np.int16)
    due_s = time.monotonic()
    while True:
        await line.send_audio(silence)
        due_s += AUDIO_FRAME_S
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))


async def hear(line: Line) -> None:
    with contextlib.suppress(LineClosed):
        while True:
            await line.receive()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes_of(pid: int) -> list[int]:
    """The process itself, and those it started."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident, and the same with each shared page divided among those who have it (proc(5): Rss, Pss)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines()[1:] if line.split()[-1] == "kB"}
    return sizes["Rss"] / 1000, sizes["Pss"] / 1000


async def measure(address: str, transport: str, num_calls: int, seconds: float, pids: list[int]) -> list[float]:
    """CPU seconds per second, of each process."""
    is_rtc = transport == "webrtc"
    url = f"http://{address}/v1/calls/rtc" if is_rtc else f"ws://{address}/v1/calls"
    hello = calls.Hello(1, calls.RTC_HZ, calls.RTC_HZ, greeting=False) if is_rtc else calls.Hello(1, greeting=False)
    async with contextlib.AsyncExitStack() as lines, asyncio.TaskGroup() as tasks:
        running = []
        for _ in range(num_calls):
            line = await lines.enter_async_context((rtc_line if is_rtc else websocket_line)(url, hello, None))
            running += [tasks.create_task(be_silent(line, hello.sample_rate_hz)), tasks.create_task(hear(line))]
        await asyncio.sleep(SETTLE_S)
        before_s, start_s = [cpu_s(pid) for pid in pids], time.monotonic()
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - start_s
        shares = [(cpu_s(pid) - before) / took_s for pid, before in zip(pids, before_s, strict=True)]
        for task in running:
            task.cancel()
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="127.0.0.1:8080", metavar="HOST:PORT")
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    owner = owner_of(urllib.parse.urlsplit(f"//{arguments.address}").port or 80)
    if owner is None:
        sys.exit(f"nobody listens on {arguments.address}: offhook up")
    pids = processes_of(owner.pid)
    for _ in range(arguments.runs):
        for transport in ("websocket", "webrtc"):
            shares = asyncio.run(measure(arguments.address, transport, arguments.calls, arguments.seconds, pids))
            per_call = f"{100 * sum(shares) / max(1, arguments.calls):.2f} % of a core per call"
            each = ", ".join(f"{100 * share:.1f} %" for share in shares)
            print(f"{transport:10} {arguments.calls:3} calls: {per_call}; by process: {each}", flush=True)
    for pid in pids:
        resident, proportional = memory_mb(pid)
        print(f"process {pid}: {resident:.0f} MB resident, {proportional:.0f} MB with shared pages divided")


if __name__ == "__main__":
    main()
