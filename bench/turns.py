"""Turn latency of one caller against a running stack.

    PYTHONPATH=. .venv/bin/python bench/turns.py --turns 100 [--url http://127.0.0.1:8080/v1/calls/rtc] [--wav FILE ...]

Latency is measured at the caller (`deploy.call`), beside the server's own waterfall. Without `--wav` the recorded clips
of `pytest-audioeval` are spoken in turn. Prints a table and writes JSON. Numbers of a busy machine are worthless: look
at the number of late messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from deploy.call import call
from deploy.call_report import TurnReport, report
from deploy.errors import DeployError
from deploy.recording import read_speech
from voice.budget import STAGES
from wire import calls

TURNS_PER_CALL = 10


def clips() -> list[Path]:
    spec = find_spec("pytest_audioeval")
    if spec is None or spec.submodule_search_locations is None:
        sys.exit("no --wav given and pytest-audioeval is not installed")
    return sorted((Path(spec.submodule_search_locations[0]) / "samples/audio/en").glob("*.wav"))


def percentile(values: list[float], share: float) -> float:
    return float(np.percentile(values, 100 * share)) if values else float("nan")


def measure(url: str, paths: list[Path], num_turns: int) -> tuple[list[TurnReport], int]:
    is_rtc = url.startswith("http")
    speeches, rate_hz = read_speech(paths, calls.RTC_HZ if is_rtc else None)
    hello = calls.Hello(1, rate_hz, calls.RTC_HZ if is_rtc else 24000, greeting=False)
    line = cycle(speeches)
    turns: list[TurnReport] = []
    num_slips = 0
    while len(turns) < num_turns:
        batch = list(islice(line, min(TURNS_PER_CALL, num_turns - len(turns))))
        heard = asyncio.run(call(url, batch, hello))
        turns += report(url, heard, None).turns
        num_slips += heard.num_slips
        print(f"{len(turns)} of {num_turns} turns", file=sys.stderr, flush=True)
    return turns, num_slips


def table(turns: list[TurnReport], num_slips: int) -> str:
    rows = [("latency at the caller", [t.latency_ms for t in turns if t.latency_ms is not None])]
    rows.append(("latency by the server", [t.server_latency_ms for t in turns if t.server_latency_ms is not None]))
    rows += [(stage, [t.stages_ms[stage] for t in turns if stage in t.stages_ms]) for stage in STAGES]
    lines = [f"{'ms':24}{'n':>6}{'median':>9}{'p90':>9}{'p95':>9}{'max':>9}"]
    for name, values in rows:
        if values:
            figures = (statistics.median(values), percentile(values, 0.9), percentile(values, 0.95), max(values))
            lines.append(f"{name:24}{len(values):6}" + "".join(f"{f:9.0f}" for f in figures))
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in Counter(t.outcome for t in turns).items())
    return "\n".join([*lines, f"turns: {outcomes}; messages sent late: {num_slips}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="ws://127.0.0.1:8080/v1/calls")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--wav", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, default=Path("out/turns.json"))
    arguments = parser.parse_args()
    try:
        turns, num_slips = measure(arguments.url, arguments.wav or clips(), arguments.turns)
    except DeployError as error:
        sys.exit(f"error: {error}")
    print(table(turns, num_slips))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    host = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    result = {"host": host, "commit": commit, "late_messages": num_slips, "turns": [asdict(t) for t in turns]}
    arguments.json.write_text(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
