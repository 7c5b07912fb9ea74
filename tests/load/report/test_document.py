from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import load.report
from load.errors import LoadError
from load.record import CallRecord, TurnRecord
from load.report.document import CallFacts, RequestRecord, RunDocument, facts, parse_run, read_run
from load.report.schema import run_schema
from tests.load.report.runs import call_run, request_run
from wire.strict import Invalid

SHIPPED = Path(load.report.__file__).with_name("run.schema.json")
BOTH = pytest.mark.parametrize("run", [call_run(), request_run()], ids=["calls", "requests"])


def as_json(run: RunDocument) -> str:
    return json.dumps(dataclasses.asdict(run))


@BOTH
def test_a_run_reads_back_as_it_was(run: RunDocument) -> None:
    assert parse_run(as_json(run)) == run


figures = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.mark.slow
@given(
    st.builds(
        RequestRecord,
        number=st.integers(0, 10**6),
        session=st.integers(0, 10**6),
        scheduled_s=figures,
        sent_s=figures,
        ended_s=figures,
        outcome=st.sampled_from(["completed", "aborted", "refused", "failed"]),
        reason=texts,
        retry_after_s=st.none() | figures,
        figures=st.dictionaries(texts, figures, max_size=3),
    )
)
def test_any_request_reads_back_as_it_was(request: RequestRecord) -> None:
    run = dataclasses.replace(request_run(1), requests=(request,), stages={})
    assert parse_run(as_json(run)) == run


def test_an_unknown_key_is_answered_with_the_nearest_known() -> None:
    value = dataclasses.asdict(call_run())
    value["turns"][0]["latency_ms"] = 3
    with pytest.raises(Invalid, match=r"turns\[0\].latency_ms: unknown key; did you mean 'latency_s'"):
        parse_run(json.dumps(value))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[]", "expected a mapping"),
        ("{}", "this program reads 1, got None"),
        ('{"schema_version": 2}', "this program reads 1, got 2"),
        ('{"schema_version": NaN}', "NaN is no JSON"),
        ('{"schema_version": 1e999}', "out of range"),
        ('{"schema_version": 1, "head": "\\ud800"}', "surrogates not allowed"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_result_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(LoadError, match=problem) as failed:
        read_run(path)
    assert str(path) in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="No such file"):
        read_run(tmp_path / "nothing.json")


def test_a_call_keeps_everything_but_its_audio_and_messages() -> None:
    call = CallRecord(3, "plain", "websocket", 9, 16000, 24000, 1.0, 1.5, 1.6, 20.0, "broken", "lost", 2.0)
    kept = facts(call)
    assert {name: getattr(call, name) for name in vars(kept)} == vars(kept)
    left_out = {field.name for field in dataclasses.fields(CallRecord)} - {
        f.name for f in dataclasses.fields(CallFacts)
    }
    assert left_out == {
        "sample_rate_hz",
        "output_sample_rate_hz",
        "said",
        "sent",
        "heard",
        "messages",
        "late_s",
    }


def test_the_shipped_schema_is_that_of_the_dataclasses() -> None:
    """When the format changes: write it anew from `run_schema()`, and raise `SCHEMA_VERSION`."""
    assert json.loads(SHIPPED.read_text()) == run_schema()


@BOTH
def test_a_run_fits_the_shipped_schema(run: RunDocument) -> None:
    schema = json.loads(SHIPPED.read_text())
    assert misfits(schema, json.loads(as_json(run)), schema) == []


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    schema = json.loads(SHIPPED.read_text())
    value = json.loads(as_json(call_run()))
    value["turns"][0]["outcome"] = "ignored"
    value["head"]["seed"] = "one"
    value["extra"] = 1
    del value["is_complete"]
    assert sorted(misfits(schema, value, schema)) == ["$", "$.extra", "$.head.seed", "$.turns[0].outcome"]
    with pytest.raises(Invalid):
        parse_run(json.dumps(value))


def test_every_field_of_a_turn_is_described() -> None:
    described = run_schema()["$defs"]["TurnRecord"]["properties"]
    assert set(described) == {field.name for field in dataclasses.fields(TurnRecord)}


TYPES: dict[str, Any] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfits(schema: dict[str, Any], value: Any, root: dict[str, Any], where: str = "$") -> list[str]:
    """Where `value` does not fit: those keywords of JSON schema that `run_schema` uses, by its specification."""
    if "$ref" in schema:
        return misfits(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, where)
    if "anyOf" in schema:
        return [] if any(not misfits(option, value, root, where) for option in schema["anyOf"]) else [where]
    if "enum" in schema or "const" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [where]
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return [where]
    if schema["type"] == "array":
        return [m for i, item in enumerate(value) for m in misfits(schema["items"], item, root, f"{where}[{i}]")]
    if schema["type"] != "object":
        return [where] if isinstance(value, float) and not math.isfinite(value) else []
    found = [where] if set(schema.get("required", [])) - set(value) else []
    for key, item in value.items():
        inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
        found += [f"{where}.{key}"] if inner is False else misfits(inner, item, root, f"{where}.{key}")
    return found
