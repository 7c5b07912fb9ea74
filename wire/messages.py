"""JSON text messages as strict tagged unions of frozen dataclasses.

A message class carries its tag in `TYPE`. Bytes are parsed here, where they enter; after that types are trusted.
The messages themselves live in `wire.listen`, `wire.speak` and `wire.calls`, because both ends need them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from wire.errors import PeerError
from wire.strict import Invalid, nearest, parse

PROTOCOL_VERSION = 1
MAX_JSON_BYTES = 1 << 20  # a text message above this is refused before it is parsed


class Message(Protocol):
    TYPE: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


M = TypeVar("M", bound=Message)


def encode(message: Message) -> str:
    """None is left out: an absent key and null mean the same on our wire."""
    fields = {k: v for k, v in dataclasses.asdict(message).items() if v is not None}
    return json.dumps({"type": message.TYPE, **fields}, ensure_ascii=False, separators=(",", ":"))


def read_json_object(text: str | bytes) -> dict[str, Any]:
    """Raises: PeerError with code `bad_json` for no JSON object, half a surrogate pair, or what is no number."""
    try:
        value = json.loads(text)
        # json takes lone surrogates, Infinity and 1e999, and nobody else does
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise PeerError(f"not JSON: {str(error)[:100]}", code="bad_json") from None
    if not isinstance(value, dict):
        raise PeerError("a JSON object is expected", code="bad_json")
    return value


def decode(text: str, kinds: Iterable[type[M]]) -> M:
    """Parse one text message as one of `kinds`.

    Raises: PeerError with code `bad_json` or `bad_message`.
    """
    if len(text) > MAX_JSON_BYTES:
        raise PeerError(f"message of {len(text)} characters; at most {MAX_JSON_BYTES}", code="too_large")
    value = {key: field for key, field in read_json_object(text).items() if field is not None}  # null: absent
    by_tag = {kind.TYPE: kind for kind in kinds}
    tag = value.pop("type", None)
    if not isinstance(tag, str) or tag not in by_tag:
        close = nearest(tag, by_tag) if isinstance(tag, str) else None
        hint = f"; did you mean '{close}'?" if close else f"; known: {', '.join(by_tag)}"
        raise PeerError(f"unknown message type {tag!r:.60}{hint}", code="bad_message")
    try:
        return parse(by_tag[tag], value, where=tag)
    except Invalid as error:
        raise PeerError(str(error), code="bad_message") from None
