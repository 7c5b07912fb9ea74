"""Turn latency of one caller against a running stack.

    PYTHONPATH=. .venv/bin/python bench/turns.py --turns 100 --url ws://127.0.0.1:8080/v1/calls http://127.0.0.1:8080/v1/calls/rtc

Latency is measured at the caller (`deploy.call`), beside the server's own waterfall. Several addresses take turns, call
by call, so that they are compared in one run. The caller says what `--wav` gives; without it the recorded clips of
`pytest-audioeval` and the questions of `bench/questions.txt` in the stack's own voice. Prints a table and writes JSON.
Numbers of a busy machine are worthless: look at the number of late messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path

from deploy.call import call
from deploy.call_report import TurnReport, report
from deploy.errors import DeployError
from deploy.recording import read_speech
from load.caller import Speech
from load.report.statistics import percentile
from voice.budget import STAGES
from wire import calls

TURNS_PER_CALL = 10
QUESTIONS = Path(__file__).with_name("questions.txt")


def clips() -> list[Path]:
    spec = find_spec("pytest_audioeval")
    if spec is None or spec.submodule_search_locations is None:
        return []
    return sorted((Path(spec.submodule_search_locations[0]) / "samples/audio/en").glob("*.wav"))


def spoken_questions(tts_url: str, folder: Path) -> list[Path]:
    """The questions as wav files, in the first voice of the service."""
    with urllib.request.urlopen(f"{tts_url}/v1/voices") as response:
        voice = json.load(response)["data"][0]
    paths = []
    for number, text in enumerate(QUESTIONS.read_text().splitlines(), 1):
        body = json.dumps({"model": voice["model"], "voice": voice["id"], "input": text}).encode()
        request = urllib.request.Request(f"{tts_url}/v1/audio/speech", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as response:
            paths.append(folder / f"q{number:02}.wav")
            paths[-1].write_bytes(response.read())
    return paths


def mixed(some: list[Path], others: list[Path]) -> list[Path]:
    """`some`, spread evenly among `others`."""
    step = max(1, len(others) // max(1, len(some)))
    paths = list(others)
    for i, path in enumerate(some):
        paths.insert(i * (step + 1), path)
    return paths


def measure(urls: list[str], paths: list[Path], num_turns: int) -> tuple[dict[str, list[TurnReport]], int]:
    """`num_turns` of each address."""
    lines: dict[str, Iterator[Speech]] = {}
    turns: dict[str, list[TurnReport]] = defaultdict(list)
    num_slips = 0
    while (done := min(len(turns[url]) for url in urls)) < num_turns:
        for url in urls:
            rate_hz = calls.RTC_HZ if url.startswith("http") else None
            speeches, rate_hz = read_speech(paths, rate_hz)
            line = lines.setdefault(url, cycle(speeches))
            hello = calls.Hello(1, rate_hz, calls.RTC_HZ if url.startswith("http") else 24000, greeting=False)
            batch = list(islice(line, min(TURNS_PER_CALL, num_turns - done)))
            heard = asyncio.run(call(url, batch, hello))
            turns[url] += report(url, heard, None).turns
            num_slips += heard.num_slips
            print(f"{url}: {len(turns[url])} of {num_turns} turns", file=sys.stderr, flush=True)
    return turns, num_slips


def table(turns: list[TurnReport]) -> str:
    rows = [("latency at the caller", [t.latency_ms for t in turns if t.latency_ms is not None])]
    rows.append(("latency by the server", [t.server_latency_ms for t in turns if t.server_latency_ms is not None]))
    rows += [(stage, [t.stages_ms[stage] for t in turns if stage in t.stages_ms]) for stage in STAGES]
    lines = [f"{'ms':24}{'n':>6}{'median':>9}{'p90':>9}{'p95':>9}{'max':>9}"]
    for name, values in rows:
        if values:
            figures = (*(percentile(values, p) for p in (50, 90, 95)), max(values))
            lines.append(f"{name:24}{len(values):6}" + "".join(f"{f:9.0f}" for f in figures))
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in Counter(t.outcome for t in turns).items())
    return "\n".join([*lines, f"turns: {outcomes}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", nargs="+", default=["ws://127.0.0.1:8080/v1/calls"])
    parser.add_argument("--turns", type=int, default=100, help="of each address")
    parser.add_argument("--wav", type=Path, nargs="+")
    parser.add_argument("--tts", default="http://127.0.0.1:8102", help="who speaks the questions")
    parser.add_argument("--json", type=Path, default=Path("out/turns.json"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments.wav or mixed(clips(), spoken_questions(arguments.tts, Path(folder)))
        try:
            turns, num_slips = measure(arguments.url, paths, arguments.turns)
        except DeployError as error:
            sys.exit(f"error: {error}")
    for url, of_url in turns.items():
        print(f"\n{url}\n{table(of_url)}")
    print(f"\nmessages sent late: {num_slips}")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    host = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "host": host,
        "commit": commit,
        "late_messages": num_slips,
        "turns": {url: [asdict(turn) for turn in of_url] for url, of_url in turns.items()},
    }
    arguments.json.write_text(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
