"""The jitter buffer beside aiortc's on the same packets: `python -m bench.jitter_buffer`.

Recorded speech as Opus packets with FEC, 20 ms each, over a simulated link whose impairment lasts from second 5 to 15
of 30 (a drift lasts to the end, a single loss is packet 500). What each buffer hands out and when, on the simulated
clock; delay is from a packet's sending to its audio being handed out. Then what recognition makes of what arrives: word
error rate over all English clips, aiortc's audio decoded as it does that, without concealment. Prints tables and writes
JSON; the same seeds give the same figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from aiortc import RTCRtpCodecParameters
from aiortc.jitterbuffer import JitterBuffer as StockBuffer
from aiortc.rtp import RtpPacket

from bench.stt_cpu import clips, spelled
from load.alignment import plain, word_error_rate
from load.faults.impairment import BurstLoss, Drift, Duplicate, Impairment, Jitter, Loss, Reorder
from load.faults.link import Link
from load.report.statistics import percentile
from stt.whisper import Whisper, load
from voice.media.jitter import Decode, JitterBuffer, Packet
from voice.media.rtp import RtpAudio
from wire import opus
from wire.pcm import Pcm16
from wire.weights import model_dir

HZ, SIZE, PACKET_S = 48000, 960, 0.02
BEGIN_S, END_S, LAST_S = 5.0, 15.0, 30.0
BACK_S = 5.0  # after the impairment the delay is to be back
OPUS = RTCRtpCodecParameters("audio/opus", HZ, 2, 111)

PATHS: dict[str, Impairment] = {
    "clean": Impairment(),
    "one packet lost": Impairment(),
    "3 % loss": Impairment(loss=Loss(0.03)),
    "3 % loss, 40 ms jitter": Impairment(loss=Loss(0.03), jitter=Jitter(0.04)),
    "3 % loss, 40 ms jitter that reorders": Impairment(loss=Loss(0.03), jitter=Jitter(0.04, keeps_order=False)),
    "5 % loss in bursts of 5": Impairment(burst_loss=BurstLoss(0.05)),
    "5 % held for 30 ms, 5 % doubled": Impairment(reorder=Reorder(0.05), duplicate=Duplicate(0.05)),
    "200 ppm": Impairment(drift=Drift(200.0)),
    "-200 ppm": Impairment(drift=Drift(-200.0)),
}


@dataclass
class Handed:
    """By number of the packet: when it was handed out, and when it was sent."""

    at_s: dict[int, float] = field(default_factory=dict)
    sent_s: list[float] = field(default_factory=list)

    def delays_ms(self, from_s: float, to_s: float) -> list[float]:
        return [1000 * (at - self.sent_s[n]) for n, at in self.at_s.items() if from_s <= self.sent_s[n] < to_s]


def arrivals(name: str, num_packets: int, seed: int) -> list[tuple[float, int]]:
    """Times at which packets arrive, copies too, and their numbers."""
    impaired, clean = Link(PATHS[name], np.random.default_rng(seed)), Link(Impairment(), np.random.default_rng(seed))
    lasts = PATHS[name].drift is not None
    found = []
    for number in range(num_packets):
        sent_s = number * PACKET_S
        link = impaired if lasts or BEGIN_S <= sent_s < END_S else clean
        if name == "one packet lost" and number == round(BEGIN_S / PACKET_S):
            continue
        found += [(leaves_s, number) for leaves_s in link.offer(100, sent_s).leaves_s]
    return sorted(found)


def stock(came: Sequence[tuple[float, int]], sent_s: list[float]) -> Handed:
    buffer, handed = StockBuffer(capacity=16, prefetch=4), Handed(sent_s=sent_s)
    for at_s, number in came:
        packet = RtpPacket(sequence_number=number % 65536, timestamp=number * SIZE)
        packet._data = b"%d" % number  # type: ignore[attr-defined]
        _, frame = buffer.add(packet)
        if frame is not None:
            handed.at_s[int(frame.data)] = at_s
    return handed


def ours(came: Sequence[tuple[float, int]], sent_s: list[float]) -> Handed:
    buffer, handed = JitterBuffer(HZ, lambda _: True), Handed(sent_s=sent_s)

    def take(now: float) -> None:
        for step in buffer.take(now):
            if isinstance(step, Decode):
                handed.at_s[int(step.payload)] = now

    for at_s, number in came:
        while (wake_s := buffer.wake_s()) is not None and wake_s < at_s:
            take(wake_s)
        buffer.insert(Packet(number % 65536, number * SIZE, 1, b"%d" % number, SIZE), at_s)
        take(at_s)
    return handed


def row(name: str, seeds: int) -> dict[str, object]:
    num_packets = round(LAST_S / PACKET_S)
    sent_s = [number * PACKET_S for number in range(num_packets)]
    found: dict[str, object] = {"path": name}
    for who, run in (("aiortc", stock), ("ours", ours)):
        runs = [run(arrivals(name, num_packets, seed), sent_s) for seed in range(seeds)]
        during = [delay for each in runs for delay in each.delays_ms(BEGIN_S, END_S)]
        after = [delay for each in runs for delay in each.delays_ms(END_S + BACK_S, LAST_S - 1)]
        came = sum(len({n for _, n in arrivals(name, num_packets - 50, seed)}) for seed in range(seeds))
        given = sum(len([n for n in each.at_s if n < num_packets - 50]) for each in runs)
        found[who] = {
            "during_median_ms": percentile(during, 50),
            "during_p95_ms": percentile(during, 95),
            "after_p95_ms": percentile(after, 95),
            "thrown_away": came - given,
            "num_packets": came,
        }
    return found


def encoded(pcm: Pcm16) -> list[bytes]:
    encoder = opus.Encoder(16000)
    return [encoder.encode(pcm[at : at + 320]) for at in range(0, pcm.size - 319, 320)]


def heard_by_aiortc(packets: Sequence[bytes], came: Sequence[tuple[float, int]]) -> Pcm16:
    handed = stock(came, [])
    decoder = opus.Decoder(16000)
    order = sorted(handed.at_s, key=lambda n: (handed.at_s[n], n))
    return np.concatenate([decoder.decode(packets[n]) for n in order])


def heard_by_us(packets: Sequence[bytes], came: Sequence[tuple[float, int]]) -> Pcm16:
    audio, parts = RtpAudio(16000, {111: OPUS}), []
    for at_s, number in came:
        while (wake_s := audio.wake_s()) is not None and wake_s < at_s:
            parts.append(audio.take(wake_s))
        parts.append(audio.push(Packet(number, number * SIZE, 1, packets[number], SIZE), 111, at_s))
    return np.concatenate(parts)


def errors(whisper: Whisper, name: str, seeds: int, hear: Callable[..., Pcm16]) -> float:
    """Word error rate; every clip is impaired from its first to its last packet."""
    wrong, num_words = 0.0, 0
    for _, pcm, text in clips():
        quiet = np.zeros(16000, np.int16)
        packets = encoded(np.concatenate([quiet, pcm, quiet]))
        for seed in range(seeds):
            link = Link(PATHS[name], np.random.default_rng(seed))
            came = sorted((at, n) for n in range(len(packets)) for at in link.offer(100, n * PACKET_S).leaves_s)
            transcript = whisper.transcribe(hear(packets, came), "en")
            reference = spelled(text)
            wrong += word_error_rate(reference, spelled(transcript.text)) * len(plain(reference))
            num_words += len(plain(reference))
    return wrong / num_words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each path (default: %(default)s)")
    parser.add_argument("--model", default="whisper-tiny.en", help="that recognises (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=Path("out/bench-jitter-buffer.json"))
    arguments = parser.parse_args()

    rows = [row(name, arguments.seeds) for name in PATHS]
    heading = ("during, median", "p95", "5 s after, p95", "thrown away")
    print(f"| {'path':38} | " + " | ".join(f"{who}: {h}" for who in ("aiortc", "ours") for h in heading) + " |")
    for each in rows:
        cells = []
        for who in ("aiortc", "ours"):
            figures = each[who]
            assert isinstance(figures, dict)
            cells += [f"{figures[key]:.0f}" for key in ("during_median_ms", "during_p95_ms", "after_p95_ms")]
            cells.append(f"{figures['thrown_away']} of {figures['num_packets']}")
        print(f"| {each['path']:38} | " + " | ".join(cells) + " |")

    whisper = load(model_dir(arguments.model))
    rates = {
        name: {
            who: errors(whisper, name, 1 if name == "clean" else arguments.seeds, hear)
            for who, hear in (("aiortc", heard_by_aiortc), ("ours", heard_by_us))
        }
        for name in PATHS
        if "ppm" not in name and "one" not in name
    }
    print("word error rate:")
    for name, rate in rates.items():
        print(f"| {name:38} | {rate['aiortc']:.1%} | {rate['ours']:.1%} |")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"delays": rows, "word_error_rates": rates}, indent=1) + "\n")


if __name__ == "__main__":
    main()
