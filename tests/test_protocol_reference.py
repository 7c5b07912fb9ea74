"""docs/protocol.md against the code: every error code that is sent, every message and its fields, nothing else."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from wire import calls, listen, speak

ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs/protocol.md").read_text()
PACKAGES = ("wire", "voice", "stt", "tts_engine", "router", "llm")
SECTIONS = {calls: "Calls: `WS /v1/calls`", listen: "Recognition", speak: "Voice"}


def section(title: str) -> str:
    return REFERENCE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of all tables."""
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line[:1] == "|"]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)[`:]", cell)


def codes_sent() -> set[str]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {code for path in paths for node in ast.walk(ast.parse(path.read_text())) for code in codes_in(node)}


def codes_in(node: ast.AST) -> Iterator[str]:
    """`code="..."` of an exception, the first argument of an `Error`, and what is assigned to a name `code`."""
    match node:
        case ast.keyword(arg="code", value=ast.Constant(str(code))):
            yield code
        case ast.Call(func=ast.Attribute(attr="Error"), args=[ast.Constant(str(code)), *_]):
            yield code
        case ast.Assign(targets=[ast.Name("code")], value=value) | ast.AnnAssign(target=ast.Name("code"), value=value):
            yield from (
                each.value
                for each in ast.walk(value or ast.Pass())
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )


def test_every_error_code_is_in_the_table_and_no_other() -> None:
    listed = [code for first, *_ in rows(section("Conventions")) for code in names(first)]
    assert len(listed) == len(set(listed))
    assert set(listed) == codes_sent()


@pytest.mark.parametrize("module", SECTIONS, ids=lambda module: module.__name__)
def test_every_message_is_told_with_its_fields(module: ModuleType) -> None:
    told = rows(section(SECTIONS[module]))
    for message in (*module.CLIENT_MESSAGES, *module.SERVER_MESSAGES):
        fields = {field.name for field in dataclasses.fields(message)}
        ways = [set(names(row[1])) for row in told if message.TYPE in names(row[0])]
        assert any(fields <= way for way in ways), f"{message.TYPE}: {fields} in none of {ways}"


@pytest.mark.parametrize("module", SECTIONS, ids=lambda module: module.__name__)
def test_no_message_is_told_that_there_is_not(module: ModuleType) -> None:
    known = {message.TYPE for message in (*module.CLIENT_MESSAGES, *module.SERVER_MESSAGES)}
    assert {name for row in rows(section(SECTIONS[module])) for name in names(row[0])} <= known
    arrows = re.findall(r"^ *-> +(\w+)|<- +([\w, ()|]+)", module.__doc__ or "", re.M)
    assert arrows
    for told in arrows:
        words = re.sub(r"\(.*?\)|\| error.*| {3,}.*", "", " ".join(told))
        assert set(re.findall(r"\w+", words)) <= known
