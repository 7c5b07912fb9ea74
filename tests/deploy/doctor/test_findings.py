from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.doctor.findings import Finding, as_lines, as_object

FINDINGS = [
    Finding("machine", "cores", "ok", "2 usable"),
    Finding("machine", "memory", "warning", "1.0 GB available", "end other programs"),
    Finding("weights", "tiny", "problem", "missing", "offhook models pull tiny"),
]


def test_lines_are_grouped_and_counted() -> None:
    assert as_lines(FINDINGS) == [
        "machine",
        "  ok       cores   2 usable",
        "  warning  memory  1.0 GB available",
        "            mend:  end other programs",
        "weights",
        "  problem  tiny    missing",
        "            mend:  offhook models pull tiny",
        "1 ok, 1 warning, 1 problem",
    ]


def test_nothing_found_is_counted_too() -> None:
    assert as_lines([]) == ["0 ok, 0 warnings, 0 problems"]


def test_object_holds_the_same() -> None:
    shown = json.loads(json.dumps(as_object(FINDINGS, Path("a.yaml"))))
    assert {key: shown[key] for key in ("profile", "num_ok", "num_warnings", "num_problems")} == {
        "profile": "a.yaml",
        "num_ok": 1,
        "num_warnings": 1,
        "num_problems": 1,
    }
    assert shown["findings"][2] == {
        "group": "weights",
        "name": "tiny",
        "level": "problem",
        "found": "missing",
        "mend": "offhook models pull tiny",
    }


def test_what_is_not_ok_must_say_how_to_mend_it() -> None:
    with pytest.raises(AssertionError, match="does not say how to mend it"):
        Finding("keys", "a", "warning", "bad")
