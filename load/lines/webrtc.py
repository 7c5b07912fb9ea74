"""The caller's end of a call over WebRTC (`POST /v1/calls/rtc`)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import cast

from aiortc import RTCDtlsTransport

from load.lines.boundary import SERVER_KINDS, Line, LineClosed, is_here
from load.lines.keys import KeyedTransport, agreed_payload_type, offering_keys
from load.lines.offers import post_offer, refusal
from load.lines.rtc_peer import RtcPeer
from wire import calls
from wire.ice import use_addresses
from wire.messages import decode, encode
from wire.rtc import PATH, SDP

DEAD_S = 1.0  # the server sends a packet every 20 ms, also while it is silent


class RtcLine(RtcPeer):
    def __init__(self) -> None:
        super().__init__("events", DEAD_S)
        self._keys: KeyedTransport | None = None

    async def offer(self) -> str:
        return offering_keys(await super().offer())

    def agree_on_keys(self, answer: str) -> None:
        """Of a call that is connected."""
        sender, payload_type = self._peer.getSenders()[0], agreed_payload_type(answer)
        if payload_type is not None:
            self._keys = KeyedTransport(sender.transport, payload_type)
            sender.setTransport(cast(RTCDtlsTransport, self._keys))

    async def send(self, message: calls.ClientMessage) -> None:
        if isinstance(message, calls.Dtmf):
            if self._keys is None:
                raise LineClosed(None, "the server takes no telephone events, and so no keys")
            self._keys.press(message.digits)
            return
        if self._channel.readyState != "open":
            raise LineClosed(None, "the data channel is closed")
        self._channel.send(encode(message))

    def _read(self, data: str) -> None:
        self._tell(decode(data, SERVER_KINDS))


@contextlib.asynccontextmanager
async def rtc_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Both rates of `hello` must be `calls.RTC_HZ`. Raises: NoCall."""
    assert hello.sample_rate_hz == hello.output_sample_rate_hz == calls.RTC_HZ
    use_addresses(("127.0.0.1",) if is_here(url) else ())
    async with contextlib.aclosing(RtcLine()) as line:
        answer = await _offer(url, await line.offer(), hello, key)
        async with line.answered(answer, url):
            line.agree_on_keys(answer)
            yield line


async def _offer(url: str, sdp: str, hello: calls.Hello, key: str | None) -> str:
    query = {"language": hello.language, "greeting": str(hello.greeting).lower()}
    if hello.voice is not None:
        query["voice"] = hello.voice
    answer = await post_offer(url, sdp, SDP, key, PATH, query)
    if answer.status != 201:
        raise refusal(answer)
    return answer.body
