"""The CPU voice: time to first audio, real-time factor, memory; the split graph beside the whole one.

    python -m bench.tts_cpu [--runs 9] [--json out/tts_cpu.json]

"first audio" is text handed to the engine -> first audible chunk out of its queue, normalisation, phonemes and
scheduling included. "whole" runs the model as it was exported, on the same phonemes, to the end: all of it must be
there before anything can be heard. "while busy" is first audio while the engine reads a long text to another caller.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from tts_engine.engine import Audio, Engine, Failed, Finished, Line, Manner
from tts_engine.segmenter import Segmenter
from tts_engine.speaking import Speaker
from tts_engine.text.lexicon import read_lexicon
from tts_engine.text.phonemes import phrases
from tts_engine.vits.card import BEGIN, END, PAD, read_card
from tts_engine.vits.voice import VitsVoice
from wire.weights import cache_dir, model_dir

MODEL, LEXICON = "piper-en-us-joe-medium", "lexicon-en-us"
TEXTS = {
    3: "I can help.",
    8: "Your appointment is on Monday morning at nine.",
    21: "Thank you for calling us today, I would like to check your account before we go on, if that is fine.",
}
LONG = "This is a long text, which is read to somebody else while the others wait for theirs. " * 200
MANNER = Manner("joe", seed=1)


@dataclass
class Row:
    words: int
    audio_s: float
    first_audio_ms: float
    first_audio_worst_ms: float
    whole_ms: float
    total_ms: float
    rtf: float
    while_busy_ms: float
    while_busy_worst_ms: float


class WholeGraph:
    """The model as exported, one thread, no spinning."""

    def __init__(self) -> None:
        folder = model_dir(MODEL)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self._card = read_card(folder / "config.json")

    def __call__(self, symbols: str) -> float:
        """Seconds until the audio is there."""
        began_s = time.perf_counter()
        ids = self._card.symbol_ids
        padded = [ids[BEGIN], ids[PAD]]
        for symbol in symbols:
            padded += [ids[symbol], ids[PAD]]
        padded.append(ids[END])
        scales = [self._card.noise_scale, self._card.length_scale, self._card.duration_noise_scale]
        self._session.run(
            None,
            {
                "input": np.array([padded], np.int64),
                "input_lengths": np.array([len(padded)], np.int64),
                "scales": np.array(scales, np.float32),
            },
        )
        return time.perf_counter() - began_s


async def say(line: Line, text: str) -> tuple[float, float, int]:
    """Seconds to the first audio, to the end, and samples."""
    began_s, first_s, size = time.perf_counter(), 0.0, 0
    key = line.open(MANNER, None)
    segmenter = Segmenter()
    for unit in (*segmenter.push(text), segmenter.flush()):
        if unit is not None:
            line.add(key, unit)
    line.end(key)
    while True:
        match await line.events.get():
            case Audio() as audio if audio.key == key:
                first_s = first_s or time.perf_counter() - began_s
                size += audio.chunk.pcm.size
                line.sent()
            case Finished() as finished if finished.key == key:
                return first_s, time.perf_counter() - began_s, size
            case Failed() as failed:
                raise failed.error


async def read_aloud(line: Line) -> None:
    """Until cancelled: a caller with a long text, who takes whatever comes."""
    while True:
        await say(line, LONG)


async def measure(speaker: Speaker, whole: WholeGraph, words: int, runs: int) -> Row:
    engine, text = Engine({"joe": speaker}, max_waiting=16), TEXTS[words]
    [phrase] = phrases(text, speaker.lexicon)
    engine.start()
    line, other = engine.line(), engine.line()
    await say(line, text)
    whole(phrase.symbols)
    alone = [await say(line, text) for _ in range(runs)]
    whole_s = [whole(phrase.symbols) for _ in range(runs)]
    reading = asyncio.create_task(read_aloud(other))
    await asyncio.sleep(0.5)
    busy = [await say(line, text) for _ in range(runs)]
    reading.cancel()
    other.close()
    engine.close()
    first_s, total_s = [a[0] for a in alone], statistics.median(a[1] for a in alone)
    audio_s = alone[0][2] / speaker.sample_rate_hz
    return Row(
        words=words,
        audio_s=round(audio_s, 2),
        first_audio_ms=_ms(statistics.median(first_s)),
        first_audio_worst_ms=_ms(max(first_s)),
        whole_ms=_ms(statistics.median(whole_s)),
        total_ms=_ms(total_s),
        rtf=round(total_s / audio_s, 4),
        while_busy_ms=_ms(statistics.median(b[0] for b in busy)),
        while_busy_worst_ms=_ms(max(b[0] for b in busy)),
    )


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _rss_mib() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9, help="runs per text, after one to warm up (default: 9)")
    parser.add_argument("--json", type=Path, default=Path("out/tts_cpu.json"))
    arguments = parser.parse_args()
    folder = model_dir(MODEL)
    voice = VitsVoice(folder / "model.onnx", folder / "config.json", cache_dir() / "derived")
    speaker = Speaker(voice, read_lexicon(model_dir(LEXICON)))
    rss_mib = _rss_mib()  # before the whole graph is loaded beside it
    whole = WholeGraph()
    rows = [asyncio.run(measure(speaker, whole, words, arguments.runs)) for words in TEXTS]
    print("words  audio s  first audio ms  (worst)  whole ms  all chunks ms    RTF  while busy ms  (worst)")
    for r in rows:
        print(
            f"{r.words:5}  {r.audio_s:7.2f}  {r.first_audio_ms:14.1f}  {r.first_audio_worst_ms:7.1f}  {r.whole_ms:8.1f}"
            f"  {r.total_ms:13.1f}  {r.rtf:5.3f}  {r.while_busy_ms:13.1f}  {r.while_busy_worst_ms:7.1f}"
        )
    load = os.getloadavg()[0]
    print(f"peak RSS after loading, MiB: {rss_mib}; n = {arguments.runs}; load average {load:.1f}; one thread")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "commit": _commit(),
        "machine": platform.processor() or platform.machine(),
        "num_cpus": os.cpu_count(),
        "load_average": load,
        "seed": MANNER.seed,
        "runs": arguments.runs,
        "rss_mib": rss_mib,
        "rows": [asdict(r) for r in rows],
    }
    arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
