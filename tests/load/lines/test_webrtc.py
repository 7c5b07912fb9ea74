from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from load.lines.boundary import Line, LineClosed, NoCall
from load.lines.webrtc import rtc_line
from tests.voice.conftest import Stage
from wire import calls

pytestmark = pytest.mark.slow
HELLO = calls.Hello(1, 48000, 48000, greeting=False)


@contextlib.asynccontextmanager
async def answering(status: int, body: str, content_type: str, headers: dict[str, str]) -> AsyncIterator[str]:
    async def offer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body, content_type=content_type, headers=headers)

    app = web.Application()
    app.router.add_post("/v1/calls/rtc", offer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/calls/rtc"
    finally:
        await runner.cleanup()


ERROR = '{"error": {"message": "all 2 lines are busy", "code": "overloaded"}}'


@pytest.mark.parametrize(
    ("status", "body", "content_type", "headers", "says", "hint"),
    [
        (401, ERROR, "application/json", {}, "wants an API key", "--key-file"),
        (404, "", "text/plain", {}, "takes no calls", "/v1/calls/rtc"),
        (405, "", "text/plain", {}, "takes no calls", "/v1/calls/rtc"),
        (429, ERROR, "application/json", {"retry-after": "7"}, "all 2 lines are busy", "try again in 7 s"),
        (503, "[]", "application/json", {}, "HTTP 503", ""),
        (500, "<html>", "text/html", {}, "HTTP 500", ""),
        (201, "hello", "application/sdp", {}, "no SDP answer", ""),
        (201, "", "application/sdp", {}, "no SDP answer", ""),
    ],
)
async def test_refusals_are_one_clear_line(
    status: int, body: str, content_type: str, headers: dict[str, str], says: str, hint: str
) -> None:
    async with answering(status, body, content_type, headers) as url:
        with pytest.raises(NoCall, match=says) as error:
            async with rtc_line(url, HELLO, None):
                pass
    assert hint in error.value.hint


async def test_nobody_at_the_address_is_one_clear_line() -> None:
    with pytest.raises(NoCall, match="no call server") as error:
        async with rtc_line("http://127.0.0.1:9/v1/calls/rtc", HELLO, None):
            pass
    assert "offhook up" in error.value.hint


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1", "http:///v1/calls/rtc", "http://127.0.0.1:99999/v1/calls/rtc"]
)
async def test_a_broken_address_is_one_clear_line(url: str) -> None:
    with pytest.raises(NoCall):
        async with rtc_line(url, HELLO, None):
            pass


async def test_a_server_that_falls_silent_is_noticed() -> None:
    async with Stage().up() as base, rtc_line(f"{base}/v1/calls/rtc", HELLO, None) as line:
        await line.receive()
        peer = line._peer  # type: ignore[attr-defined]
        for transceiver in peer.getTransceivers():  # the network is gone
            for protocol in transceiver.receiver.transport.transport._connection._protocols:
                protocol.datagram_received = lambda data, address: None
        with pytest.raises(LineClosed, match="nothing came for 1 s"):
            await _until_closed(line)


async def _until_closed(line: Line) -> None:
    while True:
        await line.receive()
