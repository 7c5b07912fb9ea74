"""What the lines over WebRTC share: our end of one connection, with nothing between the network and the caller's ears.

No jitter buffer: a packet counts from its arrival, and on these lines, which are for measuring, one that is lost, or
that comes behind its successor, is heard as a gap. Silence is handed on for a while behind speech, so that a pause of
the voice is no gap, and not between answers. What the data channel carries is the matter of each line.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator

import numpy as np
from aiortc import RTCConfiguration, RTCIceTransport, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtp import RtpPacket
from av import AudioFrame

from load.lines.boundary import CONNECT_TIMEOUT_S, LineClosed, NoCall, Received
from wire import calls
from wire.errors import PeerError
from wire.pcm import Pcm16
from wire.rtc import BAD_SDP, PacedTrack, asking_for_fec, audio_codecs, is_opus

logger = logging.getLogger(__name__)

SILENCE_PEAK = 8  # of full scale 32768: Opus gives silence back with a little noise
HANG_OVER_S = 1.0  # silence that is handed on behind speech: a voice pauses for up to half a second
MAX_RECEIVED = 4096  # audio and messages nobody has read, 80 s of packets; the line ends when there are more
_RTP_CLOCK = 1 << 32  # RFC 3550, 5.1: timestamps are counted modulo this


class RtcPeer(abc.ABC):
    """A line but for `send`; made within a running event loop, ended by `aclose`.

    `channel`: the label of the data channel. `dead_s`: a live agent never sends nothing for so long.
    """

    counts_samples = False

    def __init__(self, channel: str, dead_s: float | None) -> None:
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._voice = PacedTrack()
        self._peer.addTrack(self._voice)
        self._channel = self._peer.createDataChannel(channel)
        self._dead_s = dead_s
        self._received: asyncio.Queue[Received | LineClosed | PeerError] = asyncio.Queue(MAX_RECEIVED)
        self._connected = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._channel.on("message", self._on_message)
        self._channel.on("close", lambda: self._end("the call server ended the connection"))
        self._peer.on("connectionstatechange", self._on_state)

    @abc.abstractmethod
    async def send(self, message: calls.ClientMessage) -> None:
        """Raises: LineClosed."""

    @abc.abstractmethod
    def _read(self, data: str) -> None:
        """Deliver what the data channel brought. Raises: PeerError."""

    async def send_audio(self, pcm: Pcm16) -> None:
        await self._voice.put(pcm)

    async def vanish(self) -> None:
        for transport in self._ice_transports():
            for protocol in transport._connection._protocols:
                protocol.transport = _Mute(protocol.transport)

    async def receive(self) -> Received:
        item = await self._received.get()
        if isinstance(item, LineClosed | PeerError):
            raise item
        return item

    async def offer(self) -> str:
        """SDP, with every candidate in it."""
        await self._peer.setLocalDescription(await self._peer.createOffer())
        return asking_for_fec(str(self._peer.localDescription.sdp))

    @contextlib.asynccontextmanager
    async def answered(self, sdp: str, url: str) -> AsyncIterator[None]:
        """The call, from connection on, as the server at `url` answered it. Raises: NoCall."""
        try:
            await self._peer.setRemoteDescription(RTCSessionDescription(sdp, "answer"))
            self._voice.encodes_opus = is_opus(audio_codecs(sdp)[0])
        except BAD_SDP as error:
            raise NoCall(f"{url} answered with what is no SDP answer: {error}"[:200]) from None
        receiver = self._peer.getReceivers()[0]
        arrivals = _without_jitter_buffer(receiver)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._connected.wait()
        except TimeoutError:
            raise NoCall(f"no media path to {url} within {CONNECT_TIMEOUT_S:.0f} s") from None
        listening = asyncio.create_task(self._listen(receiver.track, arrivals))
        try:
            yield
        finally:
            listening.cancel()

    async def aclose(self) -> None:
        """Once begun it goes on when whoever waits is cancelled: aiortc, cut short, would never end."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._peer.close())
        await asyncio.shield(self._closing)

    async def _listen(self, track: MediaStreamTrack, arrivals: Arrivals) -> None:
        """Until cancelled, or the line is dead."""
        has_begun = False
        sounded_s = -math.inf
        while True:
            try:
                async with asyncio.timeout(self._dead_s):
                    frame = await track.recv()
            except TimeoutError:
                self._end(f"the line is dead: nothing came for {self._dead_s:.0f} s")
                return
            except MediaStreamError:
                self._end("the agent's audio ended")
                return
            assert isinstance(frame, AudioFrame)
            if not has_begun:
                has_begun = True
                self._on_first_packet()
            pcm = frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0]
            arrived_s = arrivals.arrived_s(frame.pts)
            if np.abs(pcm.astype(np.int32)).max() > SILENCE_PEAK:
                sounded_s = arrived_s
                self._deliver((arrived_s, pcm))
            elif arrived_s - sounded_s < HANG_OVER_S:
                self._deliver((arrived_s, np.zeros_like(pcm)))

    def _on_first_packet(self) -> None:
        logger.debug("the agent's audio has begun")

    def _on_message(self, data: str | bytes) -> None:
        try:
            if isinstance(data, bytes):
                raise PeerError("binary message on the data channel")
            self._read(data)
        except PeerError as error:
            self._deliver(error)

    def _tell(self, message: calls.ServerMessage) -> None:
        self._deliver((time.monotonic(), message))

    def _deliver(self, item: Received | LineClosed | PeerError) -> None:
        if self._received.qsize() == MAX_RECEIVED - 1:
            item = LineClosed(None, f"{MAX_RECEIVED} packets and messages were left unread")
        if not self._received.full():
            self._received.put_nowait(item)

    def _on_state(self) -> None:
        if self._peer.connectionState == "connected":
            self._connected.set()
        elif self._peer.connectionState in ("failed", "closed"):
            self._end(f"the connection has {self._peer.connectionState}")

    def _ice_transports(self) -> set[RTCIceTransport]:
        beside = [self._peer.sctp.transport.transport] if self._peer.sctp is not None else []
        return {*(receiver.transport.transport for receiver in self._peer.getReceivers()), *beside}

    def _end(self, why: str) -> None:
        self._deliver(LineClosed(None, why))
        self._connected.set()


class Arrivals(JitterBuffer):
    """Hands every packet on as it comes and remembers when that was; one that another has overtaken is lost."""

    def __init__(self) -> None:
        super().__init__(capacity=1)
        self._first: int | None = None
        self._newest = 0  # samples behind the first, as are the keys
        self._arrived_s: dict[int, float] = {}

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        is_first = self._first is None
        self._first = packet.timestamp if self._first is None else self._first
        behind = (packet.timestamp - self._first) % _RTP_CLOCK
        if not is_first and not 0 < (behind - self._newest) % _RTP_CLOCK < _RTP_CLOCK // 2:
            return False, None
        self._newest = behind
        self._arrived_s[behind] = time.monotonic()
        return False, JitterFrame(packet._data, packet.timestamp)  # type: ignore[attr-defined]

    def arrived_s(self, pts: int) -> float:
        """`pts`: samples behind the first packet. Each can be asked for once."""
        return self._arrived_s.pop(pts % _RTP_CLOCK)


class _Mute(asyncio.DatagramTransport):
    """In place of a UDP transport of aioice: nothing leaves any more, and closing closes."""

    def __init__(self, transport: asyncio.DatagramTransport) -> None:
        super().__init__()
        self._transport = transport

    def sendto(self, data: object, addr: object = None) -> None:
        return

    def close(self) -> None:
        self._transport.close()


def _without_jitter_buffer(receiver: RTCRtpReceiver) -> Arrivals:
    arrivals = Arrivals()
    assert hasattr(receiver, "_RTCRtpReceiver__jitter_buffer"), "aiortc has changed"
    setattr(receiver, "_RTCRtpReceiver__jitter_buffer", arrivals)  # noqa: B010
    return arrivals
