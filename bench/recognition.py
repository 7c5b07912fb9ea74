"""How well `load.recognition` tells when words were heard, against the borders that the voice itself tells.

    PYTHONPATH=. .venv/bin/python bench/recognition.py

Starts a stack from `--profile`, lets its voice speak the packaged corpus (kept for the next time), and recognises that.
Prints how late words are told, by where they stand: the first of a reply by how long a pause parts it from a filler
before it. Only texts whose every word was recognised count for times. Writes JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from load.alignment import HeardWord, plain, word_error_rate
from load.measure import BEFORE_ALL
from load.recognition import Recogniser, recognise
from load.record import CallRecord, Placed
from load.report.host import commit, host
from load.report.statistics import percentile
from load.speech.corpus import Utterance, packaged
from load.speech.sound import Sound
from load.speech.synthesis import Voice, speech
from load.stack import started

FILLER = Utterance("filler", "One moment, please.")
PAUSES_S = (0.0, 0.1, 0.3, 0.8)
ENDED_S = 60.0


async def words_of(recogniser: Recogniser, rate_hz: int, *heard: Placed) -> list[HeardWord]:
    """One for each plain word."""
    call = CallRecord(0, "bench", "websocket", 0, 16000, rate_hz, 0.0, 0.0, ended_s=ENDED_S, heard=list(heard))
    found = (await recognise(call, recogniser)).get(BEFORE_ALL, [])
    return [HeardWord(text, word.start_s, word.end_s) for word in found for text in plain(word.text)]


def late_s(words: Sequence[HeardWord], text: str, sound: Sound, at_s: float) -> list[float]:
    """Of each word; none unless each was recognised."""
    true_s = [at_s, *(at_s + (border - sound.start) / sound.rate_hz for border in sound.borders)]
    if [word.text for word in words] != plain(text) or len(words) != len(true_s):
        return []
    return [word.start_s - start_s for word, start_s in zip(words, true_s, strict=True)]


async def compare(profile: Path, model: str | None) -> tuple[float, dict[str, list[float]]]:
    """Word error rate, and how late words are by where they stand."""
    texts = list(packaged().utterances.values())
    late: dict[str, list[float]] = {"first of a stretch of its own": [], "within the text": []}
    late |= {f"first, {pause_s:.1f} s after a filler": [] for pause_s in PAUSES_S}
    errors, num_words = 0.0, 0
    async with started(profile, np.random.default_rng(1)) as stack:
        sounds = await speech([FILLER, *texts], Voice(stack.voice_url))
        recogniser = Recogniser(stack.stt_url, model=model)
        filler, num_filler = sounds[FILLER.name], len(plain(FILLER.text))
        for text in texts:
            sound = sounds[text.name]
            pcm = sound.pcm[sound.start : sound.end]
            words = await words_of(recogniser, sound.rate_hz, (1.0, pcm))
            size = len(plain(text.text))
            errors += size * word_error_rate(text.text, " ".join(word.text for word in words))
            num_words += size
            if not (found := late_s(words, text.text, sound, 1.0)):
                continue
            late["first of a stretch of its own"].append(found[0])
            late["within the text"] += found[1:]
            for pause_s in PAUSES_S:
                before = filler.pcm[filler.start : filler.end]
                at_s = 1.0 + before.size / sound.rate_hz + pause_s
                words = (await words_of(recogniser, sound.rate_hz, (1.0, before), (at_s, pcm)))[num_filler:]
                late[f"first, {pause_s:.1f} s after a filler"] += late_s(words, text.text, sound, at_s)[:1]
    return errors / num_words, late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, default=Path("deploy/profiles/cpu.yaml"))
    parser.add_argument("--model", help="of recognition (default: the first of the profile)")
    parser.add_argument("--json", type=Path, default=Path("out/recognition.json"))
    arguments = parser.parse_args()
    error_rate, late = asyncio.run(compare(arguments.profile, arguments.model))
    machine = host()
    print(f"{machine.processor}, {machine.num_cores} cores, Python {machine.python}; commit {commit()}")
    print(f"word errors {100 * error_rate:.1f} %")
    print(f"{'a word begins late by, ms':34}{'n':>6}{'p5':>8}{'p50':>8}{'p95':>8}{'max':>8}")
    for name, values_s in late.items():
        figures = [*(percentile(values_s, p) for p in (5, 50, 95)), max(values_s, key=abs)] if values_s else []
        print(f"{name:34}{len(values_s):6}" + "".join(f"{1000 * figure:8.0f}" for figure in figures))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    found = {"host": asdict(machine), "commit": commit(), "word_error_rate": error_rate, "late_s": late}
    arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
