"""Calls over WebRTC on scripted services: media, messages, refusals."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import numpy as np
import pytest
from aiortc import RTCDataChannel, RTCRtpSender, RTCSessionDescription
from aiortc.contrib.media import MediaBlackhole

from load.lines.boundary import NoCall
from tests.rtc_caller import rtc_calling
from tests.rtc_peer import FRAGMENT, QUIET, connected, offer_of, peer, post, request, until_free
from tests.speech import clip
from tests.voice.conftest import Stage
from voice.transports.webrtc import MAX_EVENT_BYTES
from wire import calls
from wire.config import EdgeConfig
from wire.rtc import PacedTrack

pytestmark = pytest.mark.slow


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


async def test_keys_that_are_told_over_rtp_are_answered_and_silence_the_agent(stage: Stage) -> None:
    stage.llm.replies = ["word " * 60, "Done."]
    pcm, _ = clip("hello_world", 48000)
    async with stage.up() as base, rtc_calling(base, QUIET) as caller:
        await caller.until(calls.Ready)
        caller.say(pcm)
        await caller.until(calls.Position, lambda position: position.sample > 24000)
        await caller.send(calls.Dtmf("47"))
        await caller.until(calls.Clear)
        await caller.send(calls.Dtmf("11#"))
        second = await caller.until(calls.Turn, lambda turn: turn.turn == 2)

    assert caller.of(calls.Turn)[0].outcome == "interrupted"
    assert (second.text, second.heard) == ("[The caller keyed in: 4 7 1 1]", "Done.")
    assert not [message for message in caller.of(calls.Final) if "Hello" in message.text and message.turn == 2]


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
