"""One call over WebRTC: Opus over RTP both ways, the messages of `wire.calls` on a data channel.

The caller brings the data channel; without one the call is audio and keys alone. Audio from the caller is kept for
`INBOX_S` at most: what nobody took by then is too old to answer.

aiortc 1.16 leaves four things to us, each done at one place below and watched over by a test: its jitter buffer holds
80 ms and never drains after a loss, so what we put in its place hands every packet to ours (`voice.media.jitter`); it
knows no telephone events, so we put them into the answer; it reassembles data-channel messages of any size, so a sender
who goes beyond what the answer allowed is cut off; and a peer that vanishes is noticed after half a minute, so a line
without packets for `SILENT_S` counts as dead (senders without anything to say send packets too: Opus DTX, RFC 7587
3.1.3, one each 400 ms).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)
from aiortc.exceptions import OperationError
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtp import RtpPacket
from aiortc.sdp import candidate_from_sdp
from aiortc.stats import RTCRemoteInboundRtpStreamStats

from voice import metrics
from voice.media.jitter import Packet
from voice.media.rtp import RtpAudio
from voice.media.telephone_event import Presses
from voice.transports.boundary import Received
from voice.transports.inbox import Inbox
from voice.transports.inside_aiortc import accept, hand_over_packets, partial_bytes, tear_down
from voice.transports.offer import checked_offer, events_to_accept
from wire import calls
from wire.errors import PeerError, Unavailable
from wire.ice import MAX_CANDIDATES, admitted_lines
from wire.messages import decode, encode
from wire.pcm import AUDIO_FRAME_S, Pcm16
from wire.rtc import BAD_SDP, PacedTrack, asking_for_fec, audio_codecs, event_clocks_hz, is_opus
from wire.sockets import Disconnected

logger = logging.getLogger(__name__)

EARS_HZ = 16000  # what recognition and voice detection take; Opus is decoded to it
LEAD_S = 0.04  # the receiver's jitter buffer would keep more than it needs for as long as the call lasts
SILENT_S = 5.0
WATCH_S = 0.5
INBOX_S = 1.0
LATE_S = 0.03  # a timer that fires so late tells of our own loop, not of the network
MAX_SOURCES = 1000  # SSRCs of one call: each is remembered
MAX_LISTENER_DELAY_S = 1.0
POSITION_S = 0.1  # between two `position` messages
FLUSH_S = 1.0  # for the last messages to leave
CLOSE_S = 5.0
MAX_EVENT_BYTES = 16_384
MAX_FRAGMENT_LINES = 256
MAX_UNSENT = 256  # messages that wait for the data channel to open
MAX_BUFFERED_BYTES = 262_144  # messages the caller does not take
MAX_PARTIAL_BYTES = 524_288  # of a message under way; the answer allows 262,144 (aiortc)
CLIENT_KINDS: tuple[type[calls.ClientMessage], ...] = calls.CLIENT_MESSAGES


class WebRtcTransport:
    """`answer`, `wait_connected`, then `run` beside `receive` and `send`, at last `close`."""

    def __init__(self, servers: Sequence[RTCIceServer], addresses: Sequence[str]) -> None:
        self.sample_rate_hz: int = EARS_HZ
        self.output_sample_rate_hz: int = calls.RTC_HZ
        self.lead_s = LEAD_S
        self.listener_delay_s: float | None = None
        self.way_s = 0.0  # nobody acknowledges
        self.takes_back = False  # packets that have left
        self.take: Callable[[Pcm16], bool] | None = None  # not used: of a packet the least is spent here
        self._addresses = addresses
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=list(servers)))
        self._peer.on("datachannel", self._on_channel)
        self._peer.on("connectionstatechange", self._on_state)
        self._voice = PacedTrack(self._on_frame)
        self._ears: MediaStreamTrack | None = None
        self._sender: RTCRtpSender | None = None
        self._audio = RtpAudio(EARS_HZ, {})
        self._timer: asyncio.TimerHandle | None = None  # for what is to be heard if no packet comes
        self._timer_s = 0.0  # when it is due; uvloop's handles do not tell
        self._packet_s = 0.0  # when the last one came
        self._presses = Presses()
        self._event_clocks_hz: dict[int, int] = {}  # by payload type
        self._sources: set[int] = set()
        self._clock_hz: int = calls.RTC_HZ  # of RTP
        self._channel: RTCDataChannel | None = None
        self._unsent: deque[str] = deque(maxlen=MAX_UNSENT)
        self._next_position = 0
        self._num_candidates = 0
        self._inbox = Inbox(round(INBOX_S * EARS_HZ))
        self._end: Exception | calls.Hangup | None = None
        self._changed = asyncio.Event()  # connected, or over
        self._opened = asyncio.Event()  # the data channel
        self._is_torn_down = False

    async def answer(self, offer: str) -> str:
        """Take the caller's SDP offer, return our SDP answer with all candidates in it.

        Raises: PeerError for an offer that is none, or offers no call.
        """
        sdp = checked_offer(offer, self._addresses)
        for line in sdp.splitlines():
            if line.startswith("a=candidate:"):
                self._count_candidate()
        try:
            await self._peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
            self._answer_one_audio(sdp)
            await self._peer.setLocalDescription(await self._peer.createAnswer())
        except OperationError as error:
            raise PeerError(f"nothing in common: {error}", code="bad_sdp", http_status=422) from None
        except BAD_SDP as error:
            raise PeerError(f"the offer cannot be answered: {error}"[:200], code="bad_sdp") from None
        answer = str(self._peer.localDescription.sdp)
        codecs = audio_codecs(answer)
        self._audio = RtpAudio(EARS_HZ, {codec.payloadType or 0: codec for codec in codecs})
        self._voice.encodes_opus = is_opus(codecs[0])
        self._clock_hz = codecs[0].clockRate
        self._event_clocks_hz = event_clocks_hz(answer)
        return asking_for_fec(answer)

    async def add_candidates(self, fragment: str) -> None:
        """Candidates that the caller found since its offer (RFC 8840). Raises: PeerError."""
        lines = fragment.splitlines()[:MAX_FRAGMENT_LINES]
        ufrag = [line.removeprefix("a=ice-ufrag:") for line in lines if line.startswith("a=ice-ufrag:")]
        if ufrag and f"a=ice-ufrag:{ufrag[0].strip()}" not in self._peer.remoteDescription.sdp.splitlines():
            raise PeerError("ICE restarts are not supported: hang up and call again", code="bad_sdp", http_status=422)
        mid = "0"
        for line in admitted_lines(lines, self._addresses):
            if line.startswith("a=mid:"):
                mid = line.removeprefix("a=mid:").strip()
            if line.startswith("a=candidate:"):
                self._count_candidate()
                try:
                    candidate = candidate_from_sdp(line.removeprefix("a=candidate:"))
                    candidate.sdpMid = mid
                    await self._peer.addIceCandidate(candidate)
                except BAD_SDP as error:
                    raise PeerError(f"not a candidate: {line[:100]}: {error}", code="bad_sdp") from None

    def _count_candidate(self) -> None:
        """Each is paired and checked, at the cost of time of ours and packets to wherever it points."""
        self._num_candidates += 1
        if self._num_candidates > MAX_CANDIDATES:
            raise PeerError(f"more than {MAX_CANDIDATES} candidates", code="too_large", http_status=413)

    async def wait_connected(self, timeout_s: float) -> None:
        """Raises: Unavailable when no path was found in time; Disconnected, PeerError when it ended before."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._end is None and self._peer.connectionState != "connected":
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Unavailable(f"no media path within {timeout_s:.0f} s") from None
        self._raise_end()

    async def run(self) -> None:
        """Watch over the line until the call is over."""
        assert self._ears is not None
        self._packet_s = asyncio.get_running_loop().time()
        goodbye_s: float | None = None
        while self._end is None:
            try:
                async with asyncio.timeout(WATCH_S):
                    await self._ears.recv()  # never gives anything, because nothing is left to aiortc's decoder
            except TimeoutError:
                pass
            except MediaStreamError:  # a source has said goodbye; another may go on (RFC 3550, 8.2)
                goodbye_s = goodbye_s or asyncio.get_running_loop().time()
                await asyncio.sleep(WATCH_S)
            self._look_at_partial()
            self.listener_delay_s = await self._reported_delay_s()
            silent_s = WATCH_S if goodbye_s is not None and self._packet_s <= goodbye_s + WATCH_S / 2 else SILENT_S
            if asyncio.get_running_loop().time() - self._packet_s > silent_s:
                self.finish(Disconnected(f"no audio came for {silent_s:.1f} s"))

    async def _reported_delay_s(self) -> float | None:
        """By the caller's receiver reports: half of the way there and back, and what his jitter buffer has to hold."""
        assert self._sender is not None
        for report in (await self._sender.getStats()).values():
            if isinstance(report, RTCRemoteInboundRtpStreamStats) and report.roundTripTime is not None:
                delay_s = max(0.0, report.roundTripTime / 2) + max(LEAD_S, 2 * report.jitter / self._clock_hz)
                return min(MAX_LISTENER_DELAY_S, delay_s)  # whatever the caller reports
        return None

    async def receive(self) -> Received:
        item = await self._inbox.get()
        if item is not None:
            return item
        assert self._end is not None
        if isinstance(self._end, calls.Hangup):
            return self._end
        raise self._end

    async def send(self, payload: Pcm16 | calls.ServerMessage) -> None:
        if self._end is not None and isinstance(self._end, Disconnected):
            raise self._end
        if isinstance(payload, np.ndarray):
            await self._voice.put(payload)
            return
        if isinstance(payload, calls.Clear):
            self._voice.clear()
        self._post(encode(payload))

    def finish(self, end: Exception | calls.Hangup) -> None:
        """The call is over, for this reason; the first one counts."""
        if self._end is None:
            self._end = end
            self._changed.set()
            self._inbox.close()

    async def close(self) -> None:
        """Idempotent; what was posted leaves first where somebody takes it."""
        self.finish(Disconnected("the call is over"))
        if self._timer is not None:
            self._timer.cancel()
        self._count_packets()
        if self._is_torn_down:
            return
        if self._peer.connectionState == "connected":
            try:
                async with asyncio.timeout(FLUSH_S):
                    await self._flush()
            except TimeoutError:
                logger.debug("x the caller did not take the last messages")
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._peer.close()
        except TimeoutError:
            logger.warning("a connection did not close within %.0f s", CLOSE_S)
            self._voice.stop()
            await tear_down(self._peer, CLOSE_S)
            self._is_torn_down = True

    def _count_packets(self) -> None:
        for fate, number in dataclasses.asdict(self._audio.take_counts()).items():
            metrics.RTP_PACKETS.labels(fate).inc(number)
        metrics.RTP_PACKETS.labels("bad_event").inc(self._presses.take_num_bad())

    async def _flush(self) -> None:
        if self._unsent:  # a call that fails at once fails before the data channel is open
            await self._opened.wait()
        channel = self._channel
        if channel is not None and channel.readyState == "open" and channel.bufferedAmount:
            flushed = asyncio.Event()
            channel.on("bufferedamountlow", flushed.set)
            await flushed.wait()

    def _answer_one_audio(self, sdp: str) -> None:
        """Our voice on the first audio that goes both ways; everything else that is offered stays off."""
        for transceiver in self._peer.getTransceivers():
            if self._ears is None and transceiver.kind == "audio" and transceiver._offerDirection == "sendrecv":
                self._ears = transceiver.receiver.track
                transceiver.direction = "sendrecv"
                transceiver.sender.replaceTrack(self._voice)
                self._sender = transceiver.sender
                hand_over_packets(transceiver.receiver, self._on_packet)
                accept(transceiver, events_to_accept(sdp, transceiver.mid))
            else:
                transceiver.direction = "inactive"
        assert self._ears is not None, "checked_offer demands one"

    def _on_channel(self, channel: RTCDataChannel) -> None:
        if self._channel is not None:
            channel.close()
            return
        self._channel = channel
        channel.on("message", self._on_message)
        channel.on("open", self._send_unsent)
        self._send_unsent()

    def _on_state(self) -> None:
        self._changed.set()
        if self._peer.connectionState in ("failed", "closed"):
            self.finish(Disconnected(f"the connection has {self._peer.connectionState}"))

    def _on_message(self, data: str | bytes) -> None:
        try:
            message = _parse(data)
        except PeerError as error:
            self.finish(error)
            return
        if isinstance(message, calls.Hangup):
            self.finish(message)
        else:
            self._inbox.put(message)

    def _on_packet(self, packet: RtpPacket) -> None:
        now = self._packet_s = asyncio.get_running_loop().time()
        self._sources.add(packet.ssrc)
        if len(self._sources) > MAX_SOURCES:
            self.finish(PeerError(f"more than {MAX_SOURCES} streams", code="bad_audio"))
            return
        try:
            self._take_packet(packet, now)
        except Exception as error:  # noqa: BLE001 - one call ends, and says why: raised here it stops aiortc's transport
            self.finish(error)
        self._look_at_partial()

    def _take_packet(self, packet: RtpPacket, now: float) -> None:
        num_samples = self._audio.num_samples(packet.payload, packet.payload_type)
        seen = Packet(packet.sequence_number, packet.timestamp, packet.ssrc, packet.payload, num_samples)
        if (clock_hz := self._event_clocks_hz.get(packet.payload_type)) is None:
            self._hear(self._audio.push(seen, packet.payload_type, now))
            return
        if key := self._presses.push(packet.payload, packet.timestamp, packet.ssrc, clock_hz):
            self._inbox.put(calls.Dtmf(key))
        self._hear(self._audio.pass_over(seen, now))

    def _look_at_partial(self) -> None:
        if partial_bytes(self._peer) > MAX_PARTIAL_BYTES:
            self.finish(PeerError("message of unlimited length on the data channel", code="too_large"))

    def _on_timer(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        if self._end is not None:
            return
        if loop.time() - self._timer_s > LATE_S:  # packets may wait for us, and not we for them
            self._timer_s = loop.time() + AUDIO_FRAME_S
            self._timer = loop.call_at(self._timer_s, self._on_timer)
            return
        self._hear(self._audio.take(loop.time()))

    def _hear(self, pcm: Pcm16) -> None:
        if pcm.size:
            self._inbox.put(pcm)
        if self._timer is not None and not self._audio.has_hole:
            return  # nothing is due earlier than it was, and a timer that comes too early looks again
        wake_s = self._audio.wake_s()
        if wake_s is None or self._end is not None or (self._timer is not None and self._timer_s <= wake_s):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_s = asyncio.get_running_loop().call_at(wake_s, self._on_timer), wake_s

    def _on_frame(self, sample: int) -> None:
        if sample >= self._next_position:
            self._next_position = sample + round(POSITION_S * calls.RTC_HZ)
            self._post(encode(calls.Position(sample)))

    def _post(self, text: str) -> None:
        if self._peer.sctp is None:  # the caller has no data channel
            return
        channel = self._channel
        if channel is None or channel.readyState == "connecting":
            self._unsent.append(text)
        elif channel.readyState == "open":
            if channel.bufferedAmount > MAX_BUFFERED_BYTES:
                self.finish(Disconnected("the caller does not read"))
                return
            channel.send(text)

    def _send_unsent(self) -> None:
        while self._channel is not None and self._channel.readyState == "open" and self._unsent:
            self._post(self._unsent.popleft())
        if self._channel is not None and self._channel.readyState == "open":
            self._opened.set()

    def _raise_end(self) -> None:
        if isinstance(self._end, calls.Hangup):
            raise Disconnected("hung up before the call began")
        if self._end is not None:
            raise self._end


def _parse(data: str | bytes) -> calls.Played | calls.Dtmf | calls.Hangup:
    """Raises: PeerError."""
    if len(data) > MAX_EVENT_BYTES:
        raise PeerError(f"message of {len(data)} bytes; at most {MAX_EVENT_BYTES}", code="too_large")
    if isinstance(data, bytes):
        raise PeerError("the data channel takes text; audio goes over RTP", code="bad_message")
    message = decode(data, CLIENT_KINDS)
    if isinstance(message, calls.Hello):
        raise PeerError("a WebRTC call says hello in its URL", code="bad_message")
    return message
