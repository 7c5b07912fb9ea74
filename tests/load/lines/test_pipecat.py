from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame

from load.lines.boundary import Line, LineClosed, NoCall, Refused
from load.lines.pipecat import PipecatLine, pipecat_line
from load.lines.rtc_peer import MAX_RECEIVED
from tests.load.test_hearing import tone
from wire import calls
from wire.errors import PeerError
from wire.rtc import PacedTrack

pytestmark = pytest.mark.slow
HELLO = calls.Hello(1, 48000, 48000)
DEADLINE_S = 10.0
UNHEARD_S = 0.3  # a goodbye over loopback is there in a few milliseconds


@dataclass
class Agent:
    """One call as Pipecat's SmallWebRTCConnection takes it: its track joins the offered transceiver when it is told."""

    peer: RTCPeerConnection = field(default_factory=lambda: RTCPeerConnection(RTCConfiguration(iceServers=[])))
    offer: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    voice: PacedTrack = field(default_factory=PacedTrack)
    received: list[str] = field(default_factory=list)
    loudest: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _channel: RTCDataChannel | None = None
    _hearing: asyncio.Task[None] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        self.offer, self.key = await request.json(), request.headers.get("authorization")
        self.peer.on("datachannel", self._on_channel)
        self.peer.on("connectionstatechange", self._on_state)
        self.peer.on("track", self._on_track)
        await self.peer.setRemoteDescription(RTCSessionDescription(self.offer["sdp"], self.offer["type"]))
        for transceiver in self.peer.getTransceivers():
            transceiver.direction = "sendrecv"
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        local = self.peer.localDescription
        return web.json_response({"sdp": local.sdp, "type": local.type, "pc_id": "SmallWebRTCConnection#0-1"})

    def join(self) -> None:
        self.peer.getTransceivers()[0].sender.replaceTrack(self.voice)

    def say(self, message: dict[str, Any]) -> None:
        assert self._channel is not None
        self._channel.send(json.dumps(message))

    def rtvi(self, kind: str, data: dict[str, Any] | None = None) -> None:
        self.say({"label": "rtvi-ai", "type": kind, **({} if data is None else {"data": data})})

    async def until(self, received: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not any(received in message for message in self.received):
                self._changed.clear()
                await self._changed.wait()

    async def until_loud(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while self.loudest < 1000:
                self._changed.clear()
                await self._changed.wait()

    async def aclose(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
        await self.peer.close()

    def _on_channel(self, channel: RTCDataChannel) -> None:
        self._channel = channel
        channel.on("message", self._on_message)

    def _on_message(self, message: str) -> None:
        self.received.append(message)
        self._changed.set()

    def _on_state(self) -> None:
        if self.peer.connectionState == "closed":
            self.closed.set()

    def _on_track(self, track: MediaStreamTrack) -> None:
        self._hearing = asyncio.create_task(self._hear(track))

    async def _hear(self, track: MediaStreamTrack) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                assert isinstance(frame, AudioFrame)
                self.loudest = max(self.loudest, int(np.abs(frame.to_ndarray().astype(np.int32)).max()))
                self._changed.set()


@contextlib.asynccontextmanager
async def served(offer: Any) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/api/offer", offer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/offer"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def call(key: str | None = None) -> AsyncIterator[tuple[Agent, Line]]:
    agent = Agent()
    try:
        async with served(agent.answer) as url, pipecat_line(url, HELLO, key) as line:
            await agent.until("client-ready")
            yield agent, line
    finally:
        await agent.aclose()


async def next_message(line: Line) -> calls.ServerMessage:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            _, received = await line.receive()
            if not isinstance(received, np.ndarray):
                return received


async def test_a_call_is_placed_as_pipecats_own_client_places_it() -> None:
    async with call("secret") as (agent, _):
        await agent.until("ping: ")
        ready = json.loads(next(message for message in agent.received if "client-ready" in message))

    assert agent.offer["type"] == "offer"
    assert agent.offer["sdp"].count("m=audio") == 1
    assert "m=video" not in agent.offer["sdp"]
    assert "a=candidate" in agent.offer["sdp"]
    assert agent.key == "Bearer secret"
    assert (ready["label"], ready["data"]["version"]) == ("rtvi-ai", "2.0.0")
    assert ready["id"]


async def test_both_hear_each_other() -> None:
    async with call() as (agent, line):
        agent.join()
        assert isinstance(await next_message(line), calls.Ready)
        speaking = asyncio.create_task(speak(agent.voice))
        for _ in range(10):
            await line.send_audio(tone(0.02, 48000))
        await agent.until_loud()
        async with asyncio.timeout(DEADLINE_S):
            _, heard = await line.receive()
        await speaking

    assert isinstance(heard, np.ndarray)
    assert heard.size == 960


async def speak(voice: PacedTrack) -> None:
    for _ in range(10):
        await voice.put(tone(0.02, 48000))


async def test_the_agent_is_ready_when_it_says_so_and_that_only_once() -> None:
    async with call() as (agent, line):
        agent.rtvi("bot-ready", {"version": "2.2.0"})
        assert await next_message(line) == calls.Ready(1, "SmallWebRTCConnection#0-1", 48000, 48000, "", 0)
        agent.join()
        agent.rtvi("bot-ready", {"version": "2.2.0"})
        agent.rtvi("user-started-speaking")
        assert await next_message(line) == calls.State("hearing", 1)


async def test_what_the_agent_tells_is_understood_and_what_is_not_for_us_ignored() -> None:
    async with call() as (agent, line):
        agent.say({"type": "signalling", "message": {"type": "renegotiate"}})
        agent.say({"anything": "of the application's"})
        agent.say({"label": "another", "type": "error", "data": {"error": "", "fatal": True}})
        agent.rtvi("server-message", {"what": 1})
        agent.rtvi("user-transcription", {"text": "Hello.", "final": True, "user_id": "", "timestamp": ""})
        assert await next_message(line) == calls.Final(0, "Hello.")
        agent.rtvi("user-transcription")
        with pytest.raises(PeerError, match="malformed"):
            await next_message(line)


async def test_an_agent_that_leaves_ends_the_line() -> None:
    async with call() as (agent, line):
        agent.say({"type": "signalling", "message": {"type": "peerLeft"}})
        with pytest.raises(LineClosed, match="left the call"):
            await next_message(line)


async def test_an_agent_whose_connection_closes_ends_the_line() -> None:
    async with call() as (agent, line):
        await agent.peer.close()
        with pytest.raises(LineClosed):
            await next_message(line)


async def test_hanging_up_closes_the_connection_and_is_a_goodbye() -> None:
    async with call() as (agent, line):
        await line.send(calls.Hangup())
        assert await next_message(line) == calls.Bye("hangup")
        with pytest.raises(LineClosed):
            await next_message(line)
        async with asyncio.timeout(DEADLINE_S):
            await agent.closed.wait()


async def test_who_is_cancelled_while_hanging_up_has_hung_up() -> None:
    async with call() as (agent, line):
        hanging_up = asyncio.create_task(line.send(calls.Hangup()))
        await asyncio.sleep(0)
        hanging_up.cancel()
        async with asyncio.timeout(DEADLINE_S):
            await agent.closed.wait()
            await line.aclose()  # type: ignore[attr-defined]


async def test_a_caller_who_vanishes_says_no_goodbye() -> None:
    agent = Agent()
    try:
        async with served(agent.answer) as url:
            async with pipecat_line(url, HELLO, None) as line:
                await agent.until("client-ready")
                await line.vanish()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(UNHEARD_S):
                    await agent.closed.wait()
    finally:
        await agent.aclose()


async def test_a_caller_who_reads_nothing_loses_the_line_and_not_the_memory() -> None:
    async with contextlib.aclosing(PipecatLine()) as line:
        for _ in range(MAX_RECEIVED + 10):
            line._on_message('{"label": "rtvi-ai", "type": "user-started-speaking"}')
        for _ in range(MAX_RECEIVED - 1):
            assert await next_message(line) == calls.State("hearing", 1)
        with pytest.raises(LineClosed, match="left unread"):
            await next_message(line)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, '{"detail": "Cannot create new connection with existing connection active"}', "existing connection"),
        (422, '{"detail": [{"loc": ["body"]}]}', "HTTP 422"),
        (500, "Internal Server Error", "HTTP 500"),
        (401, "{}", "wants an API key"),
        (404, '{"detail": "Not Found"}', "takes no calls"),
        (200, "null", "no SDP answer"),
        (200, "<html>", "no SDP answer"),
        (200, '{"sdp": 5, "type": "answer", "pc_id": "x"}', "no SDP answer"),
        (200, '{"sdp": "v=0", "type": "answer", "pc_id": "x"}', "no SDP answer"),
    ],
)
async def test_refusals_are_one_clear_line(status: int, body: str, says: str) -> None:
    async def offer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with served(offer) as url:
        with pytest.raises(NoCall, match=says):
            async with pipecat_line(url, HELLO, None):
                pass


async def test_a_server_without_room_says_when_to_come_back() -> None:
    async def offer(_: web.Request) -> web.Response:
        return web.Response(status=503, text='{"detail": "busy"}', headers={"retry-after": "7"})

    async with served(offer) as url:
        with pytest.raises(Refused, match="busy") as error:
            async with pipecat_line(url, HELLO, None):
                pass
    assert error.value.retry_after_s == 7
    assert error.value.hint == "try again in 7 s"
