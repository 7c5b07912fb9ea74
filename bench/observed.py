"""A call server that tells what it knows, for benches: `python -m bench.observed`, started by `observed_server`.

It is the real one, on stubbed services in a process of their own, which answer as the real ones were timed
(`bench.media`) and speak recorded speech. Two of its parts are watched: what the playout says was heard at every clear
and rewind goes to standard output as a line of JSON, and what the ears get goes to a file for each call. All processes
of a machine share one monotonic clock, so their times can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import uvloop
from fastapi import WebSocket

import voice.call
from bench.media import FINAL_S, FIRST_AUDIO_S, FIRST_TOKEN_S, TOKEN_S
from load.hearing import audible
from tests.fakes import SECONDS_PER_WORD, TTS_RATE_HZ, FakeLlm, FakeStt, FakeTts
from tests.serving import free_ports, serving
from tests.speech import clip_paths, read
from voice.config import AgentConfig, VoiceConfig
from voice.ears import Ears
from voice.endpointing import Decision
from voice.playout import Playout
from voice.server import build, load
from wire import speak
from wire.config import EdgeConfig
from wire.pcm import Pcm16, pack_utterance
from wire.service import Lifecycle
from wire.sockets import Socket

RTF = 0.14  # of the voice: docs/measurements.md
HEAD = struct.Struct("<dI")  # of what the ears get at once: when, and how many samples
START_TIMEOUT_S = 60.0
LANGUAGES = ("es", "fr", "it", "pt", "zh")  # of what the voice says, one after another; callers speak English


@dataclass(frozen=True)
class Claim:
    """What the playout says was heard when it is cleared or taken back. Samples from the start of the call."""

    at_s: float
    sample: int
    within_s: float
    sent: int


@dataclass
class Observed:
    """A running server: `claims` come as they are made, `ears` are those of call after call."""

    port: int
    folder: Path
    claims: list[Claim] = field(default_factory=list)

    def url(self, transport: str) -> str:
        if transport == "websocket":
            return f"ws://127.0.0.1:{self.port}/v1/calls"
        return f"http://127.0.0.1:{self.port}/v1/calls/rtc"

    def ears(self, number: int) -> tuple[Pcm16, np.ndarray]:
        """All that the ears of a call got, and of each sample when."""
        data, parts, times, at = (self.folder / f"{number}.ears").read_bytes(), [], [], 0
        while at < len(data):
            at_s, size = HEAD.unpack_from(data, at)
            at += HEAD.size
            parts.append(np.frombuffer(data, np.int16, size, at))
            times.append(np.full(size, at_s))
            at += 2 * size
        return np.concatenate(parts), np.concatenate(times)


@contextlib.contextmanager
def observed_server(folder: Path, *, num_words: int, max_calls: int = 4) -> Iterator[Observed]:
    """`num_words`: of each answer, of `SECONDS_PER_WORD` each."""
    command = [sys.executable, "-m", "bench.observed"]
    services = subprocess.Popen(
        [*command, "services", str(num_words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    server = None
    try:
        urls = json.loads(services.stdout.readline())
        [port] = free_ports(1)
        server = subprocess.Popen(
            [*command, "server", str(port), str(max_calls), str(folder), *urls],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout.readline().strip() == "ready"
        found = Observed(port, folder)
        reading = threading.Thread(target=_read, args=(server, found.claims))
        reading.start()
        yield found
    finally:
        for process in (server, services):
            if process is not None:
                process.stdin.close()
                process.wait(START_TIMEOUT_S)


def speech(rate_hz: int = TTS_RATE_HZ) -> Pcm16:
    """What every answer consists of, from its first word on."""
    pcm = np.concatenate([read(path, rate_hz) for language in LANGUAGES for path in clip_paths(language)])
    return pcm[audible(pcm, rate_hz)[0].start :]


def _read(server: subprocess.Popen[str], claims: list[Claim]) -> None:
    for line in server.stdout:
        claims.append(Claim(**json.loads(line)))  # noqa: PERF401 - they are read meanwhile


class SpeakingTts(FakeTts):
    """Texts by connection: calls number their utterances alike."""

    def __init__(self) -> None:
        super().__init__()
        self._speech = speech()

    async def _speak(self, websocket: WebSocket) -> None:
        await _OneVoice(self._speech)._speak(websocket)


class _OneVoice(FakeTts):
    def __init__(self, pcm: Pcm16) -> None:
        super().__init__()
        self._pcm = pcm

    async def _say(
        self, peer: Socket[speak.ClientMessage], utterance: int, chars: int, samples: int
    ) -> tuple[int, int]:
        text, per_word = self.texts[utterance], round(SECONDS_PER_WORD * TTS_RATE_HZ)
        await asyncio.sleep(FIRST_AUDIO_S)
        for word in text[chars:].split():
            start_char = text.index(word, chars)
            chars = start_char + len(word)
            timed = speak.Word(word, samples, samples + per_word, start_char, chars)
            await peer.send(speak.Words(utterance, (timed,)))
            await peer.send(pack_utterance(utterance, self._pcm[samples : samples + per_word]))
            samples += per_word
            await asyncio.sleep(RTF * SECONDS_PER_WORD)
        return len(text), samples


async def _services(num_words: int) -> None:
    """Until stdin ends; tells their addresses."""
    words = [f"w{'o' * (n % 20 + 1)}rd" for n in range(num_words)]  # none that is said as two
    reply = " ".join(f"{word}," if n % 8 == 7 else word for n, word in enumerate(words)) + "."
    fakes = (
        FakeStt(final_delay_s=FINAL_S, texts=["When are you open?"]),
        SpeakingTts(),
        FakeLlm(replies=[reply], first_token_s=FIRST_TOKEN_S, token_s=TOKEN_S),
    )
    async with contextlib.AsyncExitStack() as stack:
        edge = EdgeConfig(port=0)
        urls = [await stack.enter_async_context(serving(fake.app(), Lifecycle("fake"), edge)) for fake in fakes]
        print(json.dumps(urls), flush=True)
        await asyncio.to_thread(sys.stdin.read)


class ObservedPlayout(Playout):
    def clear(self, now: float) -> int:
        self._tell(now)
        return super().clear(now)

    def take_back(self, now: float) -> int:
        self._tell(now)
        return super().take_back(now)

    def _tell(self, now: float) -> None:
        heard = self.heard_up_to(now)
        claim = {"at_s": now, "sample": heard.sample, "within_s": heard.within_s, "sent": self.sent}
        print(json.dumps(claim), flush=True)


class ObservedEars(Ears):
    folder: Path
    num_calls = 0

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self._file = (self.folder / f"{ObservedEars.num_calls}.ears").open("wb", buffering=0)
        ObservedEars.num_calls += 1

    async def hear(self, pcm: Pcm16, now: float) -> AsyncIterator[Decision]:
        self._file.write(HEAD.pack(now, pcm.size) + pcm.tobytes())
        async for decision in super().hear(pcm, now):
            yield decision


async def _serve(port: int, max_calls: int, folder: Path, urls: list[str]) -> None:
    """Until stdin ends."""
    ObservedEars.folder = folder
    voice.call.Playout, voice.call.Ears = ObservedPlayout, ObservedEars  # type: ignore[attr-defined]
    lifecycle, edge = Lifecycle("voice"), EdgeConfig(port=port)
    config = VoiceConfig(edge, *urls, llm_model="timed", max_calls=max_calls, agent=AgentConfig(greeting=""))
    async with serving(build(load(config, lifecycle), lifecycle), lifecycle, edge):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("services").add_argument("num_words", type=int)
    server = roles.add_parser("server")
    server.add_argument("port", type=int)
    server.add_argument("max_calls", type=int)
    server.add_argument("folder", type=Path)
    server.add_argument("urls", nargs=3)
    arguments = parser.parse_args()
    if arguments.role == "services":
        asyncio.run(_services(arguments.num_words))
    else:
        uvloop.run(_serve(arguments.port, arguments.max_calls, arguments.folder, arguments.urls))  # as `voice` does


if __name__ == "__main__":
    main()
