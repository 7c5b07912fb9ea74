"""The scenarios that come with the program, found by name, and `load scenarios`, which lists and checks them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from load.errors import LoadError
from load.faults.site import needs_own_stack
from load.scenario import Scenario, read_scenario, spoken
from load.speech.command import corpus_of
from load.speech.corpus import Corpus
from wire.config import ConfigError
from wire.strict import nearest


def packaged_paths() -> dict[str, Path]:
    """By name, in order."""
    folder = Path(str(files("load") / "scenarios"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find(name: str, corpus: Corpus) -> Scenario:
    """A packaged scenario by its name, or the one in a file; what looks like a path is one.

    Raises: LoadError.
    """
    known = packaged_paths()
    path = known.get(name)
    if path is None:
        path = Path(name)
        if not path.suffix and not path.exists():
            close = nearest(name, known)
            hint = f"did you mean '{close}'?" if close else "offhook load scenarios lists them"
            raise LoadError(f"no scenario '{name}'", hint)
    try:
        return read_scenario(path, corpus)
    except ConfigError as error:
        raise LoadError(str(error)) from None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", nargs="*", help="name or file to check and list (default: all that are packaged)")
    parser.add_argument(
        "--recordings", type=Path, metavar="FOLDER", help="what they may say, instead of the corpus (default: none)"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    corpus = corpus_of(arguments)
    scenarios = [find(name, corpus) for name in arguments.scenario or packaged_paths()]
    console.print(_table(scenarios, corpus))
    return 0


def _table(scenarios: Sequence[Scenario], corpus: Corpus) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("scenario", "over", "needs", "says", "what must be true"):
        table.add_column(heading, overflow="fold")
    for scenario in scenarios:
        over = ", ".join(scenario.transports) or "all"
        needs = "--start" if needs_own_stack(scenario.every_fault) else ""
        num_said = str(len(spoken(scenario, corpus)))
        table.add_row(*(Text(cell) for cell in (scenario.name, over, needs, num_said, scenario.about)))
    return table
