"""What the call server itself does with many calls at once: `PYTHONPATH=. .venv/bin/python bench/media.py`.

A real call server (`python -m voice`) on services that answer as the real ones were timed on a quiet machine
(docs/measurements.md) and compute nothing: so what is late here is the media layer. Callers hold conversations over
`--transport`, `--calls` at once. Prints the latency at the caller, gaps, underruns, the lag of the loop, and its CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import yaml
from fastapi import WebSocket

from bench.idle_calls import cpu_s
from tests.fakes import FakeLlm, FakeStt, FakeTts
from tests.serving import free_ports, serving
from wire import speak
from wire.config import EdgeConfig
from wire.service import Lifecycle
from wire.sockets import Socket

FINAL_S = 0.03  # recognition: what is left of it when the turn ends
FIRST_TOKEN_S, TOKEN_S = 0.1, 0.022
FIRST_AUDIO_S, FIRST_AUDIO_PER_WORD_S, WORD_S = 0.05, 0.002, 0.3  # 51 ms for 3 words, 92 for 21
REPLY = (
    "We are open from nine in the morning until six in the evening on every day of the week but Sunday. "
    "On Sundays you can leave a message, and somebody will call you back on the next day."
)
SCENARIO = """
name: conversation
about: Turns one after the other.
steps:
  - repeat:
      times: {turns}
      steps:
        - say: {clip}
        - wait_for_answer: end
        - silence: 500
"""


class TimedTts(FakeTts):
    """Texts by connection: calls number their utterances alike."""

    async def _speak(self, websocket: WebSocket) -> None:
        await _OneVoice(word_s=WORD_S)._speak(websocket)


class _OneVoice(FakeTts):
    async def _say(
        self, peer: Socket[speak.ClientMessage], utterance: int, chars: int, samples: int
    ) -> tuple[int, int]:
        num_words = len(self.texts[utterance][chars:].split())
        await asyncio.sleep(FIRST_AUDIO_S + FIRST_AUDIO_PER_WORD_S * num_words)
        return await super()._say(peer, utterance, chars, samples)


async def serve() -> None:
    """The services, until stdin ends; tells their addresses."""
    fakes = (
        FakeStt(final_delay_s=FINAL_S, texts=["When are you open?"]),
        TimedTts(),
        FakeLlm(replies=[REPLY], first_token_s=FIRST_TOKEN_S, token_s=TOKEN_S),
    )
    async with contextlib.AsyncExitStack() as stack:
        edge = EdgeConfig(port=0)
        urls = [await stack.enter_async_context(serving(fake.app(), Lifecycle("fake"), edge)) for fake in fakes]
        print(json.dumps(urls), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def total(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", text, re.MULTILINE))


def lag_quantile(text: str, share: float) -> str:
    """The bucket's border below which that share of the lags lies."""
    found: dict[float, float] = {}
    for border, count in re.findall(r'voice_loop_lag_seconds_bucket{[^}]*le="([^"]+)"[^}]*} ([0-9.e+]+)', text):
        found[float(border)] = found.get(float(border), 0.0) + float(count)
    most = max(found.values())
    return f"{1000 * min(border for border, count in found.items() if count >= share * most):g} ms"


def measure(num_calls: int, turns: int, transport: str, num_processes: int, clip: Path, folder: Path) -> None:
    services = subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert services.stdout is not None
    stt, tts, llm = json.loads(services.stdout.readline())
    [port] = free_ports(1)
    profile = folder / "voice.yaml"
    voice = {
        "edge": {"port": port},
        "stt_url": stt,
        "tts_url": tts,
        "llm_url": llm,
        "llm_model": "timed",
        "max_calls": num_calls,
        "agent": {"greeting": ""},
    }
    if num_processes > 1:
        voice["num_processes"] = num_processes
    profile.write_text(yaml.safe_dump({"voice": voice}))
    server = subprocess.Popen([sys.executable, "-m", "voice", "--profile", str(profile)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                metrics(port)
                break
            time.sleep(0.1)
        (folder / "scenario.yaml").write_text(SCENARIO.format(turns=turns, clip=clip.stem))
        url = f"ws://127.0.0.1:{port}/v1/calls" if transport == "websocket" else f"http://127.0.0.1:{port}/v1/calls/rtc"
        result = folder / "run.json"
        command = ["run", str(folder / "scenario.yaml"), "--url", url, "--transport", transport]
        command += ["--calls", str(num_calls), "--at-once", str(num_calls), "--recordings", str(clip.parent)]
        before_s, begun_s = cpu_s(server.pid), time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "load", *command, "--no-recognition", "--json", str(result)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        busy = (cpu_s(server.pid) - before_s) / (time.monotonic() - begun_s)
        text, run = metrics(port), json.loads(result.read_text())
        latency, gaps = run["stages"]["latency_s"], [gap for turn in run["turns"] for gap in turn["gaps_s"]]
        late = run["validity"]["scheduling_error_p99_s"]
        print(
            f"{transport:9} {num_calls:3} calls, {num_processes} process(es): latency {1000 * latency['p50']:.0f} / "
            f"{1000 * latency['p95']:.0f} ms (n = {latency['n']}), {len(gaps)} gaps of up to "
            f"{1000 * max(gaps, default=0):.0f} ms, {total(text, 'voice_underruns_total'):.0f} underruns, loop lag p99 "
            f"<= {lag_quantile(text, 0.99)}, CPU {100 * busy:.0f} % of a core; callers late p99 {1000 * late:.1f} ms",
            flush=True,
        )
    finally:
        server.terminate()
        server.wait(20)
        assert services.stdin is not None
        services.stdin.close()
        services.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--turns", type=int, default=3, help="of each call (default: %(default)s)")
    parser.add_argument("--transport", nargs="+", default=["websocket", "webrtc"])
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve())
        return
    from tests.speech import clip_paths, read

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        [path] = [path for path in clip_paths() if path.stem == "hello_world"]
        clip = folder / "clips" / path.name
        clip.parent.mkdir()
        import soundfile

        soundfile.write(clip, read(path).astype(np.int16), 16000)
        clip.with_suffix(".txt").write_text(path.with_suffix(".txt").read_text())
        for transport in arguments.transport:
            for num_processes in arguments.processes:
                for num_calls in arguments.calls:
                    measure(num_calls, arguments.turns, transport, num_processes, clip, folder)


if __name__ == "__main__":
    main()
