"""The catalogue as `offhook models list` shows it. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from deploy.catalogue import Model
from deploy.store import State

NOTE_INDENT = "    "
HEADINGS = ("id", "kind", "languages", "MB", "state", "licence")


def as_lines(models: Sequence[Model], states: Mapping[str, State], columns: int) -> list[str]:
    """A line for each model, and below it its note, wrapped at `columns`."""
    rows = [
        (
            model.id,
            model.kind,
            ",".join(model.languages).replace("*", "any"),
            f"{model.size_bytes / 1e6:.1f}",
            states[model.id],
            model.licence,
        )
        for model in models
    ]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    lines = [_row(HEADINGS, widths)]
    for model, row in zip(models, rows, strict=True):
        lines.append(_row(row, widths))
        lines += textwrap.wrap(model.note, columns, initial_indent=NOTE_INDENT, subsequent_indent=NOTE_INDENT)
    return lines


def as_objects(models: Sequence[Model], states: Mapping[str, State]) -> list[dict[str, object]]:
    """The same for programs."""
    return [
        {
            "id": model.id,
            "kind": model.kind,
            "languages": list(model.languages),
            "size_bytes": model.size_bytes,
            "state": states[model.id],
            "licence": model.licence,
            "note": model.note,
        }
        for model in models
    ]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    is_number = [heading == "MB" for heading in HEADINGS]
    padded = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    ]
    return "  ".join(padded).rstrip()
