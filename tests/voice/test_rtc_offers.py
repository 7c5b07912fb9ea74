"""What is offered and what is answered: candidates, sections, and everything that is no offer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import numpy as np
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from tests.rtc_peer import FRAGMENT, connected, offer_of, peer, post, request, until_free
from tests.voice.conftest import Stage
from voice.config import IceServer, WebRtcConfig
from voice.rtc import MAX_SDP_BYTES
from wire.ice import MAX_CANDIDATES
from wire.rtc import PacedTrack

pytestmark = pytest.mark.slow


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


async def test_a_codec_that_is_described_and_not_named_is_a_bad_offer(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        status, _, body = await post(base, offer.replace("a=sendrecv\r\n", "a=sendrecv\r\na=fmtp:101 0-15\r\n"))
    assert (status, '"code":"bad_sdp"' in body) == (400, True)


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


async def test_a_bundle_without_its_first_section_is_a_bad_offer(stage: Stage) -> None:
    async with stage.up() as base, peer() as connection:
        offer = await offer_of(connection)
        status, _, body = await post(base, offer.replace("a=group:BUNDLE 0", "a=group:BUNDLE x"))
        await until_free(base, 5)
    assert status == 400
    assert '"code":"bad_sdp"' in body


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


async def test_callers_are_told_of_the_profiles_stun_and_turn_servers(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "turn"
    path.write_text('se"cr\\et\n')
    path.chmod(0o600)
    servers = (IceServer("stun:127.0.0.1:9"), IceServer("turn:127.0.0.1:9?transport=udp", "offhook", path))
    stage.settings["webrtc"] = WebRtcConfig(ice_servers=servers)
    async with stage.up() as base, aiohttp.ClientSession() as http, http.options(f"{base}/v1/calls/rtc") as response:
        assert response.status == 204
        link = response.headers["link"]
    assert link == (
        '<stun:127.0.0.1:9>; rel="ice-server", <turn:127.0.0.1:9?transport=udp>; rel="ice-server"; '
        'username="offhook"; credential="se\\"cr\\\\et"; credential-type="password"'
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
