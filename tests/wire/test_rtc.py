from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError

from wire import opus
from wire.calls import RTC_HZ
from wire.pcm import AUDIO_FRAME_S
from wire.rtc import FRAME_SAMPLES, MAX_FRAMES, SETTLED_FRAMES, PacedTrack, asking_for_fec


def ramp(num_samples: int, start: int = 1) -> np.ndarray:
    return (np.arange(start, start + num_samples) % 30000 + 1).astype(np.int16)


async def frames(track: PacedTrack, count: int) -> list[np.ndarray]:
    received = []
    for number in range(count):
        frame = await track.recv()
        assert frame.samples == FRAME_SAMPLES
        left, right = frame.to_ndarray().reshape(-1, 2).T
        assert np.array_equal(left, right)
        received.append((number, frame.pts, left))
    assert [pts - received[0][1] for _, pts, _ in received] == [n * FRAME_SAMPLES for n, _, _ in received]
    return [pcm for _, _, pcm in received]


async def test_silence_leaves_while_nothing_is_given() -> None:
    assert not np.concatenate(await frames(PacedTrack(), 3)).any()


async def test_audio_leaves_at_once_and_whole() -> None:
    track = PacedTrack()
    pcm = ramp(5 * FRAME_SAMPLES)
    await track.put(pcm)
    started_s = time.monotonic()
    assert np.array_equal(np.concatenate(await frames(track, 5)), pcm)
    assert time.monotonic() - started_s < 5 * AUDIO_FRAME_S  # not paced a second time


async def test_the_last_part_of_a_frame_is_filled_up_and_not_kept() -> None:
    track = PacedTrack()
    pcm = ramp(FRAME_SAMPLES + 100)
    await track.put(pcm)
    audio = np.concatenate(await frames(track, 3))
    assert np.array_equal(audio[: pcm.size], pcm)
    assert not audio[pcm.size :].any()


async def test_frames_are_announced_with_the_sample_they_begin_with() -> None:
    begun: list[int] = []
    track = PacedTrack(begun.append)
    await track.put(ramp(FRAME_SAMPLES + 100))
    await frames(track, 3)  # the third is silence: nothing given is in it
    await track.put(ramp(FRAME_SAMPLES))
    await frames(track, 1)
    assert begun == [0, FRAME_SAMPLES, FRAME_SAMPLES + 100]


async def test_cleared_audio_does_not_leave() -> None:
    track = PacedTrack()
    await track.put(ramp(2 * FRAME_SAMPLES + 50))
    track.clear()
    assert not np.concatenate(await frames(track, 3)).any()


async def test_a_giver_who_is_far_ahead_waits() -> None:
    track = PacedTrack()
    giving = asyncio.create_task(track.put(ramp((MAX_FRAMES + 2) * FRAME_SAMPLES)))
    await asyncio.sleep(0)
    assert not giving.done()
    await frames(track, MAX_FRAMES + 2)
    await giving


async def test_a_stall_is_not_made_up_for_by_a_burst_of_silence() -> None:
    track = PacedTrack()
    await frames(track, 1)
    time.sleep(0.3)  # noqa: ASYNC251 - the loop stands still
    started_s = time.monotonic()
    await frames(track, 4)
    assert time.monotonic() - started_s >= 2 * AUDIO_FRAME_S


async def test_a_stopped_track_ends() -> None:
    track = PacedTrack()
    track.stop()
    with pytest.raises(MediaStreamError):
        await track.recv()


async def test_opus_is_encoded_here_and_silence_only_until_it_has_settled() -> None:
    track, decoder = PacedTrack(), opus.Decoder(RTC_HZ)
    track.encodes_opus = True
    tone = (8000 * np.sin(2 * np.pi * 300 * np.arange(10 * FRAME_SAMPLES) / RTC_HZ)).astype(np.int16)

    async def heard(count: int) -> tuple[list[bytes], np.ndarray]:
        packets = [await track.recv() for _ in range(count)]
        assert [packet.pts for packet in packets] == [packets[0].pts + n * FRAME_SAMPLES for n in range(count)]
        payloads = [bytes(packet) for packet in packets]
        return payloads, np.concatenate([decoder.decode(payload) for payload in payloads])

    silent, pcm = await heard(SETTLED_FRAMES + 5)
    assert np.abs(pcm).max() < 10
    assert len(set(silent[SETTLED_FRAMES:])) == 1
    await track.put(tone)
    _, pcm = await heard(10)
    assert np.abs(pcm[5 * FRAME_SAMPLES :]).max() == pytest.approx(8000, rel=0.2)
    _, pcm = await heard(10)
    assert np.abs(pcm[5 * FRAME_SAMPLES :]).max() < 100


def test_what_is_asked_for_is_fec() -> None:
    lines = ("v=0", "m=audio 9 UDP/TLS/RTP/SAVPF 111 0", "a=rtpmap:111 opus/48000/2", "a=rtpmap:0 PCMU/8000", "")
    asked = asking_for_fec("\r\n".join(lines))
    assert "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1;usedtx=0\r\n" in asked
    assert "fmtp:0" not in asked
