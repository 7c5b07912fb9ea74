"""Request load on the voice alone, `WS /v1/speak`: when its speech is first audible, and whether it ever runs dry.

Requests arrive as a Poisson process whatever became of those before. Each has a connection of its own, opened ahead of
its time as the call server's is; where that was not ready in time, the wait counts. Times are those of the text's
scheduled moment. The whole text comes at once: what is measured is the voice, not how an LLM would feed it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from load import arrivals
from load.errors import LoadError
from load.hearing import audible
from load.key import read_api_key
from load.lines.boundary import CONNECT_TIMEOUT_S, is_here
from load.record import Placed
from load.replay.player import underruns_s
from load.replay.replies import REPLIES
from load.report.document import Plan, RequestOutcome, RequestRecord
from load.report.recording import Recording, add_result_flags, conclude, head_of, recording
from wire import speak
from wire.errors import Overloaded, PeerError
from wire.messages import PROTOCOL_VERSION, decode, encode
from wire.pcm import unpack_utterance

OPEN_AHEAD_S = 1.0  # before a request its connection is opened: a call has it before it needs it
MAX_IN_FLIGHT = 512  # connections; beyond, a request fails unsent and is counted
UTTERANCE = 1
_KINDS: tuple[type[speak.ServerMessage], ...] = speak.SERVER_MESSAGES


@dataclass(frozen=True)
class SpeakTarget:
    url: str
    voice: str | None = None
    timeout_s: float = 30.0
    key: str | None = None


class _Refused(Exception):
    def __init__(self, reason: str, retry_after_s: float | None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


@dataclass
class Utterance:
    """What came of one text. Times are of the run's clock."""

    rate_hz: int = 0
    audio: list[Placed] = field(default_factory=list)
    done: speak.Done | None = None

    def figures(self, scheduled_s: float) -> dict[str, float]:
        """Times from the scheduled moment; `rtf` is the whole wait by the length of the audio, at the client."""
        if self.done is None or not self.audio:
            return {}
        pcm = np.concatenate([packet for _, packet in self.audio])
        audio_s = pcm.size / self.rate_hz
        dry_s = underruns_s(self.audio, self.rate_hz)
        found = {"first_packet_s": self.audio[0][0] - scheduled_s}
        if spans := audible(pcm, self.rate_hz):
            found["ttfa_s"] = self._arrived_s(spans[0].start) - scheduled_s
        found |= {
            "rtf": (self.audio[-1][0] - scheduled_s) / audio_s,
            "server_rtf": self.done.compute_ms / 1000 / audio_s,
            "audio_s": audio_s,
            "num_underruns": float(len(dry_s)),
            "underrun_s": sum(dry_s),
        }
        return found | ({} if self.done.ttfa_ms is None else {"server_ttfa_s": self.done.ttfa_ms / 1000})

    def _arrived_s(self, sample: int) -> float:
        """When the packet that holds `sample` came."""
        until = 0
        for arrived_s, packet in self.audio:
            until += packet.size
            if sample < until:
                return arrived_s
        raise AssertionError(f"sample {sample} of {until}")


async def offer(target: SpeakTarget, times_s: Sequence[float], texts: Sequence[str], found: Recording) -> None:
    """Until the last request has ended."""
    assert len(times_s) == len(texts)
    async with asyncio.TaskGroup() as tasks:
        for number, (at_s, text) in enumerate(zip(times_s, texts, strict=True)):
            await asyncio.sleep(max(0.0, at_s - OPEN_AHEAD_S - found.now()))
            if found.tally.num_running >= MAX_IN_FLIGHT:
                reason = f"not sent: {MAX_IN_FLIGHT} requests were in flight"
                now = found.now()
                found.tally.ended["failed"] += 1
                found.writer.add_request(RequestRecord(number, number, at_s, now, now, "failed", reason), now)
                continue
            found.tally.begin()
            tasks.create_task(_one(target, number, at_s, text, found))


async def _one(target: SpeakTarget, number: int, at_s: float, text: str, found: Recording) -> None:
    utterance = Utterance()
    outcome: RequestOutcome = "failed"
    reason, retry_after_s = "", None
    try:
        async with asyncio.timeout(OPEN_AHEAD_S + target.timeout_s):
            late_s = await _say(target, at_s, text, utterance, found.now)
        found.late_s += [late_s] if late_s is not None else []
        outcome = "completed" if utterance.audio else "failed"
        reason = "" if utterance.audio else "no audio came"
    except _Refused as refusal:
        outcome, reason, retry_after_s = "refused", str(refusal), refusal.retry_after_s
    except TimeoutError:
        reason = f"no end within {target.timeout_s:g} s"
    except InvalidURI:
        reason = "this is no address; it looks like ws://127.0.0.1:8102/v1/speak"
    except ConnectionClosed as closed:
        why = closed.rcvd
        outcome = "refused" if why is not None and why.code == Overloaded.close_code else "failed"
        reason = f"closed with {why.code} {why.reason}".strip() if why is not None else "the connection was lost"
    except (OSError, InvalidHandshake, PeerError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    now = found.now()
    figures = utterance.figures(at_s) if outcome == "completed" else {}
    found.tally.end(outcome)
    for name in ("ttfa_s", "rtf"):
        if name in figures:
            found.tally.observe(name, figures[name])
    record = RequestRecord(number, number, at_s, at_s, now, outcome, reason, retry_after_s, figures)
    found.writer.add_request(record, now)


async def _say(
    target: SpeakTarget, at_s: float, text: str, utterance: Utterance, now: Callable[[], float]
) -> float | None:
    """How late the text left, None where the server was not ready for it: that is no fault of the generator."""
    async with connect(
        target.url,
        additional_headers={"Authorization": f"Bearer {target.key}"} if target.key is not None else {},
        proxy=None if is_here(target.url) else True,
        compression=None,
        max_size=None,
        open_timeout=CONNECT_TIMEOUT_S,
        close_timeout=1.0,
    ) as connection:
        with contextlib.suppress(ConnectionClosed):  # one that refuses may have closed by now, and its reason is unread
            await connection.send(encode(speak.Hello(PROTOCOL_VERSION, target.voice)))
        ready = await _receive(connection)
        if not isinstance(ready, speak.Ready):
            raise PeerError("the first message is not ready")
        utterance.rate_hz = ready.sample_rate_hz
        early_s = at_s - now()
        await asyncio.sleep(max(0.0, early_s))
        late_s = now() - at_s if early_s > 0 else None
        for message in (speak.Text(UTTERANCE, text), speak.Flush(UTTERANCE), speak.End(UTTERANCE)):
            await connection.send(encode(message))
        while utterance.done is None:
            received = await _receive(connection)
            if isinstance(received, bytes):
                utterance.audio.append((now(), unpack_utterance(received)[1]))
            elif isinstance(received, speak.Done):
                utterance.done = received
    return late_s


async def _receive(connection: ClientConnection) -> bytes | speak.ServerMessage:
    """Raises: _Refused, PeerError, ConnectionClosed."""
    data = await connection.recv()
    if isinstance(data, bytes):
        return data
    message = decode(data, _KINDS)
    if isinstance(message, speak.Error):
        if message.code == Overloaded.code:
            after_ms = message.retry_after_ms
            raise _Refused(message.message, None if after_ms is None else after_ms / 1000)
        raise PeerError(message.message, code=message.code)
    return message


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default="ws://127.0.0.1:8102/v1/speak", help="(default: %(default)s)")
    parser.add_argument("--voice", help="(default: the server's first)")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="holds the API key (default: none)")
    parser.add_argument(
        "--rate", type=float, default=0.5, metavar="HZ", help="requests a second (default: %(default)s)"
    )
    parser.add_argument("--duration", type=float, default=60.0, metavar="S", help="of the load (default: %(default)s)")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="what to say, a line each (default: built in)")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="S", help="of one text (default: %(default)s)")
    add_result_flags(parser, "speak")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    return asyncio.run(_run(arguments, console))


async def _run(arguments: argparse.Namespace, console: Console) -> int:
    times_s = _times(arguments)
    lines = _lines(arguments.texts)
    picks = np.random.default_rng(arguments.seed).integers(len(lines), size=len(times_s))
    target = SpeakTarget(arguments.url, arguments.voice, arguments.timeout, read_api_key(arguments.key_file))
    await _reach(target)
    head = head_of(
        arguments,
        "speak",
        target=target.url,
        scenario=arguments.texts.name if arguments.texts is not None else "replies",
        transport="websocket",
        plan=Plan("poisson", {"rate_hz": arguments.rate, "duration_s": arguments.duration}, len(times_s)),
    )
    with recording(arguments.json, head, "requests", shares_cores=is_here(target.url)) as found:
        await offer(target, times_s, [lines[i] for i in picks], found)
    return conclude(found, arguments, console)


async def _reach(target: SpeakTarget) -> None:
    """One short text before the run: an unreachable server is one line, not a run of failures. Raises: LoadError."""
    try:
        async with asyncio.timeout(target.timeout_s):
            await _say(target, 0.0, "Hello.", Utterance(), time.monotonic)
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, ConnectionClosed, PeerError, _Refused) as error:
        problem = getattr(error, "strerror", None) or str(error) or "no answer"
        raise LoadError(f"no voice at {target.url}: {problem}", "start one: offhook up") from None


def _times(arguments: argparse.Namespace) -> list[float]:
    for name in ("rate", "duration", "timeout"):
        if not 0 < getattr(arguments, name) < float("inf"):
            raise LoadError(f"--{name} must be above 0, got {getattr(arguments, name)}")
    times_s = [OPEN_AHEAD_S + at_s for at_s in arrivals.poisson(arguments.rate, arguments.duration, arguments.seed)]
    if not times_s:
        raise LoadError("not one request in that time", "raise --rate or --duration")
    return times_s


def _lines(path: Path | None) -> Sequence[str]:
    if path is None:
        return REPLIES
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"{path}: cannot read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    if not lines:
        raise LoadError(f"{path}: has no text")
    return lines
