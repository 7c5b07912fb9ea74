from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from load.faults.breaks import HalfClose, Reset, Stall
from load.faults.impairment import Bandwidth, BurstLoss, Delay, Drift, Duplicate, Jitter, Loss, Reorder
from load.faults.kill import Freeze, Kill
from load.faults.parse import BY_KIND, FAULTS, Fault, parse_fault, parse_faults, parse_text
from load.faults.stages import (
    LlmDeath,
    LlmRefusal,
    LlmStall,
    SttEmpty,
    SttLate,
    SttNever,
    TtsDeath,
    TtsSilence,
    TtsStall,
)
from wire.config import ConfigError, read
from wire.strict import Invalid

ONE_OF_EACH: list[Fault] = [
    Loss(0.1), BurstLoss(0.1), Delay(0.1), Jitter(0.1, "pareto"), Reorder(0.1), Duplicate(0.1), Bandwidth(1e5),
    Drift(-200), Stall(at_s=1.0), HalfClose(after_bytes=9), Reset(at_s=2.0, connection=3), SttLate(0.5), SttEmpty(),
    SttNever(first=2), LlmStall(3, 1.0), LlmDeath(2, count=None), LlmRefusal(429, 3), TtsStall(0.5), TtsDeath(),
    TtsSilence(share=0.5), Kill("stt", 1.0), Freeze("llm-2"),
]  # fmt: skip


def test_every_kind_has_its_own_name() -> None:
    assert len(BY_KIND) == len(FAULTS) == len(ONE_OF_EACH)
    assert {type(fault) for fault in ONE_OF_EACH} == set(FAULTS)


@pytest.mark.parametrize("fault", ONE_OF_EACH, ids=lambda fault: fault.KIND)
def test_a_fault_comes_back_from_yaml(fault: Fault) -> None:
    assert parse_text(yaml.safe_dump({"kind": fault.KIND, **dataclasses.asdict(fault)})) == fault


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_says_what_is_to_be_heard(kind: type) -> None:
    assert "Expected" in (kind.__doc__ or "")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("loss", "faults[1]: expected a fault such as {kind: loss"),
        ({"share": 0.1}, "faults[1].kind: missing; known: bandwidth"),
        ({"kind": "los", "share": 0.1}, "faults[1].kind: unknown kind 'los'; did you mean 'loss'?"),
        ({"kind": 7}, "faults[1].kind: unknown kind 7; known: bandwidth"),
        ({"kind": "loss", "shar": 0.1}, "faults[1].shar: unknown key; did you mean 'share'?"),
        ({"kind": "loss"}, "faults[1].share: missing"),
        ({"kind": "loss", "share": "much"}, "faults[1].share: expected float, got str 'much'"),
        ({"kind": "loss", "share": 3}, "faults[1]: share must be 0 to 1, got 3.0"),
        ({"kind": "jitter", "spread_s": 0.1, "distribution": "cauchy"}, "faults[1].distribution: expected one of"),
        ({"kind": "stall"}, "faults[1]: give one of at_s and after_bytes"),
        ({"kind": "kill", "process": "/bin/sh"}, "faults[1]: process must be a name"),
    ],
)
def test_a_wrong_fault_is_one_clear_line_with_its_place(value: object, says: str) -> None:
    with pytest.raises(Invalid) as error:
        parse_faults([{"kind": "delay", "delay_s": 0.1}, value])
    assert str(error.value).startswith(says)


def test_the_place_is_a_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("faults:\n  - {kind: loss, share: 0.1}\n  - kind: delay\n    dely_s: 0.1\n")
    document = read(path)
    with pytest.raises(Invalid) as error:
        parse_faults(document.value["faults"])
    assert document.lines[error.value.where] == 4
    with pytest.raises(ConfigError):
        document.parse(Loss)


@pytest.mark.parametrize("text", ["{", "", "[]", "{kind: loss, share: 0.1", "a: b: c", "2026-13-01"])
def test_text_that_is_no_fault_is_one_clear_line(text: str) -> None:
    with pytest.raises(Invalid) as error:
        parse_text(text)
    assert "\n" not in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(st.sampled_from(sorted(BY_KIND)), st.dictionaries(st.sampled_from(["share", "at_s", "process", "x"]), JSON))
def test_whatever_is_given_it_parses_or_is_invalid(kind: str, rest: dict[str, object]) -> None:
    try:
        fault = parse_fault({"kind": kind, **rest})
    except Invalid:
        return
    assert kind == fault.KIND
