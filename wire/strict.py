"""Strict parsing of plain mappings into frozen dataclasses, for configuration files and wire messages alike.

A dataclass is its own schema: field types are checked (no coercion but int to float), missing and unknown keys
fail, and an unknown key is answered with the nearest known one. Supported field types: bool, int, float, str,
Path, Literal, X | None, tuple[X, ...], Mapping[str, X], dataclasses, and object for uninterpreted JSON.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")
MAX_INT = 2**64  # a seed takes as much; more overflows where a float is computed
MAX_ECHO = 60  # characters of a peer's input in an error


class Invalid(ValueError):
    """`where` is a dotted path such as `voice.max_calls`; `key` the offending key when there is one."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where
        self.problem = problem


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def parse(cls: type[T], value: object, where: str = "") -> T:
    """Build `cls` from `value`.

    Raises: Invalid, naming the path; also for a ValueError of the dataclass's own `__post_init__`.
    """
    assert dataclasses.is_dataclass(cls)
    if not isinstance(value, Mapping):
        raise Invalid(where, f"expected a mapping, got {_name(value)}")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for key in value:
        if key not in fields:
            raise Invalid(_join(where, str(key)[:MAX_ECHO]), _unknown("key", str(key)[:MAX_ECHO], fields))
    arguments = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = _convert_field(_hints(cls)[name], field, value[name], _join(where, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Invalid(_join(where, name), "missing")
    try:
        return cast(T, cls(**arguments))
    except Invalid as error:  # of `__post_init__`, which knows the key and not what is above
        raise Invalid(_join(where, error.where), error.problem) from None
    except ValueError as error:
        raise Invalid(where, str(error)) from None


def is_clean(text: str) -> bool:
    """Without control characters and halves of characters, which neither a line of text nor a file name survives."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def nearest(key: str, known: typing.Iterable[str]) -> str | None:
    close = difflib.get_close_matches(key[:MAX_ECHO], list(known), n=1, cutoff=0.5)  # a long key takes long
    return close[0] if close else None


def _unknown(kind: str, key: str, known: typing.Iterable[str]) -> str:
    close = nearest(key, known)
    hint = f"; did you mean '{close}'?" if close else f"; known: {', '.join(sorted(known))}"
    return f"unknown {kind}{hint}"


def _convert_field(hint: Any, field: dataclasses.Field[Any], value: object, where: str) -> object:
    """A field that is left out of the repr is a secret: an error does not tell its value."""
    try:
        return _convert(hint, value, where)
    except Invalid as error:
        if field.repr:
            raise
        raise Invalid(error.where, f"a value of another type, {type(value).__name__}, than is asked for") from None


def _convert(hint: Any, value: object, where: str) -> object:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(hint, value, where)
    if origin is Literal:
        choices = typing.get_args(hint)
        if not any(type(choice) is type(value) and choice == value for choice in choices):
            raise Invalid(where, f"expected one of {', '.join(map(str, choices))}, got {_name(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise Invalid(where, f"expected a list, got {_name(value)}")
        item = typing.get_args(hint)[0]
        return tuple(_convert(item, v, f"{where}[{i}]") for i, v in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise Invalid(where, f"expected a mapping, got {_name(value)}")
        item = typing.get_args(hint)[1]
        return {str(k): _convert(item, v, _join(where, str(k))) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        return parse(cast(type[object], hint), value, where)
    return _convert_scalar(hint, value, where)


def _convert_union(hint: Any, value: object, where: str) -> object:
    members = [m for m in typing.get_args(hint) if m is not type(None)]
    if value is None:
        if len(members) == len(typing.get_args(hint)):
            raise Invalid(where, "must not be null")
        return None
    assert len(members) == 1, "a tagged union carries its tag; see wire.messages"
    return _convert(members[0], value, where)


def _convert_scalar(hint: Any, value: object, where: str) -> object:
    if hint is object:
        return value
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise Invalid(where, "out of range")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is float and isinstance(value, float) and value != value:
        raise Invalid(where, "must be a number, got NaN")
    if hint is Path and isinstance(value, str):
        return _path(value, where)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise Invalid(where, f"expected {hint.__name__}, got {_name(value)}")
    return value


def _path(text: str, where: str) -> Path:
    if not text or not is_clean(text):
        raise Invalid(where, f"expected a path, got {_name(text)}")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise Invalid(where, f"there is no home folder for {text!r:.{MAX_ECHO}}") from None


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _name(value: object) -> str:
    return "null" if value is None else f"{type(value).__name__} {value!r:.40}"
