"""Which server callers call, over which transport: a name, an address, and the rates that the transport has."""

from __future__ import annotations

import argparse
import contextlib
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, get_args

from load.errors import LoadError
from load.key import read_api_key
from load.lines.boundary import Line
from load.lines.pipecat import pipecat_line
from load.lines.realtime import realtime_line
from load.lines.twilio import twilio_line
from load.lines.webrtc import rtc_line
from load.lines.websocket import websocket_line
from load.scenario import Transport
from wire import calls

Rates: TypeAlias = tuple[calls.SampleRate, calls.SampleRate]  # of the caller's audio and of the agent's
RATES: Mapping[Transport, Rates] = {
    "websocket": (16000, 24000),
    "webrtc": (calls.RTC_HZ, calls.RTC_HZ),
    "realtime": (24000, 24000),
    "pipecat": (calls.RTC_HZ, calls.RTC_HZ),
    "twilio": (8000, 8000),
}
SCHEMES: Mapping[Transport, str] = {
    "websocket": "ws", "webrtc": "http", "realtime": "ws", "pipecat": "http", "twilio": "ws",
}  # fmt: skip
DEFAULT_URLS: Mapping[Transport, str] = {
    "websocket": "ws://127.0.0.1:8080/v1/calls",
    "webrtc": "http://127.0.0.1:8080/v1/calls/rtc",
}


@dataclass(frozen=True)
class Dial:
    url: str
    transport: Transport
    key: str | None = None
    language: str = "en"
    agent_voice: str | None = None

    @property
    def rates_hz(self) -> Rates:
        return RATES[self.transport]

    def at(self, url: str) -> Dial:
        """The same server behind another address."""
        return replace(self, url=url)

    @contextlib.asynccontextmanager
    async def line(self, *, greeting: bool) -> AsyncIterator[Line]:
        """Raises: NoCall."""
        rate_hz, output_rate_hz = self.rates_hz
        hello = calls.Hello(1, rate_hz, output_rate_hz, self.language, self.agent_voice, greeting)
        match self.transport:
            case "websocket":
                opening = websocket_line(self.url, hello, self.key)
            case "webrtc":
                opening = rtc_line(self.url, hello, self.key)
            case "realtime":
                opening = realtime_line(self.url, hello, self.key)
            case "pipecat":
                opening = pipecat_line(self.url, hello, self.key)
            case "twilio":
                opening = twilio_line(self.url, {})
        async with opening as line:
            yield line


def add_dial_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--transport", choices=get_args(Transport), default="websocket", help="of the calls (default: %(default)s)"
    )
    parser.add_argument("--url", help="who is called (default: a server of ours on this machine)")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="holds the server's API key (default: none)")
    parser.add_argument("--language", default="en", metavar="CODE", help="the callers' (default: %(default)s)")
    parser.add_argument("--agent-voice", metavar="NAME", help="asked of the server (default: its own choice)")


def dial_of(arguments: argparse.Namespace) -> Dial:
    """Raises: LoadError."""
    transport: Transport = arguments.transport
    url = arguments.url or DEFAULT_URLS.get(transport)
    if url is None:
        raise LoadError(f"--transport {transport} needs --url", "a server of ours has websocket and webrtc")
    try:
        scheme = urllib.parse.urlsplit(url).scheme
    except ValueError as error:
        raise LoadError(f"--url {url}: {error}") from None
    wanted = SCHEMES[transport]
    if scheme not in (wanted, f"{wanted}s"):
        raise LoadError(
            f"--url {url}: calls over {transport} go to an address with {wanted}:// or {wanted}s://",
            f"or choose another --transport: {', '.join(name for name, each in SCHEMES.items() if each == scheme)}"
            if scheme in SCHEMES.values()
            else "",
        )
    return Dial(url, transport, read_api_key(arguments.key_file), arguments.language, arguments.agent_voice)
