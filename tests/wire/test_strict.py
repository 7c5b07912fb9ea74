import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.strict import Invalid, parse


@dataclass(frozen=True)
class Inner:
    size: int = 1
    ratio: float = 0.5

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError("size must be at least 1")
        if self.ratio < 0:
            raise Invalid("ratio", "must not be negative")


@dataclass(frozen=True)
class Outer:
    name: str
    mode: Literal["fast", "safe"] = "fast"
    inner: Inner = field(default_factory=Inner)
    many: tuple[Inner, ...] = ()
    paths: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None
    on: bool = False
    anything: object = None


def test_a_full_value_is_built():
    outer = parse(
        Outer,
        {
            "name": "n",
            "mode": "safe",
            "inner": {"size": 2, "ratio": 1},
            "many": [{"size": 3}],
            "paths": {"a": "/tmp/x"},
            "limit": None,
            "on": True,
            "anything": [1, {"x": 2}],
        },
    )

    assert outer == Outer("n", "safe", Inner(2, 1.0), (Inner(3),), {"a": Path("/tmp/x")}, None, True, [1, {"x": 2}])
    assert isinstance(outer.inner.ratio, float)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({}, "name: missing"),
        ({"name": "n", "mod": "fast"}, "mod: unknown key; did you mean 'mode'?"),
        ({"name": "n", "zzz": 1}, "zzz: unknown key; known: "),
        ({"name": "n", "inner": {"siez": 2}}, "inner.siez: unknown key; did you mean 'size'?"),
        ({"name": "n", "inner": {"size": 0}}, "inner: size must be at least 1"),
        ({"name": "n", "many": [{}, {"ratio": -1}]}, "many[1].ratio: must not be negative"),
        ({"name": "n", "paths": {"a": "~nobodyhere/x"}}, "paths.a: there is no home folder for '~nobodyhere/x'"),
        ({"name": "n", "paths": {"a": "a\0b"}}, "paths.a: expected a path, got str 'a\\x00b'"),
        ({"name": "n", "paths": {"a": ""}}, "paths.a: expected a path, got str ''"),
        ({"name": "n", "many": [{}, {"size": "2"}]}, "many[1].size: expected int, got str '2'"),
        ({"name": "n", "mode": "slow"}, "mode: expected one of fast, safe, got str 'slow'"),
        ({"name": 5}, "name: expected str, got int 5"),
        ({"name": "n", "on": 1}, "on: expected bool, got int 1"),
        ({"name": "n", "limit": True}, "limit: expected int, got bool True"),
        ({"name": "n", "limit": 1.5}, "limit: expected int, got float 1.5"),
        ({"name": "n", "inner": {"ratio": float("nan")}}, "inner.ratio: must be a number, got NaN"),
        ({"name": "n", "inner": None}, "inner: expected a mapping, got null"),
        ({"name": "n", "many": {}}, "many: expected a list"),
        ([], "expected a mapping, got list []"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(value: object, error: str):
    with pytest.raises(Invalid) as invalid:
        parse(Outer, value)

    assert str(invalid.value).startswith(error)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(["name", "mode", "inner", "many", "paths", "limit", "on", "size", "x"])


@given(st.dictionaries(keys, json_values))
def test_any_mapping_parses_or_is_invalid(value: dict[str, object]):
    with contextlib.suppress(Invalid):
        parse(Outer, value)
