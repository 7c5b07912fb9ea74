"""The scenarios that come with the program."""

from __future__ import annotations

from pathlib import Path

import pytest

import load
from load.faults.breaks import Reset, Stall
from load.faults.impairment import Drift, Duplicate, Jitter, Loss, Reorder
from load.faults.kill import PROCESS_FAULTS
from load.faults.stages import STAGE_FAULTS
from load.scenario import Scenario, read_scenario, spoken
from load.speech.corpus import packaged
from load.steps import CHECKS, STEPS, Expect, FaultNow

FOLDER = Path(load.__path__[0]) / "scenarios"
PATHS = sorted(FOLDER.glob("*.yaml"))
CORPUS = packaged()


def scenarios() -> list[Scenario]:
    return [read_scenario(path, CORPUS) for path in PATHS]


def test_the_readme_says_how_many_there_are() -> None:
    assert f" {len(PATHS)} scenarios" in (FOLDER.parents[1] / "README.md").read_text()


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


def test_faults_of_networks_stages_and_processes_are_there() -> None:
    every = scenarios()
    faults = [step.fault for scenario in every for step in scenario.flat if isinstance(step, FaultNow)]
    faults += [fault for scenario in every for fault in scenario.faults]
    kinds = {type(fault) for fault in faults}
    assert kinds >= {*STAGE_FAULTS, *PROCESS_FAULTS, Loss, Jitter, Duplicate, Reorder, Drift, Stall, Reset}
