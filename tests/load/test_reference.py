"""docs/load.md against the code: nothing is missing, nothing is made up, and every command that is shown is one."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import yaml

from load.__main__ import COMMANDS
from load.faults.parse import BY_KIND, parse_fault
from load.scenario import Setting, Transport, parse_scenario
from load.speech.corpus import packaged
from load.speech.delivery import Delivery
from load.steps import STEPS, Expect
from wire.config import read

REFERENCE = (Path(__file__).parents[2] / "docs/load.md").read_text()


def section(title: str) -> str:
    return REFERENCE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> str:
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))


def test_every_step_and_every_expectation_is_explained() -> None:
    cells = first_cells(section("Scenarios"))
    assert set(re.findall(r"`(\w+):", cells)) >= {step.NAME for step in STEPS}
    for field in dataclasses.fields(Expect):
        assert f"`{field.name}" in section("Scenarios"), field.name


def test_the_example_is_a_scenario_and_shows_every_setting(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", section("Scenarios"), re.DOTALL)
    path = tmp_path / "example.yaml"
    path.write_text(example)
    parse_scenario(read(path), packaged())
    missing = {field.name for field in dataclasses.fields(Setting)} - yaml.safe_load(example).keys()
    assert missing == {"num_refused"}  # its line explains it, beside num_callers
    assert "num_refused" in example


def test_every_fault_is_listed_and_no_other() -> None:
    assert set(re.findall(r"`(\w+)`", first_cells(section("Faults")))) == BY_KIND.keys()


def test_every_field_of_a_fault_is_named() -> None:
    for fault in BY_KIND.values():
        for field in dataclasses.fields(fault):
            assert f"`{field.name}`" in section("Faults"), f"{fault.KIND}.{field.name}"


def test_every_command_is_shown() -> None:
    for name in COMMANDS:
        assert re.search(rf"\boffhook load {name}\b", REFERENCE), name


def test_every_transport_and_every_way_to_speak_is_listed() -> None:
    cells = first_cells(section("Other servers"))
    assert re.findall(r"`(\w+)`", cells) == list(get_args(Transport))
    for field in dataclasses.fields(Delivery):
        assert f"`{field.name}" in section("What callers say"), field.name


@pytest.mark.parametrize(
    "command", re.findall(r"^offhook load ([^#\n]*)", REFERENCE, re.MULTILINE), ids=lambda text: text.strip()[:40]
)
def test_every_command_that_is_shown_is_one(command: str) -> None:
    name, *flags = shlex.split(command)
    parser = argparse.ArgumentParser(exit_on_error=False)
    importlib.import_module(COMMANDS[name][0]).add_flags(parser)
    arguments = parser.parse_args(flags)
    for text in getattr(arguments, "fault", []):
        parse_fault(yaml.safe_load(text))
