"""The caller's end of a call over WebRTC (`POST /v1/calls/rtc`).

No jitter buffer stands between the network and the caller's ears: a packet counts from its arrival, and on this line,
which is for measuring, one that is late or lost is heard as a gap. Packets of the agent's silence are not handed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtp import RtpPacket
from av import AudioFrame

from load.lines.boundary import (
    CONNECT_TIMEOUT_S,
    SERVER_KINDS,
    Line,
    LineClosed,
    NoCall,
    Received,
    is_here,
    refused,
    unreachable,
)
from wire import calls
from wire.errors import PeerError
from wire.ice import use_addresses
from wire.messages import decode, encode
from wire.pcm import Pcm16
from wire.rtc import BAD_SDP, PATH, SDP, PacedTrack

DEAD_S = 1.0  # the server sends a packet every 20 ms, also while it is silent
SILENCE_PEAK = 8  # of full scale 32768: Opus gives silence back with a little noise


class RtcLine:
    counts_samples = False

    def __init__(self, peer: RTCPeerConnection, voice: PacedTrack, channel: RTCDataChannel) -> None:
        self._peer = peer
        self._voice = voice
        self._channel = channel
        self._received: asyncio.Queue[Received | LineClosed | PeerError] = asyncio.Queue()
        channel.on("message", self._on_message)
        channel.on("close", lambda: self._close("the call server ended the connection"))
        peer.on("connectionstatechange", self._on_state)
        self.connected = asyncio.Event()

    async def send_audio(self, pcm: Pcm16) -> None:
        await self._voice.put(pcm)

    async def send(self, message: calls.ClientMessage) -> None:
        if self._channel.readyState != "open":
            raise LineClosed(None, "the data channel is closed")
        self._channel.send(encode(message))

    async def receive(self) -> Received:
        item = await self._received.get()
        if isinstance(item, LineClosed | PeerError):
            raise item
        return item

    async def listen(self, track: MediaStreamTrack, arrivals: _NoJitterBuffer) -> None:
        """Until cancelled, or the line is dead."""
        while True:
            try:
                async with asyncio.timeout(DEAD_S):
                    frame = await track.recv()
            except TimeoutError:
                self._close(f"the line is dead: nothing came for {DEAD_S:.0f} s")
                return
            except MediaStreamError:
                self._close("the agent's audio ended")
                return
            assert isinstance(frame, AudioFrame)
            pcm = frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0]
            if np.abs(pcm.astype(np.int32)).max() > SILENCE_PEAK:
                self._received.put_nowait((arrivals.arrived_s(frame.pts), pcm))

    def _on_message(self, data: str | bytes) -> None:
        try:
            if isinstance(data, bytes):
                raise PeerError("binary message on the data channel")
            self._received.put_nowait((time.monotonic(), decode(data, SERVER_KINDS)))
        except PeerError as error:
            self._received.put_nowait(error)

    def _on_state(self) -> None:
        if self._peer.connectionState == "connected":
            self.connected.set()
        elif self._peer.connectionState in ("failed", "closed"):
            self._close(f"the connection has {self._peer.connectionState}")

    def _close(self, why: str) -> None:
        self._received.put_nowait(LineClosed(None, why))
        self.connected.set()


class _NoJitterBuffer(JitterBuffer):
    """Hands every packet on as it comes and remembers when that was."""

    def __init__(self) -> None:
        super().__init__(capacity=1)
        self._first: int | None = None
        self._arrivals: dict[int, float] = {}

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        self._first = packet.timestamp if self._first is None else self._first
        self._arrivals[(packet.timestamp - self._first) % (1 << 32)] = time.monotonic()
        return False, JitterFrame(packet._data, packet.timestamp)  # type: ignore[attr-defined]

    def arrived_s(self, pts: int) -> float:
        return self._arrivals.pop(pts)


@contextlib.asynccontextmanager
async def rtc_line(url: str, hello: calls.Hello, key: str | None) -> AsyncIterator[Line]:
    """Both rates of `hello` must be `calls.RTC_HZ`. Raises: NoCall."""
    assert hello.sample_rate_hz == hello.output_sample_rate_hz == calls.RTC_HZ
    use_addresses(("127.0.0.1",) if is_here(url) else ())
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    try:
        voice = PacedTrack()
        peer.addTrack(voice)
        line = RtcLine(peer, voice, peer.createDataChannel("events"))
        await peer.setLocalDescription(await peer.createOffer())
        answer = await _offer(url, peer.localDescription.sdp, hello, key)
        try:
            await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        except BAD_SDP as error:
            raise NoCall(f"{url} answered with what is no SDP answer: {error}"[:200]) from None
        receiver = peer.getReceivers()[0]
        arrivals = _without_jitter_buffer(receiver)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await line.connected.wait()
        except TimeoutError:
            raise NoCall(f"no media path to {url} within {CONNECT_TIMEOUT_S:.0f} s") from None
        listening = asyncio.create_task(line.listen(receiver.track, arrivals))
        try:
            yield line
        finally:
            listening.cancel()
    finally:
        await peer.close()


async def _offer(url: str, sdp: str, hello: calls.Hello, key: str | None) -> str:
    query = {"language": hello.language, "greeting": str(hello.greeting).lower()}
    if hello.voice is not None:
        query["voice"] = hello.voice
    headers = {"content-type": SDP, **({"authorization": f"Bearer {key}"} if key is not None else {})}
    timeout = aiohttp.ClientTimeout(total=CONNECT_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=not is_here(url)) as http,
            http.post(url, data=sdp, params=query, headers=headers) as response,
        ):
            if response.status == 201:
                return await response.text()
            if response.status in (401, 404, 405):
                raise refused(url, response.status, PATH)
            message = await _error_message(response)
            retry_s = response.headers.get("retry-after")
            raise NoCall(f"the server refused the call: {message}", f"try again in {retry_s} s" if retry_s else "")
    except aiohttp.InvalidURL:
        raise NoCall(f"{url} is no address", f"it looks like http://127.0.0.1:8080{PATH}") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise unreachable(url, error) from None


async def _error_message(response: aiohttp.ClientResponse) -> str:
    try:
        return str((await response.json())["error"]["message"])
    except (aiohttp.ClientError, ValueError, LookupError, TypeError):
        return f"HTTP {response.status}"


def _without_jitter_buffer(receiver: RTCRtpReceiver) -> _NoJitterBuffer:
    arrivals = _NoJitterBuffer()
    assert hasattr(receiver, "_RTCRtpReceiver__jitter_buffer"), "aiortc has changed"
    setattr(receiver, "_RTCRtpReceiver__jitter_buffer", arrivals)  # noqa: B010
    return arrivals
