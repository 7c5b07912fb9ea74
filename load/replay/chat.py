"""Replays a trace of chat requests against the router or any server that speaks OpenAI's API, open loop.

Each request leaves at its time whatever became of those before, and its latency counts from that time. A caller who
barges in closes the connection after the trace's number of tokens, as the call server does. Answers in the prompts are
text of the trace, not what this server said: the load is the same for every server, and what a server could reuse of
its own answers is not in the figures (`cached_tokens` is a lower bound by that much).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from rich.console import Console

from load.errors import LoadError
from load.http_errors import MAX_REASON, retry_after_s, stated_reason
from load.key import read_api_key
from load.lines.boundary import is_here
from load.replay.answer import Answer
from load.replay.words import PROBES, Calibration, fit, messages, probe
from load.report.document import Plan, RequestOutcome, RequestRecord
from load.report.recording import Recording, add_result_flags, conclude, head_of, recording
from load.traces.files import read_trace
from load.traces.trace import Trace, TraceRequest, faster, first, within
from wire import sse
from wire.errors import PeerError
from wire.request import RequestContext

PATH = "/v1/chat/completions"
MAX_IN_FLIGHT = 1024  # beyond, a request fails unsent and is counted: sockets are not without end
PROBE_TIMEOUT_S = 60.0  # a cold server may load weights


@dataclass(frozen=True)
class ChatTarget:
    """`ignore_eos` asks for the trace's answer length; vLLM, SGLang and our worker know it, OpenAI refuses it."""

    url: str  # of the server, without path
    model: str
    timeout_s: float = 60.0
    key: str | None = None
    ignore_eos: bool = True

    @property
    def endpoint(self) -> str:
        return self.url.rstrip("/").removesuffix("/v1") + PATH

    def body(self, wanted: list[dict[str, str]], max_tokens: int) -> bytes:
        asked: dict[str, object] = {
            "model": self.model,
            "messages": wanted,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return json.dumps(asked | ({"ignore_eos": True} if self.ignore_eos else {})).encode()

    def headers(self, session: int) -> dict[str, str]:
        found = {"content-type": "application/json"}
        if self.key is not None:
            found["authorization"] = f"Bearer {self.key}"
        return found | (RequestContext(call=f"trace-{session}").headers(0.0) if session >= 0 else {})


@dataclass(frozen=True)
class _Asked:
    body: bytes
    headers: Mapping[str, str]
    timeout_s: float
    abort_after_tokens: int | None = None


@dataclass
class _Got:
    """What came of a request, as far as it came."""

    answer: Answer = field(default_factory=Answer)
    outcome: RequestOutcome = "failed"
    reason: str = ""
    retry_after_s: float | None = None


def open_http(target: ChatTarget) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    timeout = aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=not is_here(target.url))


async def calibrate(http: aiohttp.ClientSession, target: ChatTarget, seed: int) -> Calibration:
    """Three requests of one token each. Raises: LoadError when the server does not answer them."""
    counts = []
    for lengths in PROBES:
        body = target.body(probe(lengths, seed), 1)
        asked = _Asked(body, target.headers(-1), PROBE_TIMEOUT_S)
        got = await _ask(http, target, asked, time.monotonic)
        if not got.answer.is_over:
            raise LoadError(f"{target.endpoint}: {got.reason}", "give the server with --url and its model with --model")
        counts.append((got.answer.usage or {}).get("prompt_tokens"))
    known = [count for count in counts if isinstance(count, int)]
    return fit(known) if len(known) == len(counts) else Calibration()


async def replay(
    http: aiohttp.ClientSession, target: ChatTarget, trace: Trace, calibration: Calibration, seed: int, found: Recording
) -> None:
    """Until the last request has ended. Cancelling aborts what is in flight."""
    async with asyncio.TaskGroup() as tasks:
        for number, request in enumerate(trace.requests):
            wanted = messages(request.parts, calibration, seed)
            body = target.body(wanted, request.output_tokens)
            await asyncio.sleep(max(0.0, request.at_s - found.now()))
            if found.tally.num_running >= MAX_IN_FLIGHT:
                now = found.now()
                reason = f"not sent: {MAX_IN_FLIGHT} requests were in flight"
                record = RequestRecord(number, _session(number, request), request.at_s, now, now, "failed", reason)
                found.tally.ended["failed"] += 1
                found.writer.add_request(record, now)
                continue
            found.tally.begin()
            tasks.create_task(_one(http, target, number, request, body, found))


async def _one(
    http: aiohttp.ClientSession, target: ChatTarget, number: int, request: TraceRequest, body: bytes, found: Recording
) -> None:
    sent_s = found.now()
    found.late_s.append(sent_s - request.at_s)
    asked = _Asked(body, target.headers(request.session), target.timeout_s, request.abort_after_tokens)
    got = await _ask(http, target, asked, found.now)
    ended_s = found.now()
    figures = got.answer.figures(request.at_s, sent_s, request.input_tokens, is_whole=got.outcome == "completed")
    found.tally.end(got.outcome)
    if got.outcome in ("completed", "aborted"):
        for name in ("ttft_s", "tpot_s"):
            if name in figures:
                found.tally.observe(name, figures[name])
    found.writer.add_request(
        RequestRecord(
            number=number,
            session=_session(number, request),
            scheduled_s=request.at_s,
            sent_s=sent_s,
            ended_s=ended_s,
            outcome=got.outcome,
            reason=got.reason,
            retry_after_s=got.retry_after_s,
            figures=figures,
        ),
        ended_s,
    )


def _session(number: int, request: TraceRequest) -> int:
    """A request that belongs to none is one of its own."""
    return request.session if request.session >= 0 else number


async def _ask(http: aiohttp.ClientSession, target: ChatTarget, asked: _Asked, now: Callable[[], float]) -> _Got:
    """Whatever the server does ends here."""
    got = _Got()
    try:
        async with (
            asyncio.timeout(asked.timeout_s),
            http.post(target.endpoint, data=asked.body, headers=asked.headers) as response,
        ):
            if response.status == 200:
                await _read(response, asked.abort_after_tokens, got, now)
            else:
                got.outcome = "refused" if response.status == 429 else "failed"
                got.reason = f"HTTP {response.status}: {await _message(response)}"
                got.retry_after_s = retry_after_s(response.headers.get("retry-after"))
    except TimeoutError:
        got.reason = f"no end within {asked.timeout_s:g} s"
    except aiohttp.InvalidURL:
        got.reason = "this is no address; it looks like http://127.0.0.1:8103"
    except (aiohttp.ClientError, OSError, PeerError) as error:
        got.reason = (str(error) or type(error).__name__)[:MAX_REASON]
    return got


async def _read(
    response: aiohttp.ClientResponse, abort_after_tokens: int | None, got: _Got, now: Callable[[], float]
) -> None:
    """Raises: PeerError."""
    answer, decoder = got.answer, sse.Decoder()
    async for chunk in response.content.iter_any():
        for event in decoder.feed(chunk):
            answer.take(event, now())
            if abort_after_tokens is not None and answer.num_chunks >= abort_after_tokens:
                response.close()
                got.outcome = "aborted"
                return
        if answer.is_over:
            break
    if answer.is_over and answer.first_s is not None:
        got.outcome = "completed"
    else:
        got.reason = "the answer is empty" if answer.is_over else "the stream broke off"


async def _message(response: aiohttp.ClientResponse) -> str:
    raw = (await response.content.read(4096)).decode(errors="replace")
    return stated_reason(raw) or raw.strip()[:MAX_REASON] or str(response.reason)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", type=Path, help="a trace of Mooncake's, Azure's or ours (offhook load trace)")
    parser.add_argument("--url", default="http://127.0.0.1:8103", help="the server (default: %(default)s)")
    parser.add_argument("--model", required=True, help="the model to ask for")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="holds the API key (default: none)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="times as fast (default: %(default)s)")
    parser.add_argument("--requests", type=int, metavar="N", help="the first of the trace (default: all)")
    parser.add_argument("--duration", type=float, metavar="S", help="the first seconds of the trace (default: all)")
    parser.add_argument(
        "--max-input-tokens", type=int, metavar="N", help="cut longer prompts to it (default: send them whole)"
    )
    parser.add_argument("--max-output-tokens", type=int, metavar="N", help="ask for no more (default: the trace's)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="of one answer (default: %(default)s)")
    parser.add_argument(
        "--ignore-eos",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="ask for answers as long as the trace's, for servers that know how (default: %(default)s)",
    )
    add_result_flags(parser, "chat")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    return asyncio.run(_run(arguments, console))


async def _run(arguments: argparse.Namespace, console: Console) -> int:
    trace, notes = _chosen(arguments)
    target = ChatTarget(
        arguments.url, arguments.model, arguments.timeout, read_api_key(arguments.key_file), arguments.ignore_eos
    )
    async with open_http(target) as http:
        calibration = await calibrate(http, target, arguments.seed)
        parameters = {"speed": arguments.speed, "duration_s": trace.duration_s}
        parameters |= {
            name: float(value)
            for name in ("max_input_tokens", "max_output_tokens")
            if (value := getattr(arguments, name)) is not None
        }
        head = head_of(
            arguments,
            "chat",
            target=target.endpoint,
            scenario=Path(arguments.trace).name,
            transport="http",
            plan=Plan("trace", parameters, len(trace.requests)),
            notes=(str(calibration), *notes),
        )
        with recording(arguments.json, head, "requests", shares_cores=is_here(target.url)) as found:
            await replay(http, target, trace, calibration, arguments.seed, found)
    return conclude(found, arguments, console)


def _chosen(arguments: argparse.Namespace) -> tuple[Trace, list[str]]:
    """The part of the trace that is asked for, and what was done to it. Raises: LoadError."""
    for name in ("speed", "requests", "duration", "max_input_tokens", "max_output_tokens", "timeout"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < float("inf"):
            raise LoadError(f"--{name.replace('_', '-')} must be above 0, got {value}")
    trace = faster(first(read_trace(arguments.trace), arguments.requests, arguments.duration), arguments.speed)
    longest = max(request.input_tokens for request in trace.requests)
    cut, num_cut = within(trace, arguments.max_input_tokens or longest, arguments.max_output_tokens)
    return cut, [f"{num_cut} of {len(cut.requests)} requests were shortened"] if num_cut else []
