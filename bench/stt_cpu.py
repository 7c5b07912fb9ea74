"""Recognition on one CPU core, beside the stock 30 s window: `python -m bench.stt_cpu`.

Times `Whisper.transcribe` (features, encoder, decoder, guards; no queue, no socket) on the first seconds of recorded
English speech, both windows by turns in the same run; then word error rate over all English clips, and memory. One
second takes longer than two: it ends inside a word of a row of numbers, where the decoder goes on counting until its
budget of tokens is spent (22; two seconds need 8). A partial may end so, a final follows a pause. The guards' figures
(no-speech probability and mean log-probability of speech and of wordless sounds) are what the thresholds of
`stt.guards` were read from. Prints tables and writes JSON.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: as the service does

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from load.alignment import plain, word_error_rate
from load.report.statistics import percentile
from stt.segments import MAX_PIECE_S
from stt.whisper import VIEW_S, Transcript, Whisper, load
from tests.speech import RATE_HZ, clip_paths, read
from tests.stt.signals import attenuated, noisy, telephone, wordless
from wire.pcm import Pcm16
from wire.weights import model_dir

SHARED = Path(__file__).parents[2] / "shared/data/speech"  # more clips, where they exist
LENGTHS_S = (1, 2, 4, 8)
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
CONDITIONS: dict[str, Callable[[Pcm16], Pcm16]] = {
    "clean": lambda pcm: pcm,
    "30 dB down": lambda pcm: attenuated(pcm, 30),
    "40 dB down": lambda pcm: attenuated(pcm, 40),
    "telephone": telephone,
    "10 dB SNR": lambda pcm: noisy(pcm, 10),
    "0 dB SNR": lambda pcm: noisy(pcm, 0),
}


def clips() -> Iterator[tuple[str, Pcm16, str]]:
    """(name, audio, text) of English."""
    for path in clip_paths():
        yield path.stem, read(path), path.with_suffix(".txt").read_text()
    if (SHARED / "transcripts.json").exists():
        texts = json.loads((SHARED / "transcripts.json").read_text())
        yield "leopard", read(SHARED / "leopard_test.wav"), texts["leopard_test.wav"]["transcript"]
        jfk = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
        yield "jfk", read(SHARED / "jfk.flac"), jfk


def spelled(text: str) -> str:
    text = re.sub(r"\bmr\b", "mister", text, flags=re.IGNORECASE)
    return re.sub(r"10|\d", lambda digits: f" {NUMBERS[int(digits[0])]} ", text)


def rss_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def timed(whisper: Whisper, pcm: Pcm16, *, with_words: bool = False) -> float:
    start = time.perf_counter()
    whisper.transcribe(pcm, "en", with_words=with_words)
    return 1000 * (time.perf_counter() - start)


def latencies(short: Whisper, stock: Whisper, num: int) -> list[dict[str, float]]:
    speech = np.concatenate([pcm for _, pcm, _ in clips()])
    rows = []
    for seconds in LENGTHS_S:
        pcm = speech[: seconds * RATE_HZ]
        runs = [(timed(short, pcm), timed(stock, pcm), timed(short, pcm, with_words=True)) for _ in range(num)]
        fast, slow, aligned = (list(column) for column in zip(*runs, strict=True))
        rows.append(
            {
                "speech_s": seconds,
                "median_ms": statistics.median(fast),
                "p90_ms": percentile(fast, 90),
                "stock_median_ms": statistics.median(slow),
                "with_words_median_ms": statistics.median(aligned),
            }
        )
    return rows


def error_rate(whisper: Whisper, condition: Callable[[Pcm16], Pcm16]) -> tuple[float, list[Transcript]]:
    """Word errors in per cent of all reference words, and the transcripts."""
    num_words, num_errors, transcripts = 0, 0.0, []
    for _, pcm, text in clips():
        transcripts.append(whisper.transcribe(condition(pcm)[: round(MAX_PIECE_S * RATE_HZ)], "en"))
        size = len(plain(spelled(text)))
        num_words += size
        num_errors += size * word_error_rate(spelled(text), spelled(transcripts[-1].text))
    return 100 * num_errors / num_words, transcripts


def guard_rows(whisper: Whisper, seeds: int) -> dict[str, Any]:
    sounds = [
        whisper.transcribe(pcm, "en")
        for seed in range(seeds)
        for seconds in (0.5, 1.5, 4.0, 10.0)
        for _, pcm in wordless(seconds, seed)
    ]
    reached = [t for t in sounds if t.mean_logprob < 0]
    return {
        "sounds": len(sounds),
        "reached_the_model": len(reached),
        "with_words": sum(bool(t.text) for t in sounds),
        "lowest_no_speech_prob": min(t.no_speech_prob for t in reached),
    }


def measure(model: str, num: int, seeds: int) -> dict[str, Any]:
    before = rss_mib()
    short = load(model_dir(model))
    memory = rss_mib() - before
    stock = Whisper(model_dir(model), min_window_s=VIEW_S)
    rows = latencies(short, stock, num)
    print(f"\n{model}: {memory:.0f} MiB per instance; ms, n = {num}")
    print(f"{'speech':>8}{'median':>9}{'p90':>9}{'stock 30 s':>12}{'with words':>12}")
    for row in rows:
        print(
            f"{row['speech_s']:6} s{row['median_ms']:9.0f}{row['p90_ms']:9.0f}"
            f"{row['stock_median_ms']:12.0f}{row['with_words_median_ms']:12.0f}"
        )
    rates: dict[str, dict[str, float]] = {}
    print(f"{'':12}{'WER %':>8}{'stock':>8}{'highest no-speech':>19}{'lowest log-prob':>17}")
    for name, condition in CONDITIONS.items():
        rate, transcripts = error_rate(short, condition)
        stock_rate, _ = error_rate(stock, condition)
        no_speech = max(t.no_speech_prob for t in transcripts)
        logprob = min(t.mean_logprob for t in transcripts)
        rates[name] = {"wer": rate, "stock_wer": stock_rate, "no_speech_prob": no_speech, "mean_logprob": logprob}
        print(f"{name:12}{rate:8.1f}{stock_rate:8.1f}{no_speech:19.2f}{logprob:17.2f}")
    guarded = guard_rows(short, seeds)
    print(
        f"of {guarded['sounds']} wordless sounds {guarded['reached_the_model']} reached the model and "
        f"{guarded['with_words']} gave words; lowest no-speech {guarded['lowest_no_speech_prob']:.2f}"
    )
    return {"memory_mib": memory, "latency": rows, "recognition": rates, "wordless": guarded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["whisper-tiny.en", "whisper-base"])
    parser.add_argument("--runs", type=int, default=15, help="per length and window")
    parser.add_argument("--seeds", type=int, default=2, help="of the wordless sounds")
    parser.add_argument("--json", type=Path, default=Path("out/stt_cpu.json"))
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "commit": subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip(),
        "host": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load": os.getloadavg()[0],
        "runs": arguments.runs,
    }
    print(f"{result['host']}, load {result['load']:.1f}", file=sys.stderr)
    result["models"] = {model: measure(model, arguments.runs, arguments.seeds) for model in arguments.models}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
