from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.speech import clip
from wire import opus
from wire.opus import RATES_HZ, BadPacket, Decoder, Encoder
from wire.pcm import Pcm16

HZ = 48000
LOUD = 300  # mean of a frame in which somebody speaks
MAX_DELAY_S = 0.015  # of coding and decoding, beside the packet itself


def speech(seconds: float, rate_hz: int = HZ) -> Pcm16:
    """From the middle of a recorded clip."""
    pcm, _ = clip("quick_brown_fox", rate_hz)
    begin = rate_hz // 2
    return pcm[begin : begin + round(seconds * rate_hz)]


def packets(pcm: Pcm16, rate_hz: int = HZ, encoder: Encoder | None = None) -> list[bytes]:
    encoder, size = encoder or Encoder(rate_hz), rate_hz // 50
    return [encoder.encode(pcm[i : i + size]) for i in range(0, pcm.size - size + 1, size)]


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_speech_comes_out_as_it_went_in_at_every_rate(rate_hz: int) -> None:
    pcm = speech(1.0, rate_hz)
    encoder, decoder = Encoder(rate_hz), Decoder(rate_hz)
    got = np.concatenate([decoder.decode(packet) for packet in packets(pcm, rate_hz, encoder)])
    assert got.size == pcm.size
    shifts = range(round(MAX_DELAY_S * rate_hz))
    alike = [np.corrcoef(pcm[: pcm.size - shift], got[shift:])[0, 1] for shift in shifts]
    assert max(alike) > 0.9


def test_what_one_rate_encodes_another_decodes() -> None:
    decoder = Decoder(16000)
    got = [decoder.decode(packet) for packet in packets(speech(0.2))]
    assert [pcm.size for pcm in got] == [320] * 10


def test_speech_packets_carry_a_copy_of_the_one_before() -> None:
    made = packets(speech(1.0))
    assert sum(map(opus.has_fec, made)) > 0.8 * len(made)


def test_a_lost_packet_comes_back_from_the_next_and_is_better_than_what_is_made_up() -> None:
    made = packets(speech(1.5))
    whole = [pcm for decoder in [Decoder(16000)] for pcm in map(decoder.decode, made)]
    recovered, concealed = [], []
    for lost in (at for at in range(10, len(made) - 1) if np.abs(whole[at].astype(int)).mean() > LOUD):
        for found, is_recovered in ((recovered, True), (concealed, False)):
            decoder = Decoder(16000)
            for packet in made[:lost]:
                decoder.decode(packet)
            pcm = decoder.recover(made[lost + 1], 320) if is_recovered else decoder.conceal(320)
            assert pcm.size == 320
            found.append(np.corrcoef(pcm.astype(float), whole[lost].astype(float))[0, 1])
    assert np.median(recovered) > 0.9
    assert np.median(recovered) > np.median(concealed) + 0.2


def test_what_is_made_up_dies_away() -> None:
    decoder = Decoder(16000)
    for packet in packets(speech(1.5)):
        last = decoder.decode(packet)
        if np.abs(last.astype(int)).mean() > LOUD:
            break
    levels = [float(np.abs(decoder.conceal(320).astype(int)).mean()) for _ in range(15)]
    assert levels[0] > 0.2 * LOUD
    assert levels[-1] < 0.1 * levels[0]


def test_bits_stay_within_what_speech_needs() -> None:
    made = packets(speech(2.0))
    kbit_s = 8 * sum(map(len, made)) / (0.02 * len(made)) / 1000
    assert 10 < kbit_s < 40
    assert min(map(len, made)) > 2  # no discontinuous transmission: who sends nothing is taken for gone


def test_how_long_a_packet_is() -> None:
    encoder = Encoder(HZ)
    for milliseconds in (10, 20, 40, 60):
        packet = encoder.encode(speech(0.1)[: HZ * milliseconds // 1000])
        assert opus.duration(packet) == HZ * milliseconds // 1000


@given(st.binary(max_size=200))
def test_bytes_from_the_network_are_decoded_or_refused(data: bytes) -> None:
    decoder = Decoder(16000)
    for attempt in (lambda: opus.duration(data), lambda: decoder.decode(data), lambda: decoder.recover(data, 320)):
        with contextlib.suppress(BadPacket):
            attempt()
    opus.has_fec(data)
