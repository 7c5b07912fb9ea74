"""Where the end of a turn is decided, on recorded speech with known pauses and ends: false cut-ins against waiting.

    python -m bench.recordings --fetch                 # once: the speech
    python -m bench.endpointing [--json out/endpointing.json]

Replays every turn of `bench.paused` through the real VAD, the real turn model, real recognition and the Endpointer,
on audio time: an answer of the turn model is there `MODEL_S` after its question, a transcript `RECOGNITION_S` and more
after the pause was noticed, as measured on two cores. Rules are compared on the same audio: fixed silence, the turn
model asked once, the rule this project had before, and the present one, each over a range of its one
setting. A cut-in is an end that is decided before the turn's last speech sample; the wait is from that sample to the
decision. Speakers are disjoint from those that the weights were fitted to.
"""

from __future__ import annotations

import argparse
import heapq
import json
import pickle
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch

from bench.paused import AFTER_S, BEFORE_S, Turn, turns
from bench.recordings import HZ, folder, sentences
from llm.blocks import num_blocks_for
from llm.loading import load
from llm.model import KvCache, Span
from load.report.host import commit, host
from load.report.statistics import percentile
from load.speech.effects import at_rate
from load.speech.sound import labelled
from stt.whisper import Whisper
from voice import sentence_end
from voice.config import EndpointingConfig
from voice.ears import PREROLL_S
from voice.endpointing import (
    WINDOW_S,
    WINDOW_SAMPLES,
    AskTurnModel,
    Decision,
    Endpointer,
    NoiseEnded,
    Resumed,
    Speculate,
    SpeechStarted,
    TurnEnded,
)
from voice.media.level import Loudness
from voice.media.turn_model import SmartTurn
from voice.media.vad import Silero
from wire.pcm import Pcm16, to_int16
from wire.weights import cache_dir, model_dir

MODEL_S = 0.026  # docs/measurements.md: one question on one core
RECOGNITION_S, RECOGNITION_RATE = 0.09, 0.01  # of a second, and of each second of speech
LANGUAGE_MODEL_S = 0.05  # after the transcript
ANSWER_S = 0.33  # docs/measurements.md, "The turn": from the decision to the first audible word, median
EARLY_S = 0.05  # labels are so exact: a decision from here on is one about the end
PREROLL = round(PREROLL_S * HZ) // WINDOW_SAMPLES
PATIENCES = (-0.7, -0.3, 0.0, EndpointingConfig.patience, 0.6, 0.9, 1.3, 1.8)
NUM_TEST, NUM_CALIBRATION = 130, 120


class Models:
    """The real ones; what was asked once is kept on disk, by the audio it was asked about."""

    def __init__(self, memory: Path) -> None:
        self._path = memory
        self._known: dict[tuple[object, ...], Any] = pickle.loads(memory.read_bytes()) if memory.exists() else {}
        self._vad = Silero(model_dir("silero-vad"))
        self._turn_model = SmartTurn(model_dir("smart-turn-v3.2"))
        self._whisper = Whisper(model_dir("whisper-tiny.en"))
        self._language_model = LanguageModel()

    def speech(self, pcm: Pcm16) -> list[float]:
        stream = self._vad.start()
        windows = range(0, pcm.size - WINDOW_SAMPLES + 1, WINDOW_SAMPLES)
        return self._ask("vad", pcm, lambda: [stream.probability(pcm[i : i + WINDOW_SAMPLES]) for i in windows])

    def complete(self, pcm: Pcm16) -> float:
        return self._ask("turn", pcm, lambda: self._turn_model.probability(pcm))

    def text(self, pcm: Pcm16) -> str:
        return self._ask("text", pcm, lambda: self._whisper.transcribe(pcm, "en").text)

    def stop_logprob(self, words: str) -> float | None:
        prompt = sentence_end.prompt(words)
        if prompt is None:
            return None
        return self._ask("stop", words, lambda: sentence_end.log_probability(self._language_model.likely(prompt)))

    def save(self) -> None:
        self._path.write_bytes(pickle.dumps(self._known))

    def close(self) -> None:
        self.save()
        self._turn_model.close()

    def _ask(self, what: str, about: Pcm16 | str, work: Callable[[], Any]) -> Any:
        key = (what, about) if isinstance(about, str) else (what, about.size, zlib.crc32(about.tobytes()))
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]


class LanguageModel:
    """The default one in the format in which it is served."""

    def __init__(self) -> None:
        loaded = load("smollm2-135m-instruct", "int4")
        self._model, self._tokenizer = loaded.model, loaded.tokenizer
        self._kv = KvCache(loaded.model.shape, 64)

    @torch.inference_mode()
    def likely(self, prompt: str) -> dict[str, float]:
        """The likeliest next tokens, and log P of each."""
        tokens = self._tokenizer.encode(prompt)
        count = len(tokens)
        span = Span(0, count, count, torch.arange(num_blocks_for(count)), 0, is_run=True)
        logits = self._model.forward(
            self._kv, torch.tensor(tokens), torch.arange(count), [span], torch.tensor([count - 1])
        )
        values, ids = logits[0].log_softmax(0).topk(sentence_end.NUM_TOKENS)
        found = zip(ids.tolist(), values.tolist(), strict=True)
        return {self._tokenizer.name_of(token): value for token, value in reversed(list(found))}


@dataclass(frozen=True)
class Outcome:
    """Of one turn: pauses that were taken for the end, and when the end was found, None when it was not."""

    turn: Turn
    cut_ins_s: tuple[float, ...]
    wait_s: float | None

    @property
    def num_heard(self) -> int:
        """Cut-ins that the caller hears: one he speaks into before the answer sounds is taken back in silence."""
        return sum(
            any(start / HZ <= at_s and end / HZ - at_s > ANSWER_S for start, end in self.turn.pauses)
            for at_s in self.cut_ins_s
        )


def replay(turn: Turn, endpointer: Endpointer, models: Models) -> Outcome:
    ends_s: list[float] = []
    # When; the question, or the pause of a transcript; the answer; whether the language model gave it.
    due: list[tuple[float, int, float | str, bool]] = []
    begin = pause = 0
    loudness = Loudness(())
    before = known = ""  # words of the turn up to where it was taken for over, and up to the last pause

    def pcm_of(window: int) -> Pcm16:
        return turn.pcm[window * WINDOW_SAMPLES : (window + 1) * WINDOW_SAMPLES]

    def carry_out(decisions: Sequence[Decision], at_s: float, window: int) -> None:
        nonlocal begin, pause, before, known, loudness
        for decision in decisions:
            said = turn.pcm[begin * WINDOW_SAMPLES : (window + 1) * WINDOW_SAMPLES]
            match decision:
                case SpeechStarted():
                    begin = max(0, window - PREROLL)
                    loudness = Loudness(pcm_of(at) for at in range(begin, window + 1))
                case AskTurnModel(question):
                    heapq.heappush(due, (at_s + MODEL_S, question, models.complete(said), False))
                case Speculate():
                    delay_s = RECOGNITION_S + RECOGNITION_RATE * said.size / HZ
                    known = f"{before} {models.text(said)}".strip()
                    heapq.heappush(due, (at_s + delay_s, pause, known, False))
                case TurnEnded() | NoiseEnded():
                    ends_s.append(at_s)
                    before = known
                    pause += 1
                case Resumed():
                    pause += 1
                case _:
                    pass

    for window, p_speech in enumerate(models.speech(turn.pcm)):
        now = (window + 1) * WINDOW_S
        while due and due[0][0] <= now:
            at_s, number, answer, is_expected = heapq.heappop(due)
            if is_expected and isinstance(answer, float):
                if number == pause:
                    carry_out(endpointer.expect(answer), at_s, window - 1)
            elif isinstance(answer, float):
                carry_out(endpointer.answer(number, answer), at_s, window - 1)
            elif number == pause:
                carry_out(endpointer.read(answer), at_s, window - 1)
                if endpointer.may_expect and (stop_logprob := models.stop_logprob(answer)) is not None:
                    heapq.heappush(due, (at_s + LANGUAGE_MODEL_S, pause, stop_logprob, True))
        is_quiet = endpointer.in_speech and loudness.is_quiet(pcm_of(window))
        carry_out(endpointer.window(p_speech, is_quiet=is_quiet), now, window)
    end_s = turn.end / HZ
    waits_s = [at_s - end_s for at_s in ends_s if at_s >= end_s - EARLY_S]
    return Outcome(turn, tuple(s for s in ends_s if s < end_s - EARLY_S), waits_s[0] if waits_s else None)


def replay_all(said: Sequence[Turn], begin: Callable[[], Endpointer], models: Models) -> list[Outcome]:
    """The turns of one caller in a row, as in one call."""
    outcomes = []
    for _, of_caller in groupby(said, lambda turn: turn.caller):
        endpointer = begin()
        outcomes += [replay(turn, endpointer, models) for turn in of_caller]
    return outcomes


class FixedSilence(Endpointer):
    silence_s = 0.5

    def wait_s(self) -> float:
        return self.silence_s


class AskedOnce(Endpointer):
    """The first answer decides: at 0.5 and above the turn ends, else after `otherwise_s` of silence."""

    otherwise_s = 0.5
    _answer: float | None = None

    def wait_s(self) -> float:
        is_over = self._answer is not None and self._answer >= 0.5
        return self._config.min_wait_s if is_over else self.otherwise_s

    def answer(self, question: int, probability: float) -> list[Decision]:
        if question == self._first_question:
            self._answer = probability
        return super().answer(question, probability)

    def _begin_pause(self) -> None:
        super()._begin_pause()
        self._answer = None


class Before(Endpointer):
    """The rule until now: linear in the turn model's last answer, 0.35 s at most."""

    longest_s = 0.35
    _answer: float | None = None

    def wait_s(self) -> float:
        low = self._config.min_wait_s
        doubt = 1.0 if self._answer is None else max(0.0, 1.0 - 2.0 * self._answer)
        return low + (self.longest_s - low) * doubt

    def answer(self, question: int, probability: float) -> list[Decision]:
        if question >= self._first_question:
            self._answer = probability
        decisions = super().answer(question, probability)
        self._probability = None  # so that it is asked again
        return decisions

    def _begin_pause(self) -> None:
        super()._begin_pause()
        self._answer = None


@dataclass
class Curve:
    name: str
    setting: str
    of: Callable[[float], Callable[[], Endpointer]]
    values: tuple[float, ...]


def curves(config: EndpointingConfig) -> list[Curve]:
    def with_attribute(kind: type[Endpointer], name: str) -> Callable[[float], Callable[[], Endpointer]]:
        return lambda value: lambda: type(kind.__name__, (kind,), {name: value})(config)

    def patient(config: EndpointingConfig) -> Callable[[float], Callable[[], Endpointer]]:
        return lambda value: lambda: Endpointer(replace(config, patience=value))

    return [
        Curve("fixed silence", "silence", with_attribute(FixedSilence, "silence_s"), (0.2, 0.35, 0.5, 0.7, 1.0, 1.5)),
        Curve("turn model, asked once", "else", with_attribute(AskedOnce, "otherwise_s"), (0.35, 0.5, 0.7, 1.0, 1.5)),
        Curve("before", "longest", with_attribute(Before, "longest_s"), (0.35, 0.7, 1.0, 1.5)),
        Curve("without the language model", "patience", patient(replace(config, ask_language_model=False)), PATIENCES),
        Curve("now", "patience", patient(config), PATIENCES),
    ]


@dataclass(frozen=True)
class Figures:
    cut_in_rate: float  # of pauses inside turns
    heard_rate: float
    cut_turn_rate: float
    mean_wait_s: float
    median_wait_s: float
    p90_wait_s: float


def figures(outcomes: Sequence[Outcome]) -> Figures:
    waits_s = [outcome.wait_s for outcome in outcomes if outcome.wait_s is not None]
    num_cut = sum(len(outcome.cut_ins_s) for outcome in outcomes)
    # A pause that only the detector heard counts as one.
    num_pauses = sum(max(len(outcome.turn.pauses), len(outcome.cut_ins_s)) for outcome in outcomes)
    return Figures(
        num_cut / max(1, num_pauses),
        sum(outcome.num_heard for outcome in outcomes) / max(1, num_pauses),
        sum(bool(outcome.cut_ins_s) for outcome in outcomes) / len(outcomes),
        float(np.mean(waits_s)),
        percentile(waits_s, 50),
        percentile(waits_s, 90),
    )


def synthetic() -> list[Turn]:
    """What `offhook load` has had spoken by the default voice, as whole turns; none before it was run."""
    found = []
    for number, path in enumerate(sorted((cache_dir() / "corpus").glob("*.flac"))):
        channels, hz = soundfile.read(path, dtype="float32", always_2d=True)
        sound = at_rate(labelled(to_int16(channels[:, 0]), hz), HZ)
        around = [np.zeros(round(seconds * HZ), np.int16) for seconds in (BEFORE_S, AFTER_S)]
        pcm = np.concatenate([around[0], sound.pcm[: sound.end], around[1]])
        found.append(Turn(number, "joe", path.stem, pcm, around[0].size + sound.end, (), None, None, False))
    return found


def corpus(more: Sequence[Path], seed: int) -> tuple[list[Turn], list[Turn]]:
    """Turns to measure, and turns of other speakers to fit."""
    kept = folder() / "sentences.pickle"
    if not kept.exists():
        kept.write_bytes(pickle.dumps(sentences(more)))
    found = pickle.loads(kept.read_bytes())
    calibration = [sentence for sentence in found if sentence.is_for_calibration]
    test = [sentence for sentence in found if not sentence.is_for_calibration]
    return turns(test, 5, seed, NUM_TEST), turns(calibration, 2, seed + 1, NUM_CALIBRATION)


def _milliseconds(of: Figures) -> str:
    return f"{1000 * of.mean_wait_s:10.0f}{1000 * of.median_wait_s:6.0f}{1000 * of.p90_wait_s:7.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", type=Path, action="append", default=[], help="a further folder of recordings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("out/endpointing.json"))
    arguments = parser.parse_args()
    test, _ = corpus(arguments.more, arguments.seed)
    models = Models(folder() / "asked.pickle")
    pauses_s = [(b - a) / HZ for turn in test for a, b in turn.pauses]
    long = float(np.mean([pause_s >= 0.5 for pause_s in pauses_s]))
    machine = host()
    print(f"{machine.processor}, {machine.num_cores} cores; commit {commit()}; seed {arguments.seed}")
    num_speakers = len({turn.speaker for turn in test})
    print(f"{len(test)} turns, {num_speakers} speakers, {len(pauses_s)} pauses, {long:.0%} of 0.5 s and more")
    print(f"{'rule':26}{'':>14}{'cut-ins':>9}{'heard':>9}{'turns cut':>11}{'wait, ms':>10}{'p50':>6}{'p90':>7}")
    found = []
    for curve in curves(EndpointingConfig()):
        for value in curve.values:
            result = figures(replay_all(test, curve.of(value), models))
            models.save()
            found.append({"rule": curve.name, curve.setting: value, **asdict(result)})
            print(
                f"{curve.name:26}{curve.setting:>8} {value:5.2f}{result.cut_in_rate:9.1%}{result.heard_rate:9.1%}"
                f"{result.cut_turn_rate:11.1%}{_milliseconds(result)}",
                flush=True,
            )
    if whole := synthetic():
        print(f"the default voice, {len(whole)} whole turns")
        for curve, value in (
            (curves(EndpointingConfig())[2], 0.35),
            (curves(EndpointingConfig())[3], EndpointingConfig.patience),
            (curves(EndpointingConfig())[4], EndpointingConfig.patience),
        ):
            result = figures(replay_all(whole, curve.of(value), models))
            found.append({"rule": f"{curve.name}, synthetic", curve.setting: value, **asdict(result)})
            print(f"{curve.name:26}{curve.setting:>8} {value:5.2f}{'':29}{_milliseconds(result)}", flush=True)
    models.close()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"host": asdict(machine), "commit": commit(), "rules": found}, indent=1))


if __name__ == "__main__":
    main()
