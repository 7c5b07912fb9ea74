"""The embedded LLM on a CPU: weight formats and threads side by side, and the multiplications they were chosen from.

    python -m bench.llm_cpu [--runs 9] [--formats int4 int8 float32] [--threads 1 2] [--json out/llm_cpu.json]
    python -m bench.llm_cpu --multiplications

Each format and number of threads runs in its own process, through the engine: "cold" is request submitted -> first
token with nothing cached; "warm" a turn whose conversation is cached and which adds about 30 tokens; "prefilled" the
same after a prefill-only request for the same prompt, as a speculation does it. "TPOT" is the mean time per later token
of an answer of 40; "of 4" that of four answers at once. Columns "cpu" are the engine thread's own processor time, which
neighbours on the machine disturb less than time on the wall. "agree" and "KL" compare with float32 on the answers that
float32 gives: share of equal most likely tokens, and mean divergence of the distributions in nats.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from llm.blocks import num_blocks_for
from llm.checkpoint import Shape
from llm.config import WeightFormat, WorkerConfig
from llm.engine import Engine
from llm.linear import Int4Linear, Int8Linear, pack, quantize_rows
from llm.loading import Loaded, load
from llm.model import KvCache, Span
from llm.sampling import Sampling
from llm.sequence import Finished, Generation, Text
from wire.config import EdgeConfig
from wire.weights import cache_dir

MODEL = "smollm2-135m-instruct"
GREEDY = Sampling(temperature=0)
SYSTEM = (
    "You are a friendly telephone agent of a small hotel by the sea. You speak with the caller, so answer with one or "
    "two short, plain sentences. Rooms cost 120 a night, breakfast is from seven to ten, the sea is five minutes away. "
)
CALLER = (
    "Hello, I would like to book a room for two people from Friday to Sunday, please. Do you have one with a view?",
    "That sounds good. Could you also tell me whether breakfast is included, and when we can check in on Friday?",
)
REPLY = "Yes, we have a double room with a view of the sea for that weekend. Shall I book it for you?"
QUESTIONS = (
    "What is the capital of France?",
    "Tell me a short story about a dog and a boat.",
    "I want to book a table for two tomorrow evening, please.",
    "How does a refrigerator work?",
    "My internet is slow. What can I do?",
)
ANSWER_TOKENS = 40
REFERENCE_TOKENS = 50


@dataclass
class Row:
    weight_format: WeightFormat
    threads: int
    ready_s: float = 0.0  # `python -m llm` started -> it answers
    rss_mib: float = 0.0
    cold_tokens: int = 0
    cold_ms: float = 0.0
    cold_cpu_ms: float = 0.0
    warm_tokens: int = 0
    warm_ms: float = 0.0
    warm_cpu_ms: float = 0.0
    prefilled_ms: float = 0.0
    tpot_ms: float = 0.0
    tpot_cpu_ms: float = 0.0
    tpot_of_4_ms: float = 0.0
    agree: float = 0.0
    kl: float = 0.0


@dataclass
class Timed:
    first_s: float
    rest_s: float  # per later token
    first_cpu_s: float
    rest_cpu_s: float
    finished: Finished


class Stopwatch(Engine):
    """An engine that can tell how much processor time its thread has had."""

    def cpu_s(self) -> float:
        assert self._thread.ident is not None
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))


async def ask(engine: Stopwatch, prompt: list[int], max_tokens: int) -> Timed:
    started, started_cpu = time.perf_counter(), engine.cpu_s()
    first, first_cpu = 0.0, 0.0
    last: Text | Finished | None = None
    async for event in engine.submit(Generation(tuple(prompt), max_tokens, sampling=GREEDY, ignore_eos=True)):
        last = event
        if not first:
            first, first_cpu = time.perf_counter(), engine.cpu_s()
    assert isinstance(last, Finished)
    later = max(1, max_tokens - 1)
    return Timed(
        first - started,
        (time.perf_counter() - first) / later,
        first_cpu - started_cpu,
        (engine.cpu_s() - first_cpu) / later,
        last,
    )


async def measure(loaded: Loaded, config: WorkerConfig, runs: int, row: Row) -> None:
    def prompt(*turns: str) -> list[int]:
        roles = ("system", *(("user", "assistant") * 2))
        return loaded.tokenizer.encode_chat([{"role": r, "content": t} for r, t in zip(roles, turns, strict=False)])

    cold, warm, prefilled, of_4 = [], [], [], []
    for _ in range(runs + 1):
        engine = Stopwatch(config, loaded)  # a new one: nothing is cached
        engine.start()
        first_turn, second_turn = prompt(SYSTEM, CALLER[0]), prompt(SYSTEM, CALLER[0], REPLY, CALLER[1])
        cold.append(await ask(engine, second_turn, ANSWER_TOKENS))
        engine.close()
        engine = Stopwatch(config, loaded)
        engine.start()
        await ask(engine, prompt(SYSTEM, CALLER[0], REPLY)[:-3], 0)
        warm.append(await ask(engine, second_turn, ANSWER_TOKENS))
        prefilled.append(await ask(engine, second_turn, ANSWER_TOKENS))
        four = await asyncio.gather(*(ask(engine, first_turn[:-i], ANSWER_TOKENS) for i in range(1, 5)))
        of_4.append(statistics.mean(each.rest_s for each in four))
        engine.close()
    cold, warm, prefilled, of_4 = cold[1:], warm[1:], prefilled[1:], of_4[1:]  # the first of each warms up
    usage = warm[0].finished.usage
    row.cold_tokens, row.warm_tokens = usage.prompt_tokens, usage.prompt_tokens - usage.cached_tokens
    row.cold_ms, row.cold_cpu_ms = _ms(t.first_s for t in cold), _ms(t.first_cpu_s for t in cold)
    row.warm_ms, row.warm_cpu_ms = _ms(t.first_s for t in warm), _ms(t.first_cpu_s for t in warm)
    row.prefilled_ms = _ms(t.first_s for t in prefilled)
    row.tpot_ms, row.tpot_cpu_ms = _ms(t.rest_s for t in prefilled), _ms(t.rest_cpu_s for t in prefilled)
    row.tpot_of_4_ms = _ms(of_4)


def logits(loaded: Loaded, tokens: list[int], kv: KvCache, start: int = 0) -> torch.Tensor:
    blocks = num_blocks_for(len(tokens))
    span = Span(0, len(tokens) - start, len(tokens), torch.arange(blocks), 0, is_run=True)
    new = torch.tensor(tokens[start:])
    return loaded.model.forward(kv, new, torch.arange(start, len(tokens)), [span], torch.arange(len(new)))


@torch.inference_mode()
def reference() -> list[tuple[list[int], torch.Tensor]]:
    """For each question: prompt and float32's greedy answer, and its log probabilities where the answer is."""
    loaded, found = load(MODEL, "float32"), []
    for question in QUESTIONS:
        tokens = loaded.tokenizer.encode_chat([{"role": "user", "content": question}])
        kv, asked, start = KvCache(loaded.model.shape, 16), len(tokens), 0
        for _ in range(REFERENCE_TOKENS):
            start, last = len(tokens), logits(loaded, tokens, kv, start)[-1]
            tokens.append(int(last.argmax()))
        found.append((tokens, logits(loaded, tokens, kv)[asked - 1 : -1].log_softmax(-1)))
    return found


@torch.inference_mode()
def compare(loaded: Loaded, wanted: list[tuple[list[int], torch.Tensor]], row: Row) -> None:
    """Token by token where the answer is, as it is decoded."""
    equal, divergences = [], []
    for tokens, exact in wanted:
        kv, asked = KvCache(loaded.model.shape, 16), len(tokens) - len(exact)
        rows = [logits(loaded, tokens[:asked], kv)[-1:]]
        rows += [logits(loaded, tokens[:n], kv, n - 1) for n in range(asked + 1, len(tokens))]
        got = torch.cat(rows).log_softmax(-1)
        equal += (got.argmax(-1) == exact.argmax(-1)).tolist()
        divergences += (exact.exp() * (exact - got)).sum(-1).tolist()
    row.agree, row.kl = round(statistics.mean(equal), 3), round(statistics.mean(divergences), 5)


def run_alone(weight_format: WeightFormat, threads: int, runs: int, wanted: Path) -> Row:
    torch.set_num_threads(threads)
    loaded = load(MODEL, weight_format)  # derives the files when there are none yet
    row = Row(weight_format, threads)
    config = WorkerConfig(EdgeConfig(port=0), MODEL, MODEL, weight_format=weight_format, num_threads=threads)
    asyncio.run(measure(loaded, config, runs, row))
    compare(loaded, torch.load(wanted), row)
    return row


def ready(weight_format: WeightFormat) -> tuple[float, float]:
    """Of `python -m llm`: seconds from its start until it answers, and its resident MiB then."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    worker = {"edge": {"port": port}, "id": MODEL, "weights": MODEL, "weight_format": weight_format}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as profile:
        json.dump({"llm": {"workers": [worker]}}, profile)
        profile.flush()
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "llm", "--profile", profile.name])
        try:
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None, "the worker ended"
                    time.sleep(0.02)
            took_s = time.perf_counter() - started
            status = Path(f"/proc/{process.pid}/status").read_text()
        finally:
            process.terminate()
            process.wait()
    resident_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return round(took_s, 2), round(resident_kib / 1024)


def multiplications(runs: int) -> dict[str, dict[int, str]]:
    """All matrices of the layers, cold from memory as in a step: ms by rows, median (least)."""
    warnings.simplefilter("ignore", UserWarning)  # quantised tensors are deprecated; see llm.linear
    shape = Shape(30, 9, 3, 576, 1536, 49152, 1e5, 1e-5, 8192)
    sizes = [(960, 576), (576, 576), (3072, 576), (576, 1536)]

    def int4(out: int, size: int) -> Callable[[torch.Tensor], torch.Tensor]:
        nibbles = torch.randint(0, 16, (out, size), dtype=torch.uint8)
        return Int4Linear(pack(nibbles, torch.rand(out, size // 32), torch.rand(out, size // 32)), with_wide=False)

    def onednn_int8(out: int, size: int) -> Callable[[torch.Tensor], torch.Tensor]:
        weight, scales = quantize_rows(torch.randn(out, size))
        packed = torch.ops.onednn.qlinear_prepack(weight, [1, size])
        zeros, multiply = torch.zeros(out, dtype=torch.int64), torch.ops.onednn.qlinear_pointwise.default

        def run(x: torch.Tensor) -> torch.Tensor:
            bytes_ = (x * 40).clamp_(-127, 127).add_(128).to(torch.uint8)
            return multiply(bytes_, 1 / 40, 128, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")  # type: ignore[no-any-return]

        return run

    def weight_only_int8(out: int, size: int) -> Callable[[torch.Tensor], torch.Tensor]:
        weight, scales = quantize_rows(torch.randn(out, size))
        return lambda x: torch._weight_int8pack_mm(x.bfloat16(), weight, scales.bfloat16())

    def floating(dtype: torch.dtype) -> Callable[[int, int], Callable[[torch.Tensor], torch.Tensor]]:
        def make(out: int, size: int) -> Callable[[torch.Tensor], torch.Tensor]:
            weight = torch.randn(out, size, dtype=dtype)
            return lambda x: F.linear(x.to(dtype), weight)

        return make

    makers: dict[str, Callable[[int, int], Callable[[torch.Tensor], torch.Tensor]]] = {
        "int4 (groups of 32)": int4,
        "int8 FBGEMM (W8A8)": lambda out, size: Int8Linear(*quantize_rows(torch.randn(out, size))),
        "int8 oneDNN (W8A8)": onednn_int8,
        "int8 weights only": weight_only_int8,
        "bfloat16": floating(torch.bfloat16),
        "float32": floating(torch.float32),
    }
    table: dict[str, dict[int, str]] = {}
    for name, make in makers.items():
        layers = [[make(out, size) for out, size in sizes] for _ in range(shape.num_layers)]
        table[name] = {}
        for rows in (1, 4, 8, 32, 128):
            inputs = {size: torch.randn(rows, size) for _, size in sizes}
            times = []
            for _ in range(runs + 1):
                started = time.perf_counter()
                for layer in layers:
                    for (_, size), matrix in zip(sizes, layer, strict=True):
                        matrix(inputs[size])
                times.append(1000 * (time.perf_counter() - started))
            table[name][rows] = f"{statistics.median(times[1:]):.1f} ({min(times[1:]):.1f})"
    return table


def _ms(seconds: Any) -> float:
    return round(1000 * statistics.median(seconds), 1)


def print_rows(rows: list[Row]) -> None:
    print(
        "format    th  ready s  RSS MiB  cold ms (cpu)       warm ms (cpu)     prefilled ms  TPOT ms (cpu)  of 4 ms"
        "  agree  KL"
    )
    for r in rows:
        print(
            f"{r.weight_format:9} {r.threads:2}  {r.ready_s:7.2f}  {r.rss_mib:7.0f}"
            f"  {r.cold_ms:6.1f} ({r.cold_cpu_ms:6.1f})    {r.warm_ms:6.1f} ({r.warm_cpu_ms:6.1f})"
            f"  {r.prefilled_ms:12.1f}  {r.tpot_ms:6.1f} ({r.tpot_cpu_ms:5.1f})"
            f"  {r.tpot_of_4_ms:7.1f}  {r.agree:5.3f}  {r.kl:.4f}"
        )
    print(f"prompt: cold {rows[0].cold_tokens} tokens, warm {rows[0].warm_tokens} new; answers of {ANSWER_TOKENS}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9, help="runs of each kind, after one to warm up (default: 9)")
    parser.add_argument("--formats", nargs="+", default=["int4", "int8", "bfloat16", "float32"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--json", type=Path, default=Path("out/llm_cpu.json"))
    parser.add_argument("--multiplications", action="store_true", help="time the matrix multiplications alone")
    parser.add_argument("--alone", help=argparse.SUPPRESS)  # one row, in this process
    arguments = parser.parse_args()
    if arguments.multiplications:
        torch.set_num_threads(1)
        for name, by_rows in multiplications(arguments.runs).items():
            print(f"{name:20}", *(f"{rows:4} rows: {text:14}" for rows, text in by_rows.items()))
        return
    kept = cache_dir() / "derived" / "llm-bench-reference.pt"
    if arguments.alone:
        row = run_alone(arguments.formats[0], arguments.threads[0], arguments.runs, kept)
        Path(arguments.alone).write_text(json.dumps(asdict(row)))
        return
    torch.set_num_threads(1)
    torch.save(reference(), kept)
    rows = []
    try:
        for weight_format in arguments.formats:
            for threads in arguments.threads:
                with tempfile.NamedTemporaryFile(suffix=".json") as out:
                    command = [sys.executable, "-m", "bench.llm_cpu", "--alone", out.name, "--formats", weight_format]
                    command += ["--threads", str(threads), "--runs", str(arguments.runs)]
                    subprocess.run(command, check=True)
                    rows.append(Row(**json.loads(Path(out.name).read_text())))
                rows[-1].ready_s, rows[-1].rss_mib = ready(weight_format)
                print_rows(rows[-1:])
    finally:
        kept.unlink()
    print()
    print_rows(rows)
    load_average = os.getloadavg()[0]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"n = {arguments.runs}, medians; {os.cpu_count()} cores; load average {load_average:.1f}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "commit": commit.stdout.strip(),
        "machine": torch.cpu.get_capabilities().get("cpu_name", platform.machine()),
        "num_cpus": os.cpu_count(),
        "load_average": load_average,
        "runs": arguments.runs,
        "rows": [asdict(row) for row in rows],
    }
    arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
