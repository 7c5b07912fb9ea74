"""What a call costs while nobody speaks: CPU of the call server, by transport.

    PYTHONPATH=. .venv/bin/python bench/idle_calls.py --calls 10 --seconds 20

Beside a running stack whose profile has `voice.max_calls` as high and `voice.idle_after_s` long. Each caller sends
silence every 20 ms, as telephones do, and hears nothing. Prints CPU of one core per call, from /proc/PID/stat.
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


async def measure(address: str, transport: str, num_calls: int, seconds: float, pid: int) -> float:
    """CPU seconds per second and call."""
    is_rtc = transport == "webrtc"
    url = f"http://{address}/v1/calls/rtc" if is_rtc else f"ws://{address}/v1/calls"
    hello = calls.Hello(1, calls.RTC_HZ, calls.RTC_HZ, greeting=False) if is_rtc else calls.Hello(1, greeting=False)
    async with contextlib.AsyncExitStack() as lines, asyncio.TaskGroup() as tasks:
        running = []
        for _ in range(num_calls):
            line = await lines.enter_async_context((rtc_line if is_rtc else websocket_line)(url, hello, None))
            running += [tasks.create_task(be_silent(line, hello.sample_rate_hz)), tasks.create_task(hear(line))]
        await asyncio.sleep(SETTLE_S)
        before_s, start_s = cpu_s(pid), time.monotonic()
        await asyncio.sleep(seconds)
        share = (cpu_s(pid) - before_s) / (time.monotonic() - start_s) / max(1, num_calls)
        for task in running:
            task.cancel()
    return share


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
    for _ in range(arguments.runs):
        for transport in ("websocket", "webrtc"):
            share = asyncio.run(measure(arguments.address, transport, arguments.calls, arguments.seconds, owner.pid))
            print(f"{transport:10} {arguments.calls:3} calls: {100 * share:.2f} % of a core per call", flush=True)


if __name__ == "__main__":
    main()
