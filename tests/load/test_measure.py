"""Golden calls: waveforms laid out to the millisecond, and what must be measured in them."""

from __future__ import annotations

import numpy as np
import pytest

from load.alignment import HeardWord
from load.measure import BEFORE_ALL, num_answers, turns, window_s
from load.record import CallRecord, Said
from load.track import track_of
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


def window_of(record: CallRecord, index: int) -> tuple[float, float]:
    return window_s(record, track_of(record), index)


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


def test_speech_that_begins_while_a_caller_barges_into_silence_is_no_answer_to_him() -> None:
    barge = Said("q2", "Hello?", 3.5, 5.0, is_barge_in=True)
    _, turn = turns(call([QUESTION, barge], [(4.0, tone(3.0, RATE_HZ))]))
    assert turn.outcome == "cut_in"


@pytest.mark.parametrize("again_s", [4.0, 4.001, 4.0023, 4.0047])
def test_an_answer_that_goes_on_until_the_caller_speaks_again_is_no_answer_to_his_barge_in(again_s: float) -> None:
    barge = Said("q2", "Wait.", 3.0, 3.5, is_barge_in=True)
    again = Said("q3", "Hello?", again_s, 4.5)
    _, turn, _ = turns(call([QUESTION, barge, again], [(2.5, tone(1.7, RATE_HZ)), (5.0, tone(1.0, RATE_HZ))]))
    assert (turn.outcome, turn.latency_s, turn.first_audible_s) == ("missed", None, None)


@pytest.mark.parametrize("samples", range(0, 80, 10))
def test_an_agent_that_was_speaking_when_the_caller_began_has_not_cut_in(samples: int) -> None:
    """Wherever its waveform is at that moment."""
    [turn] = turns(call([QUESTION], [(0.4 - samples / RATE_HZ, tone(1.0, RATE_HZ)), (2.5, tone(1.0, RATE_HZ))]))
    assert (turn.outcome, turn.latency_s) == ("answered", pytest.approx(0.5, abs=CLOSE))


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
    assert window_of(call([QUESTION, second], []), 1) == (6.0, 20.0)


def test_a_server_that_tells_nothing_is_measured_all_the_same() -> None:
    [turn] = turns(call([QUESTION], [(2.5, tone(0.5, RATE_HZ))]))
    assert (turn.server_latency_s, turn.heard, turn.reply, turn.is_misreported) == (None, None, "", False)


ANSWER = np.random.default_rng(7).normal(0, 3000, 4 * RATE_HZ).astype(np.int16)  # no part of it resembles another
REPLY = [
    (2.3, {"type": "final", "turn": 1, "text": "what time do you open"}),
    (2.4, {"type": "reply", "turn": 1, "delta": "We open at nine."}),
]


def report(
    at_s: float, outcome: str = "answered", heard: str = "We open at nine.", turn: int = 1
) -> tuple[float, dict]:
    return at_s, {"type": "turn", "turn": turn, "outcome": outcome, "heard": heard, "stages_ms": {}}


def spoken(text: str, start_s: float) -> list[HeardWord]:
    return [HeardWord(word, start_s + 0.3 * i, start_s + 0.3 * i + 0.25) for i, word in enumerate(text.split())]


def test_an_answer_that_goes_on_tells_what_was_lost_and_what_came_twice() -> None:
    first, rest = ANSWER[:RATE_HZ], ANSWER[RATE_HZ - RATE_HZ // 10 : 2 * RATE_HZ]
    [twice] = turns(call([QUESTION], [(2.5, first), (4.0, rest)], REPLY))
    assert (twice.repeated_s, twice.lost_s) == (pytest.approx(0.1, abs=0.001), 0.0)
    cleared = (3.3, {"type": "clear", "turn": 1, "sample": 0})
    record = call([QUESTION], [(4.0, ANSWER[RATE_HZ:])], [*REPLY, cleared])
    record.heard.insert(0, (2.5, first))  # at once, of which 0.8 s are played
    [lost] = turns(record)
    assert (lost.repeated_s, lost.lost_s) == (0.0, pytest.approx(0.2, abs=0.001))
    [whole] = turns(call([QUESTION], [(2.5, ANSWER)], REPLY))
    assert (whole.repeated_s, whole.lost_s, whole.is_broken_off) == (None, None, False)


def test_an_answer_that_is_taken_back_without_a_barge_in_is_broken_off() -> None:
    cleared = (3.3, {"type": "clear", "turn": 1, "sample": 0})
    given = [*REPLY, report(3.3, "interrupted", "We"), cleared]
    [turn] = turns(call([QUESTION], [(2.5, ANSWER[: RATE_HZ * 4 // 5])], given))
    assert (turn.is_broken_off, turn.lost_s) == (True, None)
    barge = Said("q2", "No, wait.", 3.0, 4.2, is_barge_in=True)
    first, _ = turns(call([QUESTION, barge], [(2.5, ANSWER[: RATE_HZ * 4 // 5])], given))
    assert (first.is_broken_off, first.outcome) == (False, "interrupted")


def test_a_backchannel_neither_ends_an_answer_nor_has_one() -> None:
    yes = Said("mm", "Mm-hm.", 3.0, 3.2, is_backchannel=True)
    record = call([QUESTION, yes], [(2.5, tone(1.0, RATE_HZ)), (3.55, tone(1.0, RATE_HZ))])
    assert (window_of(record, 0), window_of(record, 1)) == ((2.0, 20.0), (3.2, 3.2))
    first, second = turns(record)
    assert first.gaps_s == (pytest.approx(0.05, abs=0.001),)
    assert (second.first_audible_s, second.latency_s) == (None, None)


def test_the_time_before_the_first_utterance_is_a_window_and_one_that_is_interrupted_lasts_until_it_stops() -> None:
    barge = Said("q1", "What time do you open?", 1.0, 2.0, is_barge_in=True)
    record = call([barge], [(0.2, tone(1.3, RATE_HZ)), (2.5, tone(0.5, RATE_HZ))])
    assert window_of(record, BEFORE_ALL) == (0.0, pytest.approx(1.5, abs=CLOSE))
    assert window_of(call([], [(0.2, tone(1.3, RATE_HZ))]), BEFORE_ALL) == (0.0, 20.0)
    [turn] = turns(record)
    assert (turn.barge_in_stop_s, turn.latency_s) == (pytest.approx(0.5, abs=CLOSE), pytest.approx(0.5, abs=CLOSE))


def test_what_the_server_believes_was_heard_is_held_against_what_was() -> None:
    words = [*spoken("One moment.", 2.4), *spoken("We open at nine.", 3.5), *spoken("Still there?", 9.0)]
    heard = [(2.4, tone(0.6, RATE_HZ)), (3.5, tone(1.2, RATE_HZ)), (9.0, tone(0.6, RATE_HZ))]
    [right] = turns(call([QUESTION], heard, [*REPLY, report(5.0)]), {0: words})
    assert right.heard_word_errors == 0.0
    [wrong] = turns(call([QUESTION], heard, [*REPLY, report(5.0, heard="We open")]), {0: words})
    assert wrong.heard_word_errors == 0.5
    [unknown] = turns(call([QUESTION], heard, [*REPLY, report(5.0)]))
    [silent] = turns(call([QUESTION], heard, REPLY), {0: words})
    assert (unknown.heard_word_errors, silent.heard_word_errors) == (None, None)
    [nothing] = turns(call([QUESTION], [], [*REPLY, report(5.0)]), {})
    assert nothing.heard_word_errors == 1.0


def test_what_the_agent_says_after_the_turn_is_no_part_of_the_answer() -> None:
    prompt = [(2.5, tone(0.6, RATE_HZ)), (9.0, tone(0.6, RATE_HZ))]
    [told] = turns(call([QUESTION], prompt, [*REPLY, report(3.3)]))
    [untold] = turns(call([QUESTION], prompt))
    assert (told.gaps_s, untold.gaps_s) == ((), ())


def test_the_caller_was_understood_as_the_transcript_says() -> None:
    [turn] = turns(call([QUESTION], [], [(2.3, {"type": "final", "turn": 1, "text": "what time do you close"})]))
    assert (turn.understood, turn.understood_word_errors) == ("what time do you close", 0.2)
    [turn] = turns(call([QUESTION], []))
    assert (turn.understood, turn.understood_word_errors) == (None, None)


def test_audio_ahead_of_real_time_is_lead() -> None:
    record = call([QUESTION], [(2.5, tone(1.0, RATE_HZ))])
    [paced_turn] = turns(record)
    record.heard[:] = [(at_s if i < 10 else record.heard[10][0], pcm) for i, (at_s, pcm) in enumerate(record.heard)]
    [poured] = turns(record)
    assert (paced_turn.lead_s, poured.lead_s) == (pytest.approx(0.02), pytest.approx(0.8))


def test_replies_are_counted_that_were_heard() -> None:
    withdrawn = [
        (2.4, {"type": "reply", "turn": 1, "delta": "We"}),
        (2.45, {"type": "state", "state": "hearing", "turn": 1}),
        (2.9, {"type": "reply", "turn": 1, "delta": "We open."}),
    ]
    heard = [(3.0, tone(0.8, RATE_HZ))]
    for messages, number in ((withdrawn, 1), (REPLY, 1), ([], 1), ([*REPLY, (6.0, {**REPLY[1][1], "turn": 2})], 1)):
        record = call([QUESTION], heard, messages)
        assert num_answers(record, track_of(record), 0) == number
    two = call(
        [QUESTION], [*heard, (6.1, tone(0.5, RATE_HZ))], [*REPLY, report(4.0), (6.0, {**REPLY[1][1], "turn": 2})]
    )
    assert num_answers(two, track_of(two), 0) == 2
    untold = call([QUESTION], [*heard, (4.5, tone(0.5, RATE_HZ)), (7.0, tone(0.5, RATE_HZ))])
    assert num_answers(untold, track_of(untold), 0) == 2  # the first two are less than a second apart
