"""The echo guard on recorded speech: `python -m bench.echo`.

An agent speaks and comes back on several lines: soft, loud, late, in a room that rings, out of a small loudspeaker that
distorts, through G.711, with a clock that drifts, over a network that stalls, turned up or later on meanwhile.
Alone, it must not interrupt itself: prints false interruptions and false starts (the agent lowers its voice) per minute
of echo. With another speaker over it, the caller must be heard: prints by his level to that of the echo how long
he speaks (by the detector, on a line without echo) before he interrupts. Then a caller without any echo: how long,
and how many windows of his are taken for an echo. Last what a window costs of the processor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from load.report.statistics import percentile
from tests.speech import clip_paths, read
from voice.config import EndpointingConfig, VoiceConfig
from voice.endpointing import AskTurnModel, Decision, Endpointer, SpeechGoesOn, SpeechStarted
from voice.media.echo import EchoGuard
from voice.media.vad import Silero
from wire.pcm import Pcm16, to_float, to_int16
from wire.weights import model_dir

HZ, WINDOW, MESSAGE = 16000, 512, 320
AGENT_S, CALLER_S = 9.0, (0.8, 3.5)  # the agent speaks for so long; the caller begins then
RATIOS_DB = (-12, -6, 0, 6)  # of the caller to the echo
LANGUAGES = ("en", "es", "fr", "hi", "it", "ja", "pl", "pt", "zh")
BARGE_IN_S = VoiceConfig.barge_in_after_s


@dataclass(frozen=True)
class Line:
    db: float
    delay_s: float
    room_s: float = 0.0  # how long it rings, to -60 dB
    noise_dbfs: float = -75.0
    drive: float = 0.0  # of the loudspeaker into what it cannot give
    g711: bool = False
    drift_ppm: float = 0.0
    stall_s: float = 0.0  # every two seconds nothing comes for so long, then all of it
    turned_up_db: float = 0.0  # in the middle
    grows_s: float = 0.0  # the delay, in the middle: a jitter buffer
    rest_s: float = 0.0  # of the agent, before the middle: longer than any delay, and he is off the guard's mind

    def agent(self, language: str) -> Pcm16:
        pcm = said_by(language, round(AGENT_S * HZ))
        pcm[pcm.size // 2 - round(self.rest_s * HZ) : pcm.size // 2] = 0
        return pcm

    def echo(self, agent: Pcm16) -> NDArray[np.float32]:
        """What the microphone has of it, with noise; full scale is 1."""
        wave = to_float(agent).astype(np.float64)
        if self.drive:
            wave = np.tanh(self.drive * wave / np.abs(wave).max()) * np.abs(wave).max() / self.drive
        random = np.random.default_rng(1)
        if self.room_s:
            t = np.arange(round(self.room_s * HZ)) / HZ
            ringing = random.standard_normal(t.size) * 10 ** (-3 * t / self.room_s) * 0.1
            ringing[0] = 1.0
            wave = np.convolve(wave, ringing)
        at = np.arange(agent.size) * (1 + 1e-6 * self.drift_ppm) - self.delay_s * HZ
        at[agent.size // 2 :] -= self.grows_s * HZ
        wave = np.interp(at, np.arange(wave.size), wave, left=0) * 10 ** (self.db / 20)
        wave[agent.size // 2 :] *= 10 ** (self.turned_up_db / 20)
        return (wave + random.standard_normal(wave.size) * 10 ** (self.noise_dbfs / 20)).astype(np.float32)

    def sent(self, wave: NDArray[np.float32]) -> Pcm16:
        pcm = to_int16(wave)
        if not self.g711:
            return pcm
        companded = np.sign(wave) * np.log1p(255 * np.abs(wave).clip(0, 1)) / np.log(256)
        coarse = np.round(companded * 128) / 128
        return to_int16((np.sign(coarse) * (256 ** np.abs(coarse) - 1) / 255).astype(np.float32))


LINES = {
    "soft": Line(-20, 0.06),
    "softer": Line(-30, 0.15),
    "loud": Line(-6, 0.02),
    "loud, late": Line(-10, 0.9),
    "room 0.4 s": Line(-20, 0.2, room_s=0.4),
    "room 0.4 s, loud, late": Line(-6, 0.6, room_s=0.4),
    "noise": Line(-20, 0.1, noise_dbfs=-55),
    "distorting, G.711": Line(-12, 0.25, room_s=0.2, drive=4.0, g711=True),
    "drift, G.711": Line(-20, 0.3, drift_ppm=100, g711=True),
    "stalls": Line(-15, 0.12, stall_s=0.15),
    "turned up 10 dB": Line(-25, 0.1, room_s=0.2, turned_up_db=10),
    "delay grows 60 ms": Line(-15, 0.1, room_s=0.2, grows_s=0.06),
    "very late, two turns": Line(-15, 1.2, room_s=0.2, rest_s=3.0),
}


def said_by(language: str, size: int, then: float = 0.0) -> Pcm16:
    pcm = np.concatenate([read(path) for path in clip_paths(language)])
    return np.tile(np.roll(pcm, -round(then * HZ)), -(-size // pcm.size))[:size]


def active(pcm: NDArray[np.float32]) -> float:
    """RMS of its louder half: levels of speech are compared while there is some."""
    frames = pcm[: pcm.size // WINDOW * WINDOW].reshape(-1, WINDOW).astype(np.float64)
    energy = np.sort((frames**2).mean(axis=1))[frames.shape[0] // 2 :]
    return float(np.sqrt(energy.mean())) + 1e-9


@dataclass(frozen=True)
class Heard:
    decisions: list[tuple[float, Decision]]
    is_speech: NDArray[np.bool_]  # by the detector
    is_echo: NDArray[np.bool_]
    costs_s: list[float]  # of the processor, for each window

    def interruptions_s(self) -> list[float]:
        """When speech had lasted long enough, once in each utterance."""
        found, is_over = [], True
        for at_s, decision in self.decisions:
            is_over = is_over or isinstance(decision, SpeechStarted)
            if is_over and isinstance(decision, SpeechGoesOn) and decision.speech_s >= BARGE_IN_S:
                found.append(at_s)
                is_over = False
        return found


def hear(vad: Silero, agent: Pcm16, microphone: Pcm16, line: Line, fresh_s: float = 0.0) -> Heard:
    """As `Ears` does; the endpointer is begun anew at `fresh_s`. The turn model always takes a pause for the end."""
    stream, guard, late = vad.start(), EchoGuard(HZ, HZ, 0.0), np.random.default_rng(5)
    endpointer = Endpointer(EndpointingConfig())
    heard, is_speech, is_echo = Heard([], np.zeros(0, bool), np.zeros(0, bool), []), [], []
    sent, lead = 0, VoiceConfig.lead_s
    for begin in range(0, microphone.size - WINDOW + 1, WINDOW):
        end_s = -(-(begin + WINDOW) // MESSAGE) * MESSAGE / HZ
        now = end_s + late.uniform(0, 0.015)
        if line.stall_s and end_s % 2.0 < line.stall_s:
            now = end_s // 2.0 * 2.0 + line.stall_s
        while sent < agent.size and sent / HZ <= now + lead:
            if agent[sent : sent + MESSAGE].any():
                guard.said(agent[sent : sent + MESSAGE], sent / HZ)
            sent += MESSAGE
        window = microphone[begin : begin + WINDOW]
        is_speech.append(stream.probability(window) >= EndpointingConfig.speech_threshold)
        began_s = time.thread_time()
        is_echo.append(guard.hears(window, now) and is_speech[-1] and guard.is_echo())
        heard.costs_s.append(time.thread_time() - began_s)
        if begin / HZ < fresh_s:
            continue
        decisions = endpointer.window(float(is_speech[-1] and not is_echo[-1]))
        for decision in decisions:
            if fresh_s and isinstance(decision, AskTurnModel):
                decisions = [*decisions, *endpointer.answer(decision.question, 1.0)]
        heard.decisions.extend(((begin + WINDOW) / HZ, decision) for decision in decisions)
    return Heard(heard.decisions, np.array(is_speech), np.array(is_echo), heard.costs_s)


def pairs(num: int) -> Iterator[tuple[str, str]]:
    """Of different speakers; each is once the agent."""
    for i, agent in enumerate(itertools.islice(LANGUAGES, num)):
        yield agent, LANGUAGES[(i + 4) % len(LANGUAGES)]


def alone(vad: Silero, line: Line, num: int) -> tuple[float, float, list[float]]:
    """False interruptions and false starts per minute, and what the windows of speech cost."""
    minutes, false, starts, costs_s = 0.0, 0, 0, []
    for language, _ in pairs(num):
        agent = line.agent(language)
        heard = hear(vad, agent, line.sent(line.echo(agent)), line)
        minutes += AGENT_S / 60
        false += len(heard.interruptions_s())
        starts += sum(isinstance(decision, SpeechStarted) for _, decision in heard.decisions)
        costs_s += [cost for cost, is_speech in zip(heard.costs_s, heard.is_speech, strict=True) if is_speech]
    return false / minutes, starts / minutes, costs_s


def interrupted(vad: Silero, line: Line, ratio_db: float | None, num: int) -> tuple[list[float], list[float]]:
    """Seconds of speech before each interruption, inf for none; and the shares of speech taken for an echo.

    `ratio_db` None: there is no echo.
    """
    found, shares = [], []
    for (language, other), begin_s in itertools.product(pairs(num), CALLER_S):
        agent = line.agent(language)
        echo = line.echo(agent)
        loudness = active(echo) * 10 ** (ratio_db / 20) if ratio_db is not None else 0.05
        caller = to_float(said_by(other, round(4.0 * HZ), then=begin_s))
        over = np.zeros_like(echo)
        over[round(begin_s * HZ) :][: caller.size] = caller * loudness / active(caller)
        clean = hear(vad, np.zeros(0, np.int16), to_int16(over), line, fresh_s=begin_s)
        heard = hear(vad, agent, line.sent(over + echo) if ratio_db is not None else to_int16(over), line, begin_s)
        spoke = clean.is_speech
        first_s = next(at_s for at_s, d in clean.decisions if isinstance(d, SpeechStarted)) - 2 * WINDOW / HZ
        at_s = heard.interruptions_s()
        found.append(at_s[0] - first_s if at_s else float("inf"))
        shares.append(float(heard.is_echo[spoke].mean()))
    return found, shares


def told(found: list[float]) -> str:
    late = sum(each > 1.0 for each in found) / len(found)
    median, p90 = np.percentile(found, (50, 90), method="higher")  # some are infinite
    return f"{1000 * median:5.0f} {1000 * p90:6.0f} {100 * late:6.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speakers", type=int, default=len(LANGUAGES))
    parser.add_argument("--lines", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    vad, num = Silero(model_dir("silero-vad")), arguments.speakers
    result: dict[str, dict[str, object]] = {"alone": {}, "over it": {}}
    costs_s: list[float] = []
    print(f"{'the agent alone, per minute':32} interruptions  starts")
    for name in arguments.lines:
        false, starts, costs = alone(vad, LINES[name], num)
        costs_s += costs
        result["alone"][name] = [false, starts]
        print(f"{name:32} {false:13.1f} {starts:7.1f}", flush=True)
    print(f"\n{'a caller over it, ms':32} median    p90  later than 1 s or never")
    by_ratio: dict[float, list[float]] = {}
    for name, ratio in itertools.product(arguments.lines, RATIOS_DB):
        found, _ = interrupted(vad, LINES[name], ratio, num)
        by_ratio.setdefault(ratio, []).extend(found)
        result["over it"][f"{name}, {ratio} dB"] = found
    for ratio, found in by_ratio.items():
        print(f"{f'{ratio:+} dB':32} {told(found)}", flush=True)
    found, shares = interrupted(vad, LINES["soft"], None, num)
    print(f"{'no echo':32} {told(found)}; {100 * np.mean(shares):.1f} % of the speech is taken for an echo")
    print(
        f"\na window of speech costs the guard {1e6 * percentile(costs_s, 50):.0f} us in the median, "
        f"{1e6 * percentile(costs_s, 99):.0f} at 99 %, n = {len(costs_s)}"
    )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
