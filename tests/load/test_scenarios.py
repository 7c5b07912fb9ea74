"""The scenarios that come with the program."""

from __future__ import annotations

from pathlib import Path

import pytest

import load
from load.scenario import Scenario, read_scenario, spoken
from load.speech.corpus import packaged
from load.steps import CHECKS, STEPS, Expect, Fault

FOLDER = Path(load.__path__[0]) / "scenarios"
PATHS = sorted(FOLDER.glob("*.yaml"))
CORPUS = packaged()


def scenarios() -> list[Scenario]:
    return [read_scenario(path, CORPUS) for path in PATHS]


def test_there_are_enough() -> None:
    assert len(PATHS) >= 25


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_states_the_right_value_and_expects_it(path: Path) -> None:
    scenario = read_scenario(path, CORPUS)
    assert scenario.name == path.stem
    assert path.read_text().startswith("# Right: ")
    assert any(isinstance(step, Expect) for step in scenario.flat)
    assert scenario.about.endswith(".")
    assert {utterance.name for utterance in spoken(scenario, CORPUS)} <= set(CORPUS.utterances)


def test_each_has_a_seed_and_a_sentence_of_its_own() -> None:
    every = scenarios()
    assert len({scenario.seed for scenario in every}) == len(every)
    assert len({scenario.about for scenario in every}) == len(every)


def test_lines_are_as_short_as_code() -> None:
    assert [path.name for path in PATHS if max(map(len, path.read_text().splitlines())) > 120] == []


def test_every_check_and_every_step_is_in_use() -> None:
    every = [step for scenario in scenarios() for step in scenario.flat]
    given = {name for step in every if isinstance(step, Expect) for name, value in vars(step).items() if value}
    assert given >= CHECKS - {"max_clicks"}  # whose only value is 0
    assert {step.NAME for step in every} | {"repeat"} == {kind.NAME for kind in STEPS}


def faults() -> list[dict[str, object]]:
    every = scenarios()
    steps = [step.fault for scenario in every for step in scenario.flat if isinstance(step, Fault)]
    return [dict(fault) for fault in (*steps, *(fault for scenario in every for fault in scenario.faults))]


def test_faults_of_stages_and_networks_are_there() -> None:
    kinds = {str(fault["kind"]) for fault in faults()}
    assert {"loss", "jitter", "llm_stall", "llm_death", "llm_refusal", "tts_death", "stt_late", "stt_never"} <= kinds
