from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.faults.impairment import Loss
from load.faults.stages import LlmStall
from load.scenario import Scenario, parse_scenario, read_scenario, spoken
from load.speech.corpus import FILLERS, packaged
from load.speech.delivery import Background, Delivery
from load.steps import (
    Backchannel,
    BargeIn,
    Converse,
    Dtmf,
    Expect,
    FaultNow,
    HangUp,
    Key,
    Noise,
    Redial,
    Repeat,
    Say,
    Silence,
    WaitForAnswer,
)
from wire.config import ConfigError, Document

CORPUS = packaged()
HEAD = "name: test\nabout: A test.\nsteps:\n"


def scenario_of(tmp_path: Path, text: str) -> Scenario:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    return read_scenario(path, CORPUS)


def problem_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        scenario_of(tmp_path, text)
    problem = str(caught.value)
    assert "\n" not in problem
    return problem.removeprefix(f"{tmp_path}/")


def test_every_step_is_read_with_its_fields_or_bare(tmp_path: Path) -> None:
    scenario = scenario_of(
        tmp_path,
        HEAD
        + """
  - say: doctor/1
  - say: {utterance: doctor/2, delivery: {speed: 1.2, background: {kind: pink, snr_db: 10}}, cut_ms: 400}
  - converse: hotel
  - wait_for_answer
  - wait_for_answer: start
  - barge_in: {utterance: stop, after_ms: 800}
  - backchannel
  - silence: 500
  - silence: {for_ms: 200, sends: false}
  - noise: {for_ms: 300, kind: babble}
  - dtmf: "12#"
  - key: "12#"
  - repeat: {times: 2, steps: [say: "yes", wait_for_answer]}
  - fault: {kind: llm_stall, for_s: 2.0}
  - hang_up
  - redial: 50
  - expect: answered
  - expect: {within_ms: 700, contains: hello there}
transports: [websocket, webrtc]
""",
    )
    assert scenario.steps == (
        Say("doctor/1"),
        Say("doctor/2", Delivery(speed=1.2, background=Background("pink", 10)), 400),
        Converse("hotel"),
        WaitForAnswer(),
        WaitForAnswer("start"),
        BargeIn("stop", 800),
        Backchannel(),
        Silence(500),
        Silence(200, sends=False),
        Noise(300, "babble"),
        Dtmf("12#"),
        Key("12#"),
        Repeat(2, (Say("yes"), WaitForAnswer())),
        FaultNow(LlmStall(for_s=2.0)),
        HangUp(),
        Redial(50),
        Expect(outcome="answered"),
        Expect(within_ms=700, contains="hello there"),
    )


def test_the_setting_is_read_with_its_defaults(tmp_path: Path) -> None:
    scenario = scenario_of(
        tmp_path,
        HEAD
        + "  - say: doctor/1\n"
        + "seed: 7\ntransports: [webrtc]\ncaller: {telephone: mulaw}\necho: {level_db: -25}\n"
        + "faults: [{kind: loss, share: 0.03}]\n",
    )
    assert (scenario.name, scenario.seed, scenario.transports) == ("test", 7, ("webrtc",))
    assert scenario.caller == Delivery(telephone="mulaw")
    assert scenario.echo is not None
    assert scenario.echo.level_db == -25
    assert scenario.faults == (Loss(0.03),)
    assert (scenario.num_callers, scenario.num_refused, scenario.greeting) == (1, 0, False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "s.yaml:1: name: missing"),
        ("nmae: a\n", "s.yaml:1: nmae: unknown key; did you mean 'name'?"),
        (HEAD + "  - sya: doctor/1\n", "s.yaml:4: steps[0].sya: unknown step; did you mean 'say'?"),
        (
            HEAD + "  - say: doctor/1\n  - barge_in:\n      utterance: stop\n      after: 3\n",
            "s.yaml:7: steps[1].barge_in.after: unknown key; did you mean 'after_ms'?",
        ),
        (HEAD + "  - say: docter/1\n", "s.yaml:4: steps[0].say.utterance: no utterance 'docter/1'; did you mean"),
        (HEAD + "  - converse: docter\n", "s.yaml:4: steps[0].converse.dialogue: no dialogue 'docter'; did you mean"),
        (HEAD + "  - say\n", "s.yaml:4: steps[0].say.utterance: missing"),
        (HEAD + "  - {say: doctor/1, wait_for_answer: end}\n", "s.yaml:4: steps[0]: a step is one name"),
        (HEAD + "  - [say]\n", "s.yaml:4: steps[0]: a step is one name"),
        (HEAD + "  []\n", "s.yaml:3: steps: expected a list of steps"),
        (HEAD + "  - silence: long\n", "s.yaml:4: steps[0].silence.for_ms: expected float, got str 'long'"),
        (HEAD + "  - silence: 0\n", "s.yaml:4: steps[0].silence.for_ms: must be above 0"),
        (HEAD + "  - dtmf: 12x\n", "s.yaml:4: steps[0].dtmf.keys: takes keys of 1 2 3 A"),
        (HEAD + "  - key: 12x\n", "s.yaml:4: steps[0].key.keys: takes keys of 0 1 2 3"),
        (
            HEAD + "  - key: {keys: '12', every_ms: 2000000}\n",
            "s.yaml:4: steps[0].key: all keys together must take at",
        ),
        (HEAD + "  - key: '1'\n", "s.yaml:1: transports: `key` is for webrtc and websocket"),
        (HEAD + "  - key: '1'\ntransports: [twilio, webrtc]\n", "s.yaml:5: transports: `key` is for webrtc and"),
        (HEAD + "  - wait_for_answer: strat\n", "s.yaml:4: steps[0].wait_for_answer.until: expected one of start, end"),
        (HEAD + "  - say: {utterance: 'yes', delivery: {speed: 9}}\n", "speed and pitch must be 0.5 to 2"),
        (HEAD + "  - expect: {what: speech}\n", "s.yaml:4: steps[0].expect.within_ms: missing: how long?"),
        (HEAD + "  - expect: {word_errors: 0.1}\n", "s.yaml:4: steps[0].expect: expects nothing; give at least one of"),
        (HEAD + "  - expect: {within_ms: -1}\n", "s.yaml:4: steps[0].expect.within_ms: must not be negative"),
        (HEAD + "  - expect: {outcome: answred}\n", "s.yaml:4: steps[0].expect.outcome: expected one of answered"),
        (
            HEAD + "  - repeat:\n      times: 2\n      steps:\n        - say: 'yes'\n        - wiat: end\n",
            "s.yaml:8: steps[0].repeat.steps[1].wiat: unknown step",
        ),
        (HEAD + "  - repeat: {times: 0, steps: [hang_up]}\n", "s.yaml:4: steps[0].repeat.times: must be 1 to 1000"),
        (
            HEAD + "  - repeat: {times: 101, steps: [{repeat: {times: 100, steps: [say: 'yes']}}]}\n",
            "s.yaml:3: steps: with repetitions there are 10100; at most 10000",
        ),
        (HEAD + "  - say: 'yes'\nnum_callers: 1001\n", "s.yaml:5: num_callers: must be at most 1000, got 1001"),
        (
            HEAD + "  - dtmf: {keys: '12', tone_ms: 2000000}\n",
            "s.yaml:4: steps[0].dtmf: all keys together must take at",
        ),
        (HEAD + "  - expect: {within_ms: .inf}\n", "s.yaml:4: steps[0].expect.within_ms: must be at most an hour"),
        (HEAD + "  - hang_up\n  - say: 'yes'\n", "s.yaml:5: steps[1].say: there is no call any more: redial first"),
        (HEAD + "  - redial\n", "s.yaml:4: steps[0].redial: the call before it must be over: hang_up first"),
        (HEAD + "  - repeat: {times: 2, steps: [hang_up]}\n", "there is no call any more: redial first"),
        (HEAD + "  - fault: {share: 1}\n", "s.yaml:4: steps[0].fault.kind: missing; known: bandwidth, burst_loss"),
        (HEAD + "  - fault: {kind: loss, share: 7}\n", "s.yaml:4: steps[0].fault: share must be 0 to 1, got 7"),
        (
            HEAD + "  - say: 'yes'\nfaults:\n  - {kind: lost}\n",
            "s.yaml:6: faults[0].kind: unknown kind 'lost'; did you",
        ),
        (HEAD + "  - say: 'yes'\nnum_refused: 1\n", "needs 0 <= num_refused < num_callers"),
        (HEAD + "  - say: 'yes'\necho: {level_db: 3}\n", "s.yaml:5: echo.level_db: must be -80 to 0"),
        (HEAD + "  - say: 'yes'\nseed: -1\n", "s.yaml:5: seed: must be 0 to"),
        ("name: a\nname: b\n", "s.yaml:2: not YAML: 'name' is given twice"),
        ("- say\n", "s.yaml: expected a mapping at the top"),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_the_nearest_known(tmp_path: Path, text: str, problem: str) -> None:
    found = problem_of(tmp_path, text)
    assert problem in found
    if problem.startswith("s.yaml"):
        assert found.startswith(problem)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot read"):
        read_scenario(tmp_path / "none.yaml", CORPUS)


def test_what_is_spoken_names_everything_once(tmp_path: Path) -> None:
    scenario = scenario_of(
        tmp_path,
        HEAD
        + """
  - converse: hotel
  - say: hotel/1
  - repeat: {times: 3, steps: [backchannel, say: {utterance: stop, delivery: {num_fillers: 1}}]}
""",
    )
    names = [utterance.name for utterance in spoken(scenario, CORPUS)]
    assert names == [*(f"hotel/{i}" for i in range(1, 8)), "mm-hm", "stop", *FILLERS]


def test_a_place_has_a_line_where_it_stands_in_the_file(tmp_path: Path) -> None:
    text = HEAD + "  - say: doctor/1\n  - repeat:\n      times: 2\n      steps:\n        - expect: {num_answers: 1}\n"
    scenario = scenario_of(tmp_path, text)
    first_step = len(HEAD.splitlines()) + 1
    places = ("steps[0].say", "steps[1].repeat.steps[0].expect, time 2", "the end", "num_refused")
    assert [scenario.line_of(place) for place in places] == [first_step, first_step + 4, None, None]


def test_babble_needs_people_who_talk(tmp_path: Path) -> None:
    one = scenario_of(tmp_path, HEAD + "  - noise: {for_ms: 100, kind: babble}\n")
    other = scenario_of(tmp_path, HEAD + "  - silence: 10\ncaller: {background: {kind: babble, snr_db: 9}}\n")
    assert len(spoken(one, CORPUS)) == len(spoken(other, CORPUS)) == 8


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["say", "expect", "repeat", "steps", "times", "utterance", "x"]), inner, max_size=3
            )
        ),
    )
)
def test_any_value_for_the_steps_is_parsed_or_told(value: object) -> None:
    document = Document(Path("s.yaml"), {"name": "a", "about": "b", "steps": value}, {})
    problem = ""
    try:
        parse_scenario(document, CORPUS)
    except ConfigError as error:
        problem = str(error)
    assert not problem or problem.startswith("s.yaml:1: ")
