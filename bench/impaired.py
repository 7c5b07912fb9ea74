"""A call over WebRTC while its network is bad for ten seconds, and after: `python -m bench.impaired`.

A real call server (`bench.observed`) and real callers, aiortc at both ends and a relay between them (`load.faults`),
which impairs both directions from second 5 to 15 of each call; a drift lasts to the end. Callers take turns with the
agent for half a minute. Delay: from the sending of a sample by the caller until the server's ears have it, found by
laying what was said over what the ears got. Latency: the project's turn latency, at the caller. Made up: the share of
the agent's speech for which a browser's jitter buffer had no packet. Each before, during, and from 5 s after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench.ends import Tap, said_by_callers
from bench.listening import TICK_S, RtpPacket, find, play
from bench.media import metrics, total
from bench.observed import Observed, observed_server
from load.caller import Caller, Speech
from load.dial import Dial
from load.faults.impairment import BurstLoss, Drift, Duplicate, Jitter, Loss, NetworkFault, Reorder
from load.faults.path import CallPath, call_path
from load.measure import turns
from load.record import CallRecord
from load.report.host import commit, host
from load.report.statistics import percentile
from load.track import track_of
from voice.media.resample import Resampler
from voice.transports.webrtc import EARS_HZ
from wire import calls
from wire.pcm import AUDIO_FRAME_S, Pcm16

BEGIN_S, END_S, BACK_S, LAST_S = 5.0, 15.0, 5.0, 30.0
PHASES = {"before": (0.0, BEGIN_S), "during": (BEGIN_S, END_S), "after": (END_S + BACK_S, LAST_S + 5)}
NUM_WORDS = 8  # of an answer: 1 s
ANSWER_TIMEOUT_S = 5.0
QUIET_S = 0.4
WINDOW_S, HOP_S = 0.2, 0.087  # of speech, laid over what was heard; windows end at any place of a packet
EARLIEST_S, LATEST_S = -0.3, 1.0  # around its sending
ALIKE = 0.7  # less was lost
LISTENING_S = 0.06  # behind the arrival, about what a browser's jitter buffer holds
FRAME_SAMPLES = round(AUDIO_FRAME_S * calls.RTC_HZ)

PATHS: dict[str, tuple[NetworkFault, ...]] = {
    "clean": (),
    "3 % loss": (Loss(0.03),),
    "3 % loss, 40 ms jitter": (Loss(0.03), Jitter(0.04)),
    "3 % loss, 40 ms jitter that reorders": (Loss(0.03), Jitter(0.04, keeps_order=False)),
    "5 % loss in bursts of 5": (BurstLoss(0.05),),
    "5 % held for 30 ms, 5 % doubled": (Reorder(0.05), Duplicate(0.05)),
    "200 ppm": (Drift(200.0),),
    "-200 ppm": (Drift(-200.0, LAST_S - BEGIN_S),),
}


@dataclass
class Phase:
    delays_s: list[float] = field(default_factory=list)
    num_unheard: int = 0  # windows of the caller's speech
    latencies_s: list[float] = field(default_factory=list)
    num_missed: int = 0  # turns
    made_up_s: float = 0.0
    agent_s: float = 0.0  # of its speech

    def add(self, other: Phase) -> None:
        self.delays_s += other.delays_s
        self.num_unheard += other.num_unheard
        self.latencies_s += other.latencies_s
        self.num_missed += other.num_missed
        self.made_up_s += other.made_up_s
        self.agent_s += other.agent_s


async def converse(caller: Caller, said: Speech, until_s: float) -> None:
    while time.monotonic() < until_s:
        caller.say(said)
        await caller.until_said()
        await caller.until_audible(caller.record.said[-1].end_s, ANSWER_TIMEOUT_S)
        await caller.until_quiet(QUIET_S, ANSWER_TIMEOUT_S)
    await caller.hang_up()


async def impair(path: CallPath, faults: Sequence[NetworkFault], begun_s: float) -> None:
    await asyncio.sleep(begun_s + BEGIN_S - time.monotonic())
    path.change(faults)
    if not any(isinstance(fault, Drift) for fault in faults):
        await asyncio.sleep(begun_s + END_S - time.monotonic())
        path.change([])


@dataclass(frozen=True)
class Ended:
    record: CallRecord
    begun_s: float
    packets: list[RtpPacket]


async def call(server: Observed, number: int, faults: Sequence[NetworkFault], rng: np.random.Generator) -> Ended:
    """`number`: of the call, as the server counts them."""
    dial = Dial(server.url("webrtc"), "webrtc")
    rate_hz, output_hz = dial.rates_hz
    async with (
        call_path(dial.url, [], rng, is_open=True) as path,
        dial.at(path.url).line(greeting=False) as line,
        asyncio.TaskGroup() as tasks,
    ):
        tap, begun_s = Tap(line), time.monotonic()
        record = CallRecord(number, "impaired", "webrtc", 0, rate_hz, output_hz, begun_s, begun_s)
        impairing = tasks.create_task(impair(path, faults, begun_s))
        caller = Caller(line, record, time.monotonic)
        await caller.run(converse(caller, said_by_callers(rate_hz), begun_s + LAST_S))
        impairing.cancel()
    return Ended(record, begun_s, tap.packets)


def phases_of(ended: Ended, ears: Pcm16, came_s: np.ndarray) -> dict[str, Phase]:
    if ended.record.outcome != "completed":
        print(f"a call was {ended.record.outcome}: {ended.record.reason}")
    phases = {name: Phase() for name in PHASES}
    note_turns(phases, ended.record, ended.begun_s)
    note_delays(phases, ended.record, ended.begun_s, ears, came_s)
    note_made_up(phases, ended)
    return phases


def phase_of(phases: dict[str, Phase], since_begin_s: float) -> Phase | None:
    return next((phases[name] for name, (from_s, to_s) in PHASES.items() if from_s <= since_begin_s < to_s), None)


def note_turns(phases: dict[str, Phase], record: CallRecord, begun_s: float) -> None:
    for said, turn in zip(record.said, turns(record), strict=True):
        phase = phase_of(phases, said.end_s - begun_s)
        if phase is not None and turn.latency_s is None:
            phase.num_missed += 1
        elif phase is not None:
            phase.latencies_s.append(turn.latency_s)


def note_delays(phases: dict[str, Phase], record: CallRecord, begun_s: float, ears: Pcm16, came_s: np.ndarray) -> None:
    said = said_by_callers(record.sample_rate_hz)
    resampler = Resampler(record.sample_rate_hz, EARS_HZ)
    spoken = np.concatenate([resampler.push(said.pcm), resampler.flush()])
    first, last = (round(border * EARS_HZ / record.sample_rate_hz) for border in (said.start, said.end))
    window, hop = round(WINDOW_S * EARS_HZ), round(HOP_S * EARS_HZ)
    per_piece = round(AUDIO_FRAME_S * EARS_HZ)
    num_pieces = -(-spoken.size // per_piece)
    for begin in range(0, len(record.sent), num_pieces):
        left_s = [at_s + AUDIO_FRAME_S for at_s, _ in record.sent[begin : begin + num_pieces]]
        for end in range(first + window, min(last, len(left_s) * per_piece), hop):
            sent_s = left_s[(end - 1) // per_piece]
            phase = phase_of(phases, sent_s - begun_s)
            if phase is None:
                continue
            near, far = np.searchsorted(came_s, [sent_s + EARLIEST_S, sent_s + LATEST_S])
            at, alike = find(spoken[end - window : end], ears[near:far])
            if alike < ALIKE:
                phase.num_unheard += 1
            else:
                phase.delays_s.append(float(came_s[near + at + window - 1]) - sent_s)


def note_made_up(phases: dict[str, Phase], ended: Ended) -> None:
    playing = play(ended.packets, calls.RTC_HZ, FRAME_SAMPLES)
    for heard in track_of(ended.record).audible(ended.begun_s, ended.record.ended_s):
        phase = phase_of(phases, heard.start_s - ended.begun_s)
        if phase is not None:
            borders = (heard.start_s + LISTENING_S, heard.end_s + LISTENING_S)
            first, last = (round((at_s - playing.start_s) / TICK_S) for at_s in borders)
            phase.made_up_s += TICK_S * int(playing.made_up[first:last].sum())
            phase.agent_s += heard.end_s - heard.start_s


def cells(phase: Phase) -> str:
    delay, late = (f"{1000 * percentile(phase.delays_s, p):.0f}" if phase.delays_s else "-" for p in (50, 95))
    latency = f"{1000 * percentile(phase.latencies_s, 50):.0f}" if phase.latencies_s else "-"
    num_windows = phase.num_unheard + len(phase.delays_s)
    return (
        f"{delay} / {late} ms, {phase.num_unheard} of {num_windows} lost; {latency} (n = {len(phase.latencies_s)}, "
        f"{phase.num_missed} missed); {phase.made_up_s / max(phase.agent_s, 0.001):.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5, help="over each path (default: %(default)s)")
    parser.add_argument("--path", nargs="+", default=list(PATHS), choices=list(PATHS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("out/bench-impaired.json"))
    arguments = parser.parse_args()
    found = {name: {phase: Phase() for phase in PHASES} for name in arguments.path}
    underruns = dict.fromkeys(arguments.path, 0.0)
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder, observed_server(Path(folder), num_words=NUM_WORDS) as server:
        for number in range(arguments.calls * len(found)):
            name = arguments.path[number % len(found)]  # in turn: what else the machine does befalls all alike
            before = total(metrics(server.port), "voice_underruns_total")
            ended = asyncio.run(call(server, number, PATHS[name], rng))
            for phase, more in phases_of(ended, *server.ears(number)).items():
                found[name][phase].add(more)
            underruns[name] += total(metrics(server.port), "voice_underruns_total") - before
    print("delay to the ears, median / p95; turn latency, median; made up")
    for name, phases in found.items():
        print(f"{name}: {underruns[name]:.0f} underruns")
        for phase, figures in phases.items():
            print(f"    {phase:6} {cells(figures)}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    figures = {
        name: {"underruns": underruns[name], **{phase: asdict(each) for phase, each in phases.items()}}
        for name, phases in found.items()
    }
    result = {"host": asdict(host()), "commit": commit(), "seed": arguments.seed, "paths": figures}
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
