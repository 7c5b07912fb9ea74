"""The JSON schema (draft 2020-12) of a run's result, made from its dataclasses so that the two cannot differ. Pure."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from load.report.document import SCHEMA_VERSION, RunDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}


def run_schema() -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    _define(RunDocument, definitions)
    root = definitions.pop(RunDocument.__name__)
    root["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    return {"$schema": DIALECT, "title": "Result of a load run", **root, "$defs": definitions}


def _define(cls: type, definitions: dict[str, Any]) -> None:
    if cls.__name__ in definitions:
        return
    definitions[cls.__name__] = {}
    hints = typing.get_type_hints(cls)
    fields = [field for field in dataclasses.fields(cls) if field.init]
    definitions[cls.__name__] = {
        "type": "object",
        "description": (cls.__doc__ or "").strip().partition("\n\n")[0].replace("\n    ", " "),
        "properties": {field.name: _of(hints[field.name], definitions) for field in fields},
        "required": [field.name for field in fields if _is_required(field)],
        "additionalProperties": False,
    }


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_of(member, definitions) for member in typing.get_args(hint)]}
    if origin is Literal:
        return {"enum": list(typing.get_args(hint))}
    if origin is tuple:
        return {"type": "array", "items": _of(typing.get_args(hint)[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(typing.get_args(hint)[1], definitions)}
    if hint is type(None):
        return {"type": "null"}
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        _define(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return {"type": _SCALARS[hint]}
