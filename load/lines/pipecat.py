"""The caller's end of a call to a Pipecat agent over WebRTC, by the signalling of its SmallWebRTCTransport.

    POST /api/offer  {"sdp", "type": "offer"} -> {"sdp", "type": "answer", "pc_id"}

Both sides gather all their candidates first, so none are sent behind (`PATCH /api/offer`), and no video is offered, so
the agent never asks to renegotiate. On the data channel we say that we are ready once, and "ping" every second: an
agent that has been pinged stops speaking to a caller from whom no ping has come for 3 s. What it says there is RTVI,
see `load.lines.rtvi`; other messages are the application's own and are ignored. An agent has no silence to send before
its pipeline runs, and may be configured to send none at all, so one that vanishes without a word is noticed by ICE
alone, after half a minute.

The protocol has no place for language, voice or greeting of a hello: they are the agent's own.
(Pipecat 1.14.0, transports/smallwebrtc; its client, @pipecat-ai/small-webrtc-transport, does the same.)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

from load.lines.boundary import Line, NoCall, is_here
from load.lines.offers import post_offer, refusal
from load.lines.rtc_peer import RtcPeer
from load.lines.rtvi import LABEL, VERSION, Rtvi
from wire import calls
from wire.errors import PeerError
from wire.ice import use_addresses
from wire.messages import read_json_object

PATH = "/api/offer"
PING_S = 1.0  # as its own client does
SIGNALLING = "signalling"


class PipecatLine(RtcPeer):
    """Ready is when the agent says that it is, or sends its first packet."""

    def __init__(self) -> None:
        super().__init__("chat", dead_s=None)
        self.call = ""
        self._rtvi = Rtvi()
        self._is_ready = False
        self._channel.on("open", self._on_open)

    async def send(self, message: calls.ClientMessage) -> None:
        """Hanging up is all that the agent can be told: the connection is closed."""
        if isinstance(message, calls.Hangup):
            self._tell(calls.Bye("hangup"))
            await self.aclose()

    async def ping(self) -> None:
        """Until cancelled, or the data channel is closed."""
        while self._channel.readyState in ("connecting", "open"):
            if self._channel.readyState == "open":
                self._channel.send(f"ping: {round(1000 * time.time())}")
            await asyncio.sleep(PING_S)

    def _on_open(self) -> None:
        about = {"version": VERSION, "about": {"library": "offhook"}}
        ready = {"label": LABEL, "type": "client-ready", "id": secrets.token_hex(4), "data": about}
        self._channel.send(json.dumps(ready))

    def _on_first_packet(self) -> None:
        super()._on_first_packet()
        self._be_ready()

    def _be_ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._tell(calls.Ready(1, self.call, calls.RTC_HZ, calls.RTC_HZ, "", 0))

    def _read(self, data: str) -> None:
        message = read_json_object(data)
        kind, payload = message.get("type"), message.get("data")
        if kind == SIGNALLING:
            self._signal(message.get("message"))
        elif message.get("label") != LABEL or not isinstance(kind, str):
            return
        elif kind == "bot-ready":
            self._be_ready()
        else:
            for told in self._rtvi.take(kind, payload if isinstance(payload, dict) else {}):
                self._tell(told)

    def _signal(self, message: Any) -> None:
        kind = message.get("type") if isinstance(message, dict) else None
        if kind == "peerLeft":
            self._end("the agent left the call")


@contextlib.asynccontextmanager
async def pipecat_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Both rates of `hello` must be `calls.RTC_HZ`. Raises: NoCall."""
    assert hello.sample_rate_hz == hello.output_sample_rate_hz == calls.RTC_HZ
    use_addresses(("127.0.0.1",) if is_here(url) else ())
    async with contextlib.aclosing(PipecatLine()) as line:
        sdp, line.call = await _offer(url, await line.offer(), key)
        async with line.answered(sdp, url):
            pinging = asyncio.create_task(line.ping())
            try:
                yield line
            finally:
                pinging.cancel()


async def _offer(url: str, sdp: str, key: str | None) -> tuple[str, str]:
    offer = json.dumps({"sdp": sdp, "type": "offer"})
    answer = await post_offer(url, offer, "application/json", key, PATH)
    if answer.status != 200:
        raise refusal(answer)
    try:
        body = read_json_object(answer.body)
        sdp, call = body["sdp"], body["pc_id"]
        if not isinstance(sdp, str) or not isinstance(call, str):
            raise TypeError
    except (PeerError, LookupError, TypeError):
        raise NoCall(f"{url} answered with what is no SDP answer: {answer.body!r:.80}") from None
    return sdp, call
