"""Golden calls: waveforms laid out to the millisecond, and what must be measured in them."""

from __future__ import annotations

import numpy as np
import pytest

from load.alignment import HeardWord
from load.measure import turns, window_s
from load.record import CallRecord, Said
from tests.load.test_hearing import silence, tone
from wire.pcm import Pcm16

RATE_HZ = 16000
CLOSE = 0.011


def call(
    said: list[Said], heard: list[tuple[float, Pcm16]], messages: list[tuple[float, dict]] | None = None
) -> CallRecord:
    return CallRecord(
        number=3,
        scenario="golden",
        transport="websocket",
        seed=0,
        sample_rate_hz=RATE_HZ,
        output_sample_rate_hz=RATE_HZ,
        scheduled_s=0.0,
        placed_s=0.0,
        ended_s=20.0,
        said=said,
        heard=[packet for at_s, pcm in heard for packet in paced(pcm, at_s)],
        messages=messages or [],
    )


def paced(pcm: Pcm16, at_s: float) -> list[tuple[float, Pcm16]]:
    size = RATE_HZ // 50
    return [(at_s + i * 0.02, pcm[n : n + size]) for i, n in enumerate(range(0, pcm.size, size))]


QUESTION = Said("q1", "What time do you open?", 1.0, 2.0)


def test_latency_runs_from_the_last_sample_to_the_packet_of_the_first_audible_one() -> None:
    answer = np.concatenate([silence(0.1, RATE_HZ), tone(1.0, RATE_HZ)])
    [turn] = turns(call([QUESTION], [(2.5, answer)]))
    assert turn.outcome == "answered"
    assert turn.first_packet_s == pytest.approx(0.5)
    assert turn.latency_s == turn.first_audible_s == pytest.approx(0.6, abs=CLOSE)
    assert (turn.gaps_s, turn.num_clicks) == ((), 0)


def test_a_filler_is_reported_beside_the_answer_and_is_not_it() -> None:
    filler, answer = tone(0.4, RATE_HZ), tone(1.0, RATE_HZ)
    words = [
        HeardWord("One", 2.4, 2.6),
        HeardWord("moment.", 2.6, 2.8),
        HeardWord("We", 3.5, 3.7),
        HeardWord("open", 3.7, 4),
    ]
    messages = [
        (2.3, {"type": "final", "turn": 1, "text": "x"}),
        (3.4, {"type": "reply", "turn": 1, "delta": "We open at nine."}),
    ]
    [turn] = turns(call([QUESTION], [(2.4, filler), (3.5, answer)], messages), {0: words})
    assert turn.first_audible_s == pytest.approx(0.4, abs=CLOSE)
    assert turn.latency_s == pytest.approx(1.5, abs=CLOSE)
    assert turn.recognised == "One moment. We open"


def test_an_opener_in_one_breath_with_the_answer_is_told_apart_by_its_words() -> None:
    words = [HeardWord("Well,", 2.4, 2.6), HeardWord("We", 2.7, 2.9), HeardWord("open", 2.9, 3.1)]
    messages = [
        (2.3, {"type": "final", "turn": 1, "text": "x"}),
        (2.3, {"type": "reply", "turn": 1, "delta": "We open."}),
    ]
    [turn] = turns(call([QUESTION], [(2.4, tone(1.0, RATE_HZ))], messages), {0: words})
    assert turn.latency_s == pytest.approx(0.7, abs=0.001)


def test_a_filler_alone_is_a_missed_answer() -> None:
    words = [HeardWord("One", 2.4, 2.6), HeardWord("moment.", 2.6, 2.8)]
    messages = [
        (2.3, {"type": "final", "turn": 1, "text": "x"}),
        (3.4, {"type": "reply", "turn": 1, "delta": "We open at nine."}),
    ]
    [turn] = turns(call([QUESTION], [(2.4, tone(0.4, RATE_HZ))], messages), {0: words})
    assert (turn.outcome, turn.latency_s) == ("missed", None)
    assert turn.first_audible_s == pytest.approx(0.4, abs=CLOSE)


@pytest.mark.parametrize(
    "pcm", [silence(2.0, RATE_HZ), np.random.default_rng(1).integers(-60, 60, 32000).astype(np.int16)]
)
def test_silence_and_comfort_noise_are_no_answer(pcm: np.ndarray) -> None:
    [turn] = turns(call([QUESTION], [(2.5, pcm)]))
    assert (turn.outcome, turn.latency_s, turn.first_audible_s) == ("missed", None, None)
    assert turn.first_packet_s == pytest.approx(0.5)


def test_an_agent_that_speaks_before_the_turn_is_over_has_cut_in() -> None:
    [early] = turns(call([QUESTION], [(1.6, tone(2.0, RATE_HZ))]))
    [just] = turns(call([QUESTION], [(1.97, tone(2.0, RATE_HZ))]))
    assert early.outcome == "cut_in"
    assert just.outcome != "cut_in"


def test_where_the_player_ran_dry_is_a_gap_of_the_answer() -> None:
    [turn] = turns(call([QUESTION], [(2.5, tone(0.4, RATE_HZ)), (3.02, tone(0.4, RATE_HZ))]))
    assert turn.gaps_s == (pytest.approx(0.12, abs=0.001),)


def test_pieces_that_do_not_fit_are_clicks() -> None:
    piece = tone(0.25, RATE_HZ, -6.0, 200.0)
    cut = np.concatenate([piece[: RATE_HZ // 800], -piece[RATE_HZ // 800 :]])
    [turn] = turns(call([QUESTION], [(2.5, cut)]))
    assert turn.num_clicks == 1


def test_barge_in_is_measured_from_the_callers_onset_to_the_agents_last_sample() -> None:
    barge = Said("q2", "No, wait.", 3.5, 4.2, is_barge_in=True)
    messages = [(3.75, {"type": "clear", "turn": 1, "sample": 1})]
    first, second = turns(call([QUESTION, barge], [(2.5, tone(1.4, RATE_HZ)), (4.8, tone(0.5, RATE_HZ))], messages))
    assert (first.outcome, second.outcome) == ("interrupted", "answered")
    assert second.barge_in_stop_s == pytest.approx(0.4, abs=CLOSE)
    assert second.stale_s == pytest.approx(0.15, abs=2 * CLOSE)
    assert second.latency_s == pytest.approx(0.6, abs=CLOSE)


def test_a_backchannel_asks_for_nothing() -> None:
    yes = Said("mm", "Mm-hm.", 3.0, 3.2, is_backchannel=True)
    first, second = turns(call([QUESTION, yes], [(2.5, tone(2.0, RATE_HZ))]))
    assert (first.outcome, second.outcome) == ("answered", "unasked")


@pytest.mark.parametrize(("claim_ms", "misreported"), [(590.0, False), (480.0, True)])
def test_a_server_that_flatters_itself_is_found_out(claim_ms: float, misreported: bool) -> None:
    messages = [
        (2.2, {"type": "final", "turn": 7, "text": "x"}),
        (3.9, {"type": "turn", "turn": 7, "latency_ms": claim_ms, "stages_ms": {"tts": 60.0}, "heard": "Nine."}),
    ]
    [turn] = turns(call([QUESTION], [(2.6, tone(1.0, RATE_HZ))], messages))
    assert turn.server_latency_s == claim_ms / 1000
    assert turn.server_stages_s == {"tts": 0.06}
    assert (turn.heard, turn.is_misreported) == ("Nine.", misreported)


def test_turns_are_matched_to_the_utterance_they_followed() -> None:
    second = Said("q2", "And on Sunday?", 5.0, 6.0)
    messages = [
        (2.2, {"type": "final", "turn": 1, "text": "x"}),
        (6.2, {"type": "final", "turn": 2, "text": "y"}),
        (4.0, {"type": "turn", "turn": 1, "latency_ms": 100.0}),
        (9.0, {"type": "turn", "turn": 2, "latency_ms": 200.0}),
    ]
    found = turns(call([QUESTION, second], [(2.5, tone(0.5, RATE_HZ)), (6.4, tone(0.5, RATE_HZ))], messages))
    assert [turn.server_latency_s for turn in found] == [0.1, 0.2]
    assert [turn.latency_s for turn in found] == [pytest.approx(0.5, abs=CLOSE), pytest.approx(0.4, abs=CLOSE)]
    assert window_s(call([QUESTION, second], []), 1) == (6.0, 20.0)


def test_a_server_that_tells_nothing_is_measured_all_the_same() -> None:
    [turn] = turns(call([QUESTION], [(2.5, tone(0.5, RATE_HZ))]))
    assert (turn.server_latency_s, turn.heard, turn.reply, turn.is_misreported) == (None, None, "", False)
