from __future__ import annotations

import numpy as np
import pytest

from load.rehearsal import NUM_TAKES, in_order, is_drawn, rehearse
from load.scenario import Scenario
from load.speech.cast import Cast
from load.speech.corpus import Corpus, Dialogue, Utterance
from load.speech.delivery import Background, Delivery
from load.speech.sound import labelled
from load.steps import BargeIn, Converse, Dtmf, Noise, Repeat, Say, Silence
from tests.load.test_hearing import silence, tone

RATE_HZ = 16000
ONE, TWO = Utterance("d/1", "one"), Utterance("d/2", "two")
CORPUS = Corpus("en", (Dialogue("d", (ONE, TWO)),), (Utterance("single", "a single one"),))
PCM = np.concatenate([silence(0.1, RATE_HZ), tone(0.5, RATE_HZ), silence(0.1, RATE_HZ)])
CAST = Cast({name: labelled(PCM, RATE_HZ) for name in CORPUS.utterances}, ["d/1"], RATE_HZ)


def scenario(*steps, **setting) -> Scenario:
    return Scenario(name="test", about="a test", steps=steps, **setting)


def test_repetitions_are_played_as_often_as_they_say_and_every_step_has_its_own_place() -> None:
    steps = (Say("single"), Repeat(2, (Silence(10), Repeat(2, (Dtmf("1"),)))))
    placed = in_order(steps)
    assert [type(each.step).__name__ for each in placed] == [
        "Say",
        "Silence",
        "Dtmf",
        "Dtmf",
        "Silence",
        "Dtmf",
        "Dtmf",
    ]
    assert [each.number for each in placed] == list(range(7))
    assert placed[3].where == "steps[1].repeat.steps[1].repeat.steps[0].dtmf, time 1, time 2"
    assert len({each.where for each in placed}) == 7


def test_everything_that_is_said_is_there_before_the_run() -> None:
    played = scenario(Say("single"), BargeIn("d/2"), Converse("d"), Noise(200), Dtmf("12"), Silence(100))
    part = rehearse(played, CORPUS, CAST, take=0)
    assert {number: [said.name for said in said] for number, said in part.speeches.items()} == {
        0: ["single"],
        1: ["d/2"],
        2: ["d/1", "d/2"],
    }
    assert part.speeches[0][0].text == "a single one"
    assert part.sounds[3].size == RATE_HZ // 5
    assert part.sounds[4].size == pytest.approx(2 * 0.2 * RATE_HZ)


def test_a_line_that_goes_dead_in_the_middle_of_a_word_ends_the_speech_there() -> None:
    [said] = rehearse(scenario(Say("single", cut_ms=200)), CORPUS, CAST, take=0).speeches[0]
    assert said.end == said.pcm.size == said.start + round(0.2 * RATE_HZ)


def test_who_speaks_over_the_agent_begins_with_the_first_word() -> None:
    [said] = rehearse(scenario(BargeIn("single")), CORPUS, CAST, take=0).speeches[0]
    [asked] = rehearse(scenario(Say("single")), CORPUS, CAST, take=0).speeches[0]
    assert said.start / RATE_HZ == pytest.approx(0.02, abs=0.001)
    assert np.array_equal(said.pcm[said.start : said.end], asked.pcm[asked.start : asked.end])


def test_takes_differ_where_something_is_drawn_and_come_out_the_same_again() -> None:
    noisy = scenario(Say("single"), caller=Delivery(background=Background("white", 10)))
    first, other, again = (rehearse(noisy, CORPUS, CAST, take).speeches[0][0].pcm for take in (0, NUM_TAKES - 1, 0))
    assert not np.array_equal(first, other)
    assert np.array_equal(first, again)


@pytest.mark.parametrize(
    ("played", "drawn"),
    [
        (scenario(Say("single")), False),
        (scenario(Say("single", Delivery(num_pauses=1))), True),
        (scenario(Say("single"), caller=Delivery(num_fillers=1)), True),
        (scenario(Noise(100)), True),
        (scenario(Repeat(2, (Converse("d", delivery=Delivery(background=Background("pink", 5))),))), True),
    ],
)
def test_only_what_is_drawn_needs_more_than_one_take(played: Scenario, drawn: bool) -> None:
    assert is_drawn(played) is drawn
