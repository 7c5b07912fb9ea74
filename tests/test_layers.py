"""The architecture and house rules that a script can check, over every package of ours.

Who may import whom is DESIGN's table: `wire` and `kernels` nothing of ours, everything else `wire`; nothing imports
`deploy`. An exception is listed here with its reason, or it does not exist.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EVERYTHING = frozenset({"voice", "stt", "llm", "tts_engine", "router", "kernels", "load", "wire", "deploy"})

# package -> modules of ours it may import beside itself; "router.cost" allows that module alone
MAY_IMPORT: dict[str, frozenset[str]] = {
    "wire": frozenset(),
    "kernels": frozenset(),
    "stt": frozenset({"wire"}),
    "voice": frozenset({"wire", "tts_engine.text"}),  # how what is no word is said: one home for it
    "llm": frozenset({"wire", "kernels"}),
    "tts_engine": frozenset({"wire", "kernels"}),
    "router": frozenset({"wire", "llm.blocks"}),
    "load": frozenset({"wire", "router"}),
    "deploy": EVERYTHING,
}

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 80
REASON_WORDS = ("above 400 lines because", "above 80 lines because")  # in the module docstring, any case

# STYLE allows a broad `except` where one call, one routed request or one engine step ends; the comment on the line
# says which.
BROAD_UNITS = ("one call", "one routed request", "one engine step", "one request")
BROAD_ELSEWHERE = {
    "stt/whisper.py": "tokenizers raises bare Exception for an unreadable file, and says so no other way",
}
READS_ENVIRONMENT = {
    "wire/weights.py": "the cache's place, for processes and deploy alike",
    "wire/process.py": "the threads of numpy, for every __main__ alike",
}


@dataclass(frozen=True)
class Module:
    path: Path
    tree: ast.Module
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def package(self) -> str:
        return self.path.relative_to(ROOT).parts[0]

    @property
    def docstring(self) -> str:
        return " ".join((ast.get_docstring(self.tree) or "").lower().split())


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for package in sorted(EVERYTHING):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text()
            found.append(Module(path, ast.parse(text, str(path)), tuple(text.splitlines())))
    return tuple(found)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, also inside functions; relative imports made absolute."""
    parts = module.path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parts[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def is_allowed(package: str, imported: str) -> bool:
    top = imported.partition(".")[0]
    if top not in EVERYTHING or top == package:
        return True
    return any(imported == allowed or imported.startswith(f"{allowed}.") for allowed in MAY_IMPORT[package])


def test_packages_import_only_what_the_design_allows() -> None:
    wrong = [
        f"{module.name}:{line}: imports {imported}"
        for module in modules()
        for line, imported in imports(module)
        if not is_allowed(module.package, imported)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "imported", "allowed"),
    [
        ("voice", "wire.pcm", True),
        ("voice", "stt.config.SttConfig", False),
        ("voice", "tts_engine.text.words.UNITS", True),
        ("voice", "tts_engine.engine", False),
        ("router", "llm.blocks.hash_blocks", True),
        ("router", "llm.blocks", True),
        ("router", "llm.blockstore", False),
        ("router", "llm.engine", False),
        ("wire", "voice.call", False),
        ("stt", "deploy.catalogue", False),
        ("deploy", "voice.config", True),
        ("voice", "numpy", True),
    ],
)
def test_the_table_itself(package: str, imported: str, *, allowed: bool) -> None:
    assert is_allowed(package, imported) is allowed


def test_nothing_of_the_tests_is_imported_by_a_package() -> None:
    wrong = [f"{m.name}:{line}" for m in modules() for line, name in imports(m) if name.partition(".")[0] == "tests"]
    assert wrong == []


def test_long_files_give_a_reason() -> None:
    wrong = [
        f"{module.name}: {len(module.lines)} lines"
        for module in modules()
        if len(module.lines) > MAX_FILE_LINES and REASON_WORDS[0] not in module.docstring
    ]
    assert wrong == []


def test_long_functions_give_a_reason() -> None:
    wrong = [
        f"{module.name}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
        and REASON_WORDS[1] not in module.docstring
    ]
    assert wrong == []


def test_every_module_says_what_it_is() -> None:
    silent = [m.name for m in modules() if not m.docstring and m.path.name != "__init__.py"]
    assert silent == []


def test_packages_do_not_print() -> None:
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert wrong == []


def test_broad_except_stands_only_where_one_unit_ends_and_says_which() -> None:
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and _is_broad(node)
        and module.name not in BROAD_ELSEWHERE
        and not any(unit in module.lines[node.lineno - 1].lower() for unit in BROAD_UNITS)
    ]
    assert wrong == []


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return caught is None or any(isinstance(n, ast.Name) and n.id in ("Exception", "BaseException") for n in names)


def test_only_main_modules_and_deploy_read_the_environment() -> None:
    wrong = []
    for module in modules():
        if module.package == "deploy" or module.path.name == "__main__.py" or module.name in READS_ENVIRONMENT:
            continue
        wrong += [
            f"{module.name}:{node.lineno}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "argv")
        ]
    assert wrong == []


def test_no_module_or_class_is_named_for_nothing() -> None:
    folders = {"common", "utils", "helpers", "util", "base", "misc"}
    suffixes = ("Manager", "Handler", "Helper", "Factory")
    wrong = [m.name for m in modules() if folders & set(m.path.relative_to(ROOT).with_suffix("").parts)]
    wrong += [
        f"{module.name}:{node.lineno}: {node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(suffixes)
    ]
    assert wrong == []
