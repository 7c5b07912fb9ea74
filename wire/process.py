"""How a process of ours begins and ends: flags, logs, its section of the profile, one clear line when that fails."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from fastapi import FastAPI

from wire import log, service
from wire.config import ConfigError, Document, EdgeConfig, read
from wire.errors import WireError
from wire.service import Lifecycle

Build: TypeAlias = Callable[[argparse.Namespace, Document, Lifecycle], tuple[FastAPI, EdgeConfig]]
Serve: TypeAlias = Callable[[argparse.Namespace, Document], None]


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """The flags of every process; the caller may add its own."""
    flags = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    flags.add_argument("--profile", type=Path, required=True, help=f"YAML profile; its section '{name}' is used")
    flags.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="(default: %(default)s)"
    )
    return flags


def main(name: str, flags: argparse.ArgumentParser, build: Build) -> int:
    """Serve what `build` makes until drained; the process's exit status."""

    def serve(arguments: argparse.Namespace, document: Document) -> None:
        lifecycle = Lifecycle(name)
        app, edge = build(arguments, document, lifecycle)
        service.run(app, lifecycle, edge)

    return run(name, flags, serve)


def run(name: str, flags: argparse.ArgumentParser, serve: Serve) -> int:
    """`serve` until it returns; the process's exit status.

    `serve` imports what is slow to import, so that a mistake in the profile is told at once, and numpy only after the
    number of its threads is set: on busy cores the mel spectrogram of 8 s took 8 to 24 ms with two threads, 2 to 3 ms
    with one.
    """
    arguments = flags.parse_args()
    log.configure(name, arguments.log_level)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        serve(arguments, read(arguments.profile))
    except (ConfigError, WireError) as error:
        logging.getLogger(name).error("%s", error)
        return 1
    return 0
