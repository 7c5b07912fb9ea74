"""docs/profile.md against the dataclasses: every key, its default and its unit, nothing else."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.profile import Profile
from wire.config import EdgeConfig

REFERENCE = Path(__file__).parents[2] / "docs/profile.md"
UNITS = {
    "_s": "seconds",
    "_ms": "milliseconds",
    "_hz": "hertz",
    "_tokens": "tokens",
    "_bytes": "bytes",
    "_samples": "samples",
    "_mb": "megabytes",
    "_turns": "turns",
    "_calls": "calls",
    "_threads": "threads",
}


@dataclass(frozen=True)
class Row:
    key: str
    default: str
    unit: str
    meaning: str = ""


def rows(cls: type, prefix: str = "") -> Iterator[Row]:
    """A row for each key of `cls`; of nested dataclasses their keys in place of the key itself, but for `edge`."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        name = f"{prefix}{field.name}"
        item, is_list = _item(hints[field.name])
        if dataclasses.is_dataclass(item) and isinstance(item, type) and item is not EdgeConfig:
            yield from rows(item, f"{name}{'[]' if is_list else ''}.")
        else:
            yield Row(
                name, _default(field), next((unit for end, unit in UNITS.items() if field.name.endswith(end)), "")
            )


def expected() -> list[Row]:
    return [*rows(EdgeConfig, "edge."), *rows(Profile)]


def _item(hint: object) -> tuple[object, bool]:
    """What stands behind `X | None` and `tuple[X, ...]`, and whether it was a tuple."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(member for member in typing.get_args(hint) if member is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return hint, False


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def documented() -> list[Row]:
    found = []
    for line in REFERENCE.read_text().splitlines():
        if line.startswith("| `"):
            key, default, unit, meaning = (cell.strip() for cell in line.strip("|").split("|"))
            found.append(Row(key.strip("`"), default.strip("`"), unit, meaning))
    return found


def test_reference_lists_exactly_the_keys_there_are() -> None:
    assert [row.key for row in documented()] == [row.key for row in expected()]


def test_reference_states_the_defaults_of_the_code() -> None:
    assert {row.key: row.default for row in documented()} == {row.key: row.default for row in expected()}


def test_reference_states_units_and_a_meaning_for_every_key() -> None:
    assert {row.key: row.unit for row in documented()} == {row.key: row.unit for row in expected()}
    assert [row.key for row in documented() if len(row.meaning) < 10] == []
