"""How well the generator keeps time: many callers of `load` against an agent without a mind, in its own process.

    PYTHONPATH=. .venv/bin/python bench/callers.py --callers 40 --turns 6

Callers say bursts of noise over `WS /v1/calls`; no model runs. Prints how late messages left, what share of a core the
generator took, and how far the turn latency that the callers measured lies from the one that the agent had, and writes
JSON. Both processes share the cores: numbers of a busy machine are worthless.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from load.caller import Caller, Speech
from load.lines.websocket import websocket_line
from load.measure import turns
from load.offered import Fixed
from load.record import CallRecord, TurnRecord
from load.report.host import CpuMeter, commit, host
from load.report.statistics import percentile
from load.report.validity import judge
from wire import calls
from wire.pcm import Pcm16

RATE_HZ: calls.SampleRate = 16000
OUTPUT_HZ: calls.SampleRate = 24000
BURST_S, REST_S = (0.08, 0.25), (0.03, 0.12)  # about as syllables and the gaps between them
SPEECH_S = 2.0
QUIET_S = 0.6  # of an agent whose answer is over
ANSWER_TIMEOUT_S = 10.0


def bursts(rng: np.random.Generator) -> Pcm16:
    """Noise at -20 dBFS, opening and closing."""
    pieces: list[np.ndarray] = []
    while sum(piece.size for piece in pieces) < SPEECH_S * RATE_HZ:
        pieces.append(0.1 * rng.standard_normal(round(rng.uniform(*BURST_S) * RATE_HZ)))
        pieces.append(np.zeros(round(rng.uniform(*REST_S) * RATE_HZ)))
    return (np.clip(np.concatenate(pieces[:-1]), -1, 1) * 32767).astype(np.int16)


async def converse(caller: Caller, speeches: Sequence[Speech]) -> None:
    for speech in speeches:
        caller.say(speech)
        await caller.until_said()
        await caller.until_audible(caller.record.said[-1].end_s, ANSWER_TIMEOUT_S)
        await caller.until_quiet(QUIET_S, ANSWER_TIMEOUT_S)
    await caller.hang_up()


def talk(number: int, num_turns: int) -> list[Speech]:
    rng = np.random.default_rng(number)
    pcms = [bursts(rng) for _ in range(num_turns)]
    return [Speech(f"burst {i}", "", pcm, 0, pcm.size) for i, pcm in enumerate(pcms)]


async def place(
    url: str, number: int, at_s: float, speeches: Sequence[Speech], clock: Callable[[], float]
) -> CallRecord:
    await asyncio.sleep(at_s - clock())
    record = CallRecord(number, "bursts", "websocket", number, RATE_HZ, OUTPUT_HZ, at_s, clock())
    async with websocket_line(url, calls.Hello(1, RATE_HZ, OUTPUT_HZ, greeting=False), None) as line:
        caller = Caller(line, record, clock)
        await caller.run(converse(caller, speeches))
    return record


async def call_all(
    url: str, num_callers: int, num_turns: int, seed: int, records: list[CallRecord]
) -> tuple[float, float]:
    """CPU share and seconds. Records are not returned: `asyncio.run` takes seconds to write out a large result."""
    talks = [talk(number, num_turns) for number in range(num_callers)]
    first_s = Fixed(num_callers, num_callers, None).first_times_s(seed)
    gc.collect()
    gc.freeze()  # a full collection of all that was imported takes 10 to 30 ms
    start_s, meter = time.monotonic(), CpuMeter()
    callers = [
        place(url, number, at_s, talks[number], lambda: time.monotonic() - start_s)
        for number, at_s in enumerate(first_s)
    ]
    records += await asyncio.gather(*callers)
    return meter.share(), time.monotonic() - start_s


def row(name: str, values_s: Sequence[float]) -> str:
    if not values_s:
        return f"{name:34}{0:8}"
    figures = (*(percentile(values_s, p) for p in (50, 99)), max(values_s, key=abs))
    return f"{name:34}{len(values_s):8}" + "".join(f"{1000 * figure:9.2f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=40)
    parser.add_argument("--turns", type=int, default=6, help="of each caller")
    parser.add_argument("--answer-after-ms", type=float, default=500.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("out/callers.json"))
    arguments = parser.parse_args()
    null_agent = [sys.executable, "-m", "load", "null-agent", "--answer-after-ms", str(arguments.answer_after_ms)]
    records: list[CallRecord] = []
    with subprocess.Popen(null_agent, stdout=subprocess.PIPE, text=True) as agent:
        try:
            url = agent.stdout.readline().strip()
            used = asyncio.run(call_all(url, arguments.callers, arguments.turns, arguments.seed, records))
        finally:
            agent.kill()
    report(arguments, records, *used)


def report(arguments: argparse.Namespace, records: Sequence[CallRecord], cpu_share: float, duration_s: float) -> None:
    late_s = [late for record in records for late in record.late_s]
    found: list[TurnRecord] = [turn for record in records for turn in turns(record)]
    heard_s = [(turn.latency_s, turn.server_latency_s) for turn in found if turn.latency_s is not None]
    claimed = [latency_s - server_s for latency_s, server_s in heard_s if server_s is not None]
    planned = [latency_s - arguments.answer_after_ms / 1000 for latency_s, _ in heard_s]
    machine = host()
    validity = judge(late_s, cpu_share, duration_s, shares_cores=True, num_cores=machine.num_cores)
    print(f"{machine.processor}, {machine.num_cores} cores, Python {machine.python}; commit {commit()}")
    print(f"{arguments.callers} callers, seed {arguments.seed}, {duration_s:.0f} s; {100 * cpu_share:.0f} % of a core")
    print(f"{'ms':34}{'n':>8}{'p50':>9}{'p99':>9}{'max':>9}")
    print(row("messages left late by", late_s))
    print(row("latency, heard less the agent's own", claimed))
    print(row("latency, heard less planned", planned))
    print(f"calls: {dict(Counter(r.outcome for r in records))}, turns: {dict(Counter(t.outcome for t in found))}")
    print(f"{'valid' if validity.is_valid else 'INVALID'}: {validity.reason}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(
        json.dumps(
            {
                "host": asdict(machine),
                "commit": commit(),
                "seed": arguments.seed,
                "callers": arguments.callers,
                "duration_s": duration_s,
                "validity": asdict(validity),
                "heard_less_claimed_s": claimed,
                "heard_less_planned_s": planned,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
