"""Calls over WebRTC on scripted services: signalling, media, bad input, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.contrib.media import MediaBlackhole

from load.lines.boundary import NoCall
from tests.rtc_caller import rtc_calling
from tests.speech import clip
from tests.voice.conftest import Stage
from voice.config import IceServer, WebRtcConfig
from voice.rtc import CONNECT_TIMEOUT_S, MAX_SDP_BYTES
from voice.transports.webrtc import MAX_EVENT_BYTES, SILENT_S
from wire import calls
from wire.config import EdgeConfig
from wire.ice import MAX_CANDIDATES, use_addresses
from wire.rtc import PacedTrack

pytestmark = pytest.mark.slow
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
    changed = asyncio.Event()
    connection.on("connectionstatechange", changed.set)
    async with asyncio.timeout(timeout_s):
        while connection.connectionState != "connected":
            changed.clear()
            await changed.wait()


async def test_a_call_is_heard_answered_and_hung_up(stage: Stage) -> None:
    pcm, _ = clip("hello_world", 48000)
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        ready = await caller.until(calls.Ready)
        caller.say(pcm)
        turn = await caller.until(calls.Turn)
        await caller.send(calls.Hangup())
        bye = await caller.until(calls.Bye)
        await caller.until_gone()
        await until_free(base, 5)

    assert (ready.sample_rate_hz, ready.output_sample_rate_hz) == (48000, 48000)
    assert turn.outcome == "answered"
    assert sum(turn.stages_ms.values()) == pytest.approx(turn.latency_ms, abs=0.5)
    assert bye.reason == "hangup"
    words = [word for message in caller.of(calls.Words) for word in message.words]
    assert " ".join(word.text for word in words) == turn.heard
    audio = np.concatenate([samples for _, samples in caller.audio]).astype(float)
    assert audio.size / 48000 == pytest.approx(words[-1].end_sample / 48000, abs=0.1)
    spectrum = np.abs(np.fft.rfft(audio * np.hanning(audio.size)))
    assert spectrum.argmax() * 48000 / audio.size == pytest.approx(220, abs=5)  # what the scripted voice sounds like
    assert np.sqrt(np.mean(audio**2)) == pytest.approx(8000 / np.sqrt(2), rel=0.1)  # and as loud


async def test_a_turn_that_the_hangup_cuts_off_is_told_before_the_bye(stage: Stage) -> None:
    stage.llm.replies = ["word " * 60]
    pcm, _ = clip("hello_world", 48000)
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        caller.say(pcm)
        await caller.until(calls.Position, lambda position: position.sample > 24000)
        await caller.send(calls.Hangup())
        await caller.until(calls.Bye)

    [turn] = caller.of(calls.Turn)
    assert caller.messages.index(turn) < caller.messages.index(caller.of(calls.Bye)[0])
    assert turn.outcome == "interrupted"
    assert 0 < len(turn.heard.split()) < 60
    assert turn.latency_ms is not None


async def test_positions_count_the_agents_samples_and_precede_none_of_its_words(stage: Stage) -> None:
    stage.greeting = "One two three four five."
    async with stage.up() as base, rtc_calling(base) as caller:
        await caller.until(calls.State, lambda s: s.state == "speaking")
        await caller.until(calls.State, lambda s: s.state == "listening")
    positions = [message.sample for message in caller.of(calls.Position)]
    assert positions == sorted(set(positions))
    assert positions[0] == 0
    assert max(b - a for a, b in itertools.pairwise(positions)) <= 4800 + 960


async def test_a_caller_without_data_channel_is_served_by_audio_alone(stage: Stage) -> None:
    stage.greeting = "Hello there."
    async with stage.up() as base:
        async with peer(channel=False) as connection:
            status, _, answer = await post(base, await offer_of(connection))
            await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            track = connection.getReceivers()[0].track
            async with asyncio.timeout(10):
                while np.abs((await track.recv()).to_ndarray()).max() < 1000:
                    pass
        await until_free(base, 10)
    assert status == 201


async def test_a_telephone_codec_is_heard_as_well(stage: Stage) -> None:
    stage.stt.texts = ["From a telephone."]
    pcm, _ = clip("hello_world", 48000)
    async with stage.up() as base, peer() as connection:
        pcmu = [codec for codec in RTCRtpSender.getCapabilities("audio").codecs if codec.mimeType == "audio/PCMU"]
        connection.getTransceivers()[0].setCodecPreferences(pcmu)
        status, _, answer = await post(base, await offer_of(connection), "?greeting=false")
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        hearing = MediaBlackhole()
        hearing.addTrack(connection.getReceivers()[0].track)
        await hearing.start()
        await connected(connection)
        track = connection.getSenders()[0].track
        assert isinstance(track, PacedTrack)
        for start in range(0, pcm.size, 960):
            await track.put(pcm[start : start + 960])
            await asyncio.sleep(0.018)
        async with asyncio.timeout(10):
            while True:
                if stage.stt.num_finals:
                    break
                await asyncio.sleep(0.05)
        await hearing.stop()
    assert status == 201
    assert "opus" not in answer
    assert stage.stt.num_samples > 0.8 * pcm.size / 3


async def test_delete_hangs_up_and_the_resource_is_gone(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        _, headers, answer = await post(base, await offer_of(connection))
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)
        url = base + headers["location"]
        assert (await request("DELETE", url))[0] == 200
        await until_free(base, 5)
        assert (await request("DELETE", url))[0] == 404
        assert (await request("PATCH", url, data="", headers=FRAGMENT))[0] == 404


async def test_candidates_may_come_later(stage: Stage) -> None:
    """The caller is told none of ours, so only the server's checks of the trickled ones can connect them."""
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        candidates = [line for line in offer.splitlines() if line.startswith("a=candidate:")]
        bare = "".join(f"{line}\r\n" for line in offer.splitlines() if not line.startswith(("a=candidate", "a=end-of")))
        _, headers, answer = await post(base, bare)
        deaf = "".join(
            f"{line}\r\n" for line in answer.splitlines() if not line.startswith(("a=candidate", "a=end-of"))
        )
        await connection.setRemoteDescription(RTCSessionDescription(deaf, "answer"))
        fragment = "\r\n".join(["m=audio 9 UDP/TLS/RTP/SAVPF 96", "a=mid:0", *candidates, "a=end-of-candidates", ""])
        status, _ = await request("PATCH", base + headers["location"], data=fragment, headers=FRAGMENT)
        assert status == 204
        await connected(connection)


async def test_a_caller_whose_candidates_we_never_learn_is_found_by_its_checks(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        hidden = offer.replace(" 127.0.0.1 ", " 0a1b2c3d.local ")
        _, _, answer = await post(base, hidden)
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)


@pytest.mark.parametrize(
    ("fragment", "status"),
    [
        ("a=mid:0\r\na=candidate:1 1 udp x 127.0.0.1 5000 typ host\r\n", 400),
        ("a=mid:0\r\na=candidate:1 1 udp 1 127.0.0.1 99999999 typ host\r\n", 204),
        ("a=ice-ufrag:another\r\na=ice-pwd:0123456789012345678901\r\n", 422),
        ("", 204),
        ("nonsense", 204),
    ],
)
async def test_bad_candidates_are_refused_and_the_call_goes_on(stage: Stage, fragment: str, status: int) -> None:
    async with stage.up() as base, peer() as connection:
        _, headers, answer = await post(base, await offer_of(connection))
        assert (await request("PATCH", base + headers["location"], data=fragment, headers=FRAGMENT))[0] == status
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)


async def test_the_answer_names_no_address_but_loopback_and_no_video(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        connection.addTransceiver("video")
        connection.addTransceiver("audio")
        status, _, answer = await post(base, await offer_of(connection))
    assert status == 201
    addresses = {line.split()[4] for line in answer.splitlines() if line.startswith("a=candidate:")}
    assert addresses == {"127.0.0.1"}
    sections = answer.split("m=")[1:]
    directions = [("sendrecv" if "a=sendrecv" in s else "inactive", s.split()[0]) for s in sections]
    assert directions.count(("sendrecv", "audio")) == 1
    assert ("inactive", "video") in directions


async def test_candidates_are_counted_and_too_many_are_refused(stage: Stage) -> None:
    many = "".join(f"a=candidate:{i} 1 udp {i} 127.0.0.1 {20000 + i} typ host\r\n" for i in range(MAX_CANDIDATES + 1))
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        status, _, _ = await post(base, offer.replace("a=sendrecv\r\n", f"a=sendrecv\r\n{many}"))
        assert status == 413
        _, headers, answer = await post(base, offer)
        fragment = "a=mid:0\r\n" + many
        assert (await request("PATCH", base + headers["location"], data=fragment, headers=FRAGMENT))[0] == 413
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)  # what came before the limit counts


async def test_the_voice_goes_to_the_section_that_goes_both_ways(stage: Stage) -> None:
    stage.greeting = "Hello there."
    async with stage.up() as base:
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.addTransceiver("audio", "sendonly")
        connection.addTransceiver(PacedTrack(), "sendrecv")
        status, _, answer = await post(base, await offer_of(connection))
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        track = connection.getTransceivers()[1].receiver.track
        async with asyncio.timeout(10):
            while np.abs((await track.recv()).to_ndarray()).max() < 1000:
                pass
        await connection.close()
    assert status == 201


@pytest.mark.parametrize("lacking", ["a=fingerprint", "a=setup", "a=ice-ufrag", "a=ice-pwd"])
async def test_an_offer_that_cannot_be_secured_takes_no_line(stage: Stage, lacking: str) -> None:
    async with stage.up() as base, peer() as connection:
        lines = [line for line in (await offer_of(connection)).splitlines() if not line.startswith(lacking)]
        status, _, body = await post(base, "\r\n".join([*lines, ""]))
        await until_free(base, 2)
    assert status == 400
    assert "lacks a=" in body


async def test_media_without_a_direction_goes_both_ways(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        lines = [line for line in (await offer_of(connection)).splitlines() if line != "a=sendrecv"]
        status, _, answer = await post(base, "\r\n".join([*lines, ""]))
    assert status == 201
    assert "a=sendrecv" in answer


@pytest.mark.parametrize("digits", ["9" * 5000, "99999999"])
async def test_huge_numbers_are_bad_requests(stage: Stage, digits: str) -> None:
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        candidate = f"a=candidate:1 1 udp {digits} 127.0.0.1 {digits} typ host\r\n"
        assert (await post(base, offer, f"?version={digits}"))[0] == 400
        assert (await post(base, offer.replace("a=sendrecv\r\n", f"a=sendrecv\r\n{candidate}")))[0] == 201


GARBAGE = [
    "",
    "hello",
    "v=0",
    "v=0\r\nm=audio",
    "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n",
    "\0" * 100,
    "v=0\r\n" * 999,
]


@pytest.mark.parametrize("sdp", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_is_no_offer(stage: Stage, sdp: str) -> None:
    async with stage.up() as base:
        status, _, body = await post(base, sdp)
        await until_free(base, 2)
    assert status in (400, 422)
    assert '"code":"bad_sdp"' in body or '"code":"no_audio"' in body


@pytest.mark.parametrize("cut", range(0, 40, 3))
async def test_a_broken_offer_is_refused_or_answered_but_never_an_error_of_ours(stage: Stage, cut: int) -> None:
    async with stage.up() as base, peer() as connection:
        lines = (await offer_of(connection)).splitlines()
        for broken in (lines[:cut], lines[:cut] + lines[cut + 1 :], [*lines[:cut], lines[cut % len(lines)][::-1]]):
            status, headers, _ = await post(base, "\r\n".join([*broken, ""]))
            assert status in (201, 400, 422)
            if status == 201:
                await request("DELETE", base + headers["location"])
            await until_free(base, 5)


@pytest.mark.parametrize(
    ("direction", "kind", "code"),
    [("recvonly", "audio", "no_audio"), ("sendonly", "audio", "no_audio"), ("sendrecv", "video", "no_audio")],
)
async def test_an_offer_without_audio_both_ways_is_refused(stage: Stage, direction: str, kind: str, code: str) -> None:
    async with stage.up() as base:
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.addTransceiver(kind, direction)
        status, _, body = await post(base, await offer_of(connection))
        await connection.close()
    assert status == 422
    assert f'"code":"{code}"' in body


async def test_bad_requests_are_told_why(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        answers = [
            await post(base, offer, headers={"content-type": "application/json"}),
            await post(base, "v=0" + "x" * MAX_SDP_BYTES),
            await post(base, b"v=0\xff"),
            await post(base, offer, "?languge=en"),
            await post(base, offer, "?greeting=perhaps"),
            await post(base, offer, "?version=2"),
            await post(base, offer, "?sample_rate_hz=8000"),
        ]
        await until_free(base, 2)
    assert [(status, body.split('"code":"')[1].split('"')[0]) for status, _, body in answers] == [
        (415, "bad_media_type"),
        (413, "too_large"),
        (400, "bad_sdp"),
        (400, "bad_message"),
        (400, "bad_message"),
        (400, "bad_version"),
        (400, "bad_message"),
    ]
    assert "did you mean 'language'" in answers[3][2]


async def test_of_fifty_offers_at_once_as_many_are_taken_as_there_are_lines_and_lost_ones_are_freed(
    stage: Stage,
) -> None:
    """None of them ever sends a packet, so the lines are free again after the time to connect."""
    async with stage.up() as base:
        async with peer() as connection:
            offer = await offer_of(connection)
        answers = await asyncio.gather(*(post(base, offer) for _ in range(50)))
        statuses = [status for status, _, _ in answers]
        assert (statuses.count(201), statuses.count(429)) == (2, 48)
        assert all(int(headers["retry-after"]) >= 1 for status, headers, _ in answers if status == 429)
        await until_free(base, CONNECT_TIMEOUT_S + 5)


async def test_a_caller_who_vanishes_frees_the_line(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        _, _, answer = await post(base, await offer_of(connection))
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await connected(connection)
        for transceiver in connection.getTransceivers():  # the network is gone: nobody says goodbye
            for protocol in transceiver.sender.transport.transport._connection._protocols:
                protocol.transport.abort()
        await until_free(base, SILENT_S + 5)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("x" * (MAX_EVENT_BYTES + 1), "too_large"),
        (b"\1\2\3", "bad_message"),
        ("{", "bad_json"),
        ('{"type":"hello","version":1}', "bad_message"),
        ('{"type":"played","sample":"one"}', "bad_message"),
    ],
    ids=["long", "binary", "no json", "hello", "wrong type"],
)
async def test_a_bad_message_on_the_data_channel_ends_the_call_and_says_why(
    stage: Stage, data: str | bytes, code: str
) -> None:
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        channel: RTCDataChannel = caller.line._channel  # type: ignore[attr-defined]
        channel.send(data)
        error = await caller.until(calls.Error)
        await caller.until_gone()
        await until_free(base, 5)
    assert error.code == code


async def test_a_message_without_end_on_the_data_channel_ends_the_call(stage: Stage) -> None:
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        channel: RTCDataChannel = caller.line._channel  # type: ignore[attr-defined]
        channel.transport._remote_max_message_size = 0  # this caller does not keep to what the answer allowed
        channel.send("x" * (8 << 20))
        await caller.until_gone(30)
        await until_free(base, 10)


async def test_a_draining_server_takes_no_call(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        stage.lifecycle.draining = True
        status, _, body = await post(base, await offer_of(connection))
    assert (status, '"code":"unavailable"' in body) == (503, True)


async def test_a_draining_server_says_goodbye_to_its_calls(stage: Stage) -> None:
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        stage.lifecycle.draining = True
        bye = await caller.until(calls.Bye)
        await caller.until_gone()
        await until_free(base, 5)
    assert bye.reason == "drain"
    assert caller.num_samples > 0


async def test_a_busy_server_is_told_in_words(stage: Stage) -> None:
    stage.settings["max_calls"] = 1
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        with pytest.raises(NoCall, match="lines are busy"):
            async with rtc_calling(base, QUIET):
                pass


async def test_an_unknown_voice_is_told_in_the_call(stage: Stage) -> None:
    async with stage.up() as base, rtc_calling(base, calls.Hello(1, 48000, 48000, voice="nobody")) as caller:
        error = await caller.until(calls.Error)
        await until_free(base, 5)
    assert error.code == "unknown_voice"


async def test_callers_are_told_of_the_profiles_stun_and_turn_servers(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "turn"
    path.write_text("secret\n")
    path.chmod(0o600)
    servers = (IceServer("stun:127.0.0.1:9"), IceServer("turn:127.0.0.1:9?transport=udp", "offhook", path))
    stage.settings["webrtc"] = WebRtcConfig(ice_servers=servers)
    async with stage.up() as base, aiohttp.ClientSession() as http, http.options(f"{base}/v1/calls/rtc") as response:
        assert response.status == 204
        link = response.headers["link"]
    assert link == (
        '<stun:127.0.0.1:9>; rel="ice-server", <turn:127.0.0.1:9?transport=udp>; rel="ice-server"; '
        'username="offhook"; credential="secret"; credential-type="password"'
    )


@pytest.mark.parametrize(
    ("url", "user", "says"),
    [
        ("http://127.0.0.1", None, "no address such as"),
        ("stun:", None, "no address such as"),
        ("turn:127.0.0.1:3478", None, "needs username"),
        ("turn:127.0.0.1:3478", "offhook", "credential_file"),
    ],
)
def test_a_server_that_cannot_be_used_is_no_setting(url: str, user: str | None, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        IceServer(url, user)


async def test_the_key_is_asked_for(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("0123456789abcdef")
    path.chmod(0o600)
    stage.edge = EdgeConfig(port=0, api_key_file=path)
    async with stage.up() as base:
        with pytest.raises(NoCall, match="wants an API key"):
            async with rtc_calling(base, QUIET):
                pass
        async with rtc_calling(base, QUIET, key="0123456789abcdef") as caller:
            await caller.until(calls.Ready)


@pytest.mark.timeout(300)
async def test_two_hundred_calls_leave_nothing_behind(stage: Stage) -> None:
    """Hung up in turn by message, by DELETE, by closing, and before the media was there."""
    stage.settings["max_calls"] = 4

    async def one(base: str, number: int) -> None:
        if number % 4 == 0:
            async with rtc_calling(base, QUIET) as caller:
                await caller.until(calls.Ready)
                await caller.send(calls.Hangup())
                await caller.until_gone()
            return
        async with peer(channel=number % 4 != 2) as connection:
            _, headers, answer = await post(base, await offer_of(connection), "?greeting=false")
            if number % 4 == 3:
                await request("DELETE", base + headers["location"])
                return
            await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
            await connected(connection)
            if number % 4 == 1:
                await request("DELETE", base + headers["location"])

    async with stage.up() as base:

        async def rounds(count: int) -> None:
            for start in range(0, count, 4):
                await asyncio.gather(*(one(base, number) for number in range(start, start + 4)))
                await until_free(base, 10)

        await rounds(20)
        before = _held()
        await rounds(200)
        after = _held()

    assert after["peers"] == 0
    assert {k: after[k] - before[k] for k in ("tasks", "sockets", "threads")} == {
        "tasks": 0,
        "sockets": 0,
        "threads": 0,
    }
    assert after["memory_bytes"] - before["memory_bytes"] < 48 << 20  # the allocator's own swing; a peer holds more


def _held() -> dict[str, int]:
    gc.collect()
    links = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "peers": sum(type(thing) is RTCPeerConnection for thing in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "sockets": sum(link.startswith("socket:") for link in links),
        # asyncio's own pool grows up to its bound as it pleases
        "threads": sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate()),
        "memory_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
    }
