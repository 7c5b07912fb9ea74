"""How well the server knows what the caller has heard, on the real wire: `python -m bench.heard`.

A real call server (`bench.observed`) and real callers over both transports, who speak over its answers at random
moments. The caller's listener (`bench.listening`) says what had sounded at the instant at which the server decided; the
server says what it believed. Over the WebSocket the listener acknowledges every 100 ms; over WebRTC the server has
aiortc's receiver reports alone, and what sounded is found by laying the received audio over what the voice said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.ends import Tap, said_by_callers
from bench.listening import Player, Playing, RtpPacket, find, play
from bench.observed import Claim, Observed, observed_server, speech
from load.caller import Caller, Speech
from load.dial import Dial
from load.faults.impairment import Delay
from load.faults.path import call_path
from load.hearing import audible
from load.lines.boundary import Line, Received
from load.record import CallRecord
from load.report.host import commit, host
from load.report.statistics import percentile
from tests.fakes import TTS_RATE_HZ
from voice.media.resample import Resampler
from wire import calls, opus
from wire.pcm import AUDIO_FRAME_S

ACKNOWLEDGE_S = 0.1
ANSWER_TIMEOUT_S = 10.0
WAITS_S = (0.3, 4.0)  # of an answer, before somebody speaks over it
NUM_WORDS = 70  # of an answer: 8.4 s
LAID_S, LEAST_S = 0.8, 0.2  # of what was heard last, laid over what was said; the least of it that tells the place
ALIKE = 0.8  # less is another place
FRAME_SAMPLES = round(AUDIO_FRAME_S * calls.RTC_HZ)
GOALS_MS = {"websocket": 40, "webrtc": 80}


@dataclass(frozen=True)
class Interrupted:
    """Seconds by which the server believed that more was heard than was, and what it vouched for."""

    transport: str
    delay_s: float
    off_s: float
    within_s: float


class PlayingLine:
    """A WebSocket's line with a player at its end that acknowledges."""

    counts_samples = False

    def __init__(self, line: Line, player: Player) -> None:
        self._line, self._player = line, player
        self.send_audio, self.send, self.vanish = line.send_audio, line.send, line.vanish

    async def receive(self) -> Received:
        at_s, received = await self._line.receive()
        if isinstance(received, np.ndarray):
            self._player.hear(received.size, at_s)
        elif isinstance(received, calls.Clear | calls.Rewind):
            self._player.clear(received.sample, at_s)
        return at_s, received

    async def acknowledge(self) -> None:
        told = 0
        while True:
            await asyncio.sleep(ACKNOWLEDGE_S)
            if (played := self._player.played(time.monotonic())) > told:
                told = played
                await self._line.send(calls.Played(played))


async def interrupt(caller: Caller, said: Speech, times: int, rng: np.random.Generator) -> None:
    caller.say(said)
    await caller.until_said()
    for _ in range(times):
        if not await caller.until_audible(caller.record.said[-1].end_s, ANSWER_TIMEOUT_S):
            break
        await asyncio.sleep(rng.uniform(*WAITS_S))
        caller.say(said, is_barge_in=True)
        await caller.until_said()
    await caller.hang_up()


async def call(
    server: Observed, transport: str, delay_s: float, times: int, rng: np.random.Generator
) -> list[Interrupted]:
    dial = Dial(server.url(transport), transport)
    rate_hz, output_hz = dial.rates_hz
    now = time.monotonic()
    record = CallRecord(0, "interruptions", transport, 0, rate_hz, output_hz, now, now)
    player, tap, first = Player(output_hz), None, len(server.claims)
    async with (
        call_path(dial.url, [Delay(delay_s)] if delay_s else [], rng) as path,
        dial.at(path.url).line(greeting=False) as line,
        asyncio.TaskGroup() as tasks,
    ):
        if transport == "websocket":
            line = PlayingLine(line, player)
            acknowledging = tasks.create_task(line.acknowledge())
        else:
            tap = Tap(line)
        caller = Caller(line, record, time.monotonic, acknowledges=False)
        await caller.run(interrupt(caller, said_by_callers(rate_hz), times, rng))
        if tap is None:
            acknowledging.cancel()
    if record.outcome != "completed":
        print(f"a call was {record.outcome}: {record.reason}")
    truth = Played(tap.packets) if tap is not None else player
    found = []
    for claim, base in interruptions(record, server.claims[first:]):
        sample = truth.sample(claim.at_s, base) if isinstance(truth, Played) else truth.played(claim.at_s)
        if sample is not None:
            off_s = (claim.sample - sample) / output_hz
            found.append(Interrupted(transport, delay_s, off_s, claim.within_s))
    return found


def interruptions(record: CallRecord, claims: list[Claim]) -> list[tuple[Claim, int]]:
    """What the server believed at each barge-in, and the sample at which the answer had begun."""
    found = []
    for said in record.said:
        made = [claim for claim in claims if said.start_s < claim.at_s < said.end_s + 0.5]
        told = [m for at_s, m in record.messages if m["type"] == "clear" and said.start_s < at_s < said.end_s + 1]
        if not said.is_barge_in or not made or not told:
            continue
        words = [m for _, m in record.messages if m["type"] == "words" and m["turn"] == told[0]["turn"]]
        found.append((made[0], words[0]["words"][0]["start_sample"]))
    return found


class Played:
    """What a browser's jitter buffer made of the packets, on the agent's sample clock."""

    def __init__(self, packets: list[RtpPacket]) -> None:
        self._first = packets[0].timestamp
        self._playing: Playing = play(packets, calls.RTC_HZ, FRAME_SAMPLES)
        by_timestamp = {packet.timestamp: packet.payload for packet in packets}
        decoder, parts = opus.Decoder(calls.RTC_HZ), []
        for timestamp in range(self._first, max(by_timestamp) + 1, FRAME_SAMPLES):
            payload = by_timestamp.get(timestamp)
            parts.append(decoder.conceal(FRAME_SAMPLES) if payload is None else decoder.decode(payload))
        self._pcm = np.concatenate(parts)
        resampler = Resampler(TTS_RATE_HZ, calls.RTC_HZ)
        self._said = np.concatenate([resampler.push(speech()), resampler.flush()])

    def sample(self, at_s: float, base: int) -> int | None:
        """None where what sounded cannot be told."""
        end = self._playing.position(at_s) - self._first
        heard = self._pcm[max(0, end - round(LAID_S * calls.RTC_HZ)) : end]
        loud = audible(heard, calls.RTC_HZ)
        if not loud or heard.size - loud[0].start < LEAST_S * calls.RTC_HZ:
            return None
        at, alike = find(heard[loud[0].start :], self._said)
        return base + at + heard.size - loud[0].start if alike > ALIKE else None


async def measure(server: Observed, transport: str, delay_s: float, num_calls: int, times: int, seed: int):
    rng = np.random.default_rng(seed)
    found = [each for _ in range(num_calls) for each in await call(server, transport, delay_s, times, rng)]
    off_ms = [1000 * each.off_s for each in found]
    size_ms = [abs(off) for off in off_ms]
    within = sum(abs(each.off_s) <= each.within_s for each in found)
    vouched = sorted({round(1000 * each.within_s) for each in found})
    print(
        f"{transport:9} {1000 * delay_s:3.0f} ms each way: |error| {percentile(size_ms, 50):5.1f} / "
        f"{percentile(size_ms, 95):5.1f} ms (goal {GOALS_MS[transport]}), error {percentile(off_ms, 50):+.1f} "
        f"({min(off_ms):+.0f} to {max(off_ms):+.0f}); within {vouched} ms: {within} of {len(found)}; "
        f"{num_calls * times - len(found)} not measured",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10, help="of each kind (default: %(default)s)")
    parser.add_argument("--times", type=int, default=4, help="interruptions of each call (default: %(default)s)")
    parser.add_argument("--transport", nargs="+", default=["websocket", "webrtc"])
    parser.add_argument("--delays-ms", type=float, nargs="+", default=[0, 50], help="one way (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("out/bench-heard.json"))
    arguments = parser.parse_args()
    found: list[Interrupted] = []
    with tempfile.TemporaryDirectory() as folder, observed_server(Path(folder), num_words=NUM_WORDS) as server:
        for transport in arguments.transport:
            for delay_ms in arguments.delays_ms:
                found += asyncio.run(
                    measure(server, transport, delay_ms / 1000, arguments.calls, arguments.times, arguments.seed)
                )
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    result = {"host": asdict(host()), "commit": commit(), "seed": arguments.seed}
    arguments.json.write_text(json.dumps({**result, "interruptions": [asdict(each) for each in found]}, indent=1))


if __name__ == "__main__":
    main()
