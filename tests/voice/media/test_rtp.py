from __future__ import annotations

import numpy as np
import pytest
from aiortc import RTCRtpCodecParameters
from aiortc.codecs import get_encoder
from av import AudioFrame

from tests.speech import clip
from voice.media.jitter import Packet
from voice.media.rtp import RtpAudio
from wire import opus
from wire.pcm import Pcm16

HZ = 16000
OPUS = RTCRtpCodecParameters("audio/opus", 48000, 2, 111)
PCMU = RTCRtpCodecParameters("audio/PCMU", 8000, 1, 0)
PCMA = RTCRtpCodecParameters("audio/PCMA", 8000, 1, 8)
G722 = RTCRtpCodecParameters("audio/G722", 8000, 1, 9)
CODECS = {codec.payloadType or 0: codec for codec in (OPUS, PCMU, PCMA, G722)}


def payloads(codec: RTCRtpCodecParameters, pcm: Pcm16) -> list[bytes]:
    """20 ms each, of audio at 16 kHz."""
    frames = [pcm[at : at + 320] for at in range(0, pcm.size - 319, 320)]
    if codec is OPUS:
        encoder = opus.Encoder(HZ)
        return [encoder.encode(frame) for frame in frames]
    made, stock = [], get_encoder(codec)
    for number, frame in enumerate(frames):
        wrapped = AudioFrame.from_ndarray(np.ascontiguousarray(frame)[np.newaxis], "s16", "mono")
        wrapped.sample_rate, wrapped.pts = HZ, number * 320
        made += stock.encode(wrapped)[0]
    return made


def heard(codec: RTCRtpCodecParameters, sent: list[bytes], lost: set[int] = frozenset()) -> Pcm16:
    audio, parts = RtpAudio(HZ, CODECS), []
    size = codec.clockRate // 50
    for number, payload in enumerate(sent):
        if number not in lost:
            packet = Packet(number, number * size, 1, payload, audio.num_samples(payload, codec.payloadType or 0))
            parts.append(audio.push(packet, codec.payloadType or 0, 0.02 * number))
    parts.append(audio.take(0.02 * len(sent) + 0.01))
    return np.concatenate(parts)


def likeness(pcm: Pcm16, got: Pcm16) -> float:
    size = min(pcm.size, got.size) - 400
    return max(float(np.corrcoef(pcm[:size], got[shift : shift + size])[0, 1]) for shift in range(400))


@pytest.mark.parametrize("codec", [OPUS, PCMU, PCMA, G722], ids=lambda codec: codec.mimeType)
def test_what_was_said_is_heard(codec: RTCRtpCodecParameters) -> None:
    pcm, _ = clip("hello_world", HZ)
    got = heard(codec, payloads(codec, pcm))
    assert got.size == pytest.approx(pcm.size, abs=700)
    assert likeness(pcm, got) > 0.9


@pytest.mark.parametrize("codec", [OPUS, PCMU, G722], ids=lambda codec: codec.mimeType)
def test_what_is_lost_is_made_up_for_and_nothing_is_shifted(codec: RTCRtpCodecParameters) -> None:
    pcm, _ = clip("hello_world", HZ)
    sent = payloads(codec, pcm)
    whole = heard(codec, sent)
    lost = set(range(7, len(sent) - 1, 12))
    got = heard(codec, sent, lost)
    assert got.size == whole.size
    assert likeness(whole, got) > 0.9
    gone = np.concatenate([whole[: 320 * 7], whole[320 * 8 :]])
    assert likeness(whole, gone) < likeness(whole, got)


def test_a_line_on_which_nothing_comes_sounds_like_its_background() -> None:
    rng = np.random.default_rng(2)
    noise = (rng.standard_normal(2 * HZ) * 40).astype(np.int16)
    audio = RtpAudio(HZ, CODECS)
    for number, payload in enumerate(payloads(PCMU, noise)):
        audio.push(Packet(number, number * 160, 1, payload, 160), 0, 0.02 * number)
    made = audio.take(5.0)
    assert made.size / HZ == pytest.approx(3.0, abs=0.03)
    level = float(np.sqrt((made[HZ:].astype(float) ** 2).mean()))
    assert 10 < level < 60


def test_bytes_that_are_no_audio_are_left_out() -> None:
    pcm, _ = clip("hello_world", HZ)
    sent = payloads(OPUS, pcm)
    sent[10] = b"\xff\xff\xff"
    got = heard(OPUS, sent)
    assert abs(got.size - pcm.size) < 2 * 320 + 320
    assert audio_of_nobody().size == 0


def audio_of_nobody() -> Pcm16:
    """A payload type nobody agreed on."""
    return RtpAudio(HZ, CODECS).push(Packet(0, 0, 1, b"x", 0), 99, 0.0)


def test_a_codec_that_changes_in_the_call_loses_no_word_and_no_count() -> None:
    pcm, _ = clip("hello_world", HZ)
    audio, opus_sent, pcmu_sent = RtpAudio(HZ, CODECS), payloads(OPUS, pcm), payloads(PCMU, pcm)
    half = len(opus_sent) // 2
    arrived = [n for n in range(half) if n != half - 3]  # one is lost, and those behind it are held
    sent = [(Packet(n, n * 960, 1, opus_sent[n], 960), 111) for n in arrived]
    sent += [(Packet(n, n * 160, 1, pcmu_sent[n], 160), 0) for n in range(half, len(pcmu_sent))]
    got = np.concatenate([audio.push(packet, codec, 0.02 * packet.sequence) for packet, codec in sent])
    assert got.size == pytest.approx(pcm.size, abs=700)
    assert likeness(pcm, got) > 0.85
    counts = audio.take_counts()
    assert (counts.received, counts.lost) == (len(pcmu_sent) - 1, 1)
    assert audio.take_counts().received == 0
