"""A WebRTC peer for tests, by hand: what `load.lines.webrtc` does not let a test get wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import aiohttp
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription

from voice.transports.webrtc import WebRtcTransport
from wire import calls
from wire.ice import use_addresses
from wire.rtc import PacedTrack

OPUS = "audio/opus"
QUIET = calls.Hello(1, 48000, 48000, greeting=False)


SDP = {"content-type": "application/sdp"}


FRAGMENT = {"content-type": "application/trickle-ice-sdpfrag"}


@contextlib.asynccontextmanager
async def peer(*, channel: bool = True) -> AsyncIterator[RTCPeerConnection]:
    use_addresses(("127.0.0.1",))
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    connection.addTrack(PacedTrack())
    if channel:
        connection.createDataChannel("events")
    try:
        yield connection
    finally:
        await connection.close()


async def offer_of(connection: RTCPeerConnection) -> str:
    await connection.setLocalDescription(await connection.createOffer())
    return str(connection.localDescription.sdp)


async def post(base: str, sdp: str | bytes, query: str = "", headers: dict[str, str] = SDP) -> tuple[int, dict, str]:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{base}/v1/calls/rtc{query}", data=sdp, headers=headers) as answer,
    ):
        return answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.text()


async def request(method: str, url: str, **kwargs: object) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.request(method, url, **kwargs) as answer:  # type: ignore[arg-type]
        return answer.status, await answer.text()


async def until_free(base: str, timeout_s: float) -> None:
    """No line is taken."""
    async with asyncio.timeout(timeout_s), aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{base}/health") as response:
                if (await response.json())["active"] == 0:
                    return
            await asyncio.sleep(0.05)


async def connected(connection: RTCPeerConnection, timeout_s: float = 10.0) -> None:
    await until_state(connection, "connected", timeout_s)


async def until_state(connection: RTCPeerConnection, state: str, timeout_s: float = 10.0) -> None:
    changed = asyncio.Event()
    connection.on("connectionstatechange", changed.set)
    async with asyncio.timeout(timeout_s):
        while connection.connectionState != state:
            changed.clear()
            await changed.wait()


def prefer(connection: RTCPeerConnection, mime_type: str) -> None:
    """Offer this codec alone."""
    codecs = RTCRtpSender.getCapabilities("audio").codecs
    connection.getTransceivers()[0].setCodecPreferences([codec for codec in codecs if codec.mimeType == mime_type])


@contextlib.asynccontextmanager
async def direct_call(
    change: Callable[[str], str] = lambda offer: offer, codec: str = OPUS
) -> AsyncIterator[tuple[RTCPeerConnection, WebRtcTransport]]:
    """A peer and a transport that are connected, without a server: `change` is made to the offer."""
    transport = WebRtcTransport([], ["127.0.0.1"])
    async with peer() as connection:
        prefer(connection, codec)
        answer = await transport.answer(change(await offer_of(connection)))
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        track = connection.getSenders()[0].track
        assert isinstance(track, PacedTrack)
        track.encodes_opus = codec == OPUS
        await asyncio.gather(connected(connection), transport.wait_connected(10))
        try:
            yield connection, transport
        finally:
            await transport.close()
