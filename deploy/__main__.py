"""`offhook`: start the stack, bring weights, make a test call. Data goes to stdout, everything else to stderr.

Exit codes: 0, 1 for an error (one line, and a hint where there is one), 2 for wrong usage, 130 for Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy import catalogue as catalogue_module
from deploy import profile as profile_module
from deploy.call import call
from deploy.call_report import report, show
from deploy.catalogue import Catalogue, Model, read_catalogue
from deploy.errors import CallError, DeployError, StartError
from deploy.profile import read_profile
from deploy.progress import progress_for
from deploy.recording import read_speech, write_stereo
from deploy.sources import resolve_with_pip
from deploy.store import Store
from deploy.up import up
from deploy.weights import Puller
from wire import calls
from wire.config import ConfigError, read_key
from wire.messages import PROTOCOL_VERSION
from wire.weights import cache_dir

logger = logging.getLogger("offhook")

DEFAULT_URL = "ws://127.0.0.1:8080/v1/calls"
PIPE_COLUMNS = 320  # of a table that goes into a file or pipe
INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="offhook: %(message)s", force=True)
    try:
        arguments.run(arguments)
    except (DeployError, ConfigError) as error:
        if isinstance(error, StartError):
            for line in error.log_tail:
                logger.error("  | %s", line)
        logger.error("error: %s", error)
        if isinstance(error, DeployError) and error.hint:
            logger.error("hint: %s", error.hint)
        return 1
    except KeyboardInterrupt:
        logger.error("stopped")
        return INTERRUPTED
    return 0


def _up(arguments: argparse.Namespace) -> None:
    catalogue = read_catalogue(arguments.catalogue)
    profile = read_profile(arguments.profile, catalogue)
    _puller(catalogue, arguments).pull([catalogue.model(model) for model in profile.models])
    up(profile, arguments.profile, cache_dir() / "logs")


def _pull(arguments: argparse.Namespace) -> None:
    catalogue = read_catalogue(arguments.catalogue)
    models = _chosen(catalogue, arguments)
    fetched = _puller(catalogue, arguments).pull(models)
    logger.info("%d models present, %d of them fetched now", len(models), len(fetched))


def _verify(arguments: argparse.Namespace) -> None:
    catalogue = read_catalogue(arguments.catalogue)
    store = Store(cache_dir())
    named = [catalogue.model(model) for model in arguments.models]
    models = named or [model for model in catalogue.models if store.state(model) != "missing"]
    fetched = _puller(catalogue, arguments).pull(models)
    logger.info("%d models are intact, %d of them fetched again", len(models), len(fetched))


def _list(arguments: argparse.Namespace) -> None:
    store = Store(cache_dir())
    table = Table(box=None, padding=(0, 1))
    for name in ("id", "kind", "languages", "MB", "licence", "state", "note"):
        table.add_column(name, justify="right" if name == "MB" else "left", no_wrap=name == "id")
    for model in read_catalogue(arguments.catalogue).models:
        languages = ", ".join(model.languages).replace("*", "any")
        cells = (model.id, model.kind, languages, f"{model.size_bytes / 1e6:.1f}", model.licence, store.state(model))
        table.add_row(*map(Text, (*cells, model.note)))
    _stdout().print(table)


def _call(arguments: argparse.Namespace) -> None:
    key = read_key(arguments.key_file) if arguments.key_file is not None else None
    if arguments.out is not None and not arguments.out.absolute().parent.is_dir():
        raise CallError(f"{arguments.out}: its folder does not exist")
    speeches, rate_hz = read_speech(arguments.wav)
    hello = calls.Hello(
        PROTOCOL_VERSION,
        sample_rate_hz=rate_hz,
        language=arguments.language,
        voice=arguments.voice,
        greeting=not arguments.no_greeting,
    )
    barge_in_s = None if arguments.barge_in_ms is None else arguments.barge_in_ms / 1000
    heard = asyncio.run(call(arguments.url, speeches, hello, key=key, barge_in_s=barge_in_s))
    if arguments.out is not None:
        write_stereo(
            arguments.out,
            heard.caller_audio,
            rate_hz,
            heard.agent_audio,
            hello.output_sample_rate_hz,
            start_s=heard.start_s,
        )
    result = report(arguments.url, heard, arguments.out)
    if arguments.json:
        sys.stdout.write(json.dumps(dataclasses.asdict(result), ensure_ascii=False) + "\n")
    else:
        show(result, _stdout())


def _chosen(catalogue: Catalogue, arguments: argparse.Namespace) -> list[Model]:
    ids = arguments.models or read_profile(arguments.profile, catalogue).models
    return [catalogue.model(model) for model in ids]


def _puller(catalogue: Catalogue, arguments: argparse.Namespace) -> Puller:
    progress = progress_for(Console(stderr=True))
    return Puller(catalogue, Store(cache_dir()), resolve_with_pip, progress, source=arguments.source)


def _stdout() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="offhook", description="Offhook: a streaming voice-agent backend.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("up", help="start everything a profile names, and keep it running")
    command.set_defaults(run=_up)
    _add_profile(command)
    _add_fetching(command)

    models = commands.add_parser("models", help="weights: list, pull, verify")
    actions = models.add_subparsers(required=True, metavar="ACTION")
    command = actions.add_parser("list", help="what there is, its licence, and whether it is here")
    command.set_defaults(run=_list)
    _add_catalogue(command)
    command = actions.add_parser("pull", help="fetch what is missing or corrupt")
    command.set_defaults(run=_pull)
    command.add_argument("models", nargs="*", metavar="ID", help="default: those that the profile names")
    _add_profile(command)
    _add_fetching(command)
    command = actions.add_parser("verify", help="read every byte, fetch again what is corrupt")
    command.set_defaults(run=_verify)
    command.add_argument("models", nargs="*", metavar="ID", help="default: those that are here")
    _add_fetching(command)

    _add_call(commands.add_parser("call", help="make a test call from recordings"))
    return parser


def _add_call(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_call)
    command.add_argument(
        "--wav",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="what the caller says; repeat for more turns",
    )
    command.add_argument("--url", default=DEFAULT_URL, help="the call server (default: %(default)s)")
    command.add_argument("--out", type=Path, metavar="FILE", help="save the call: stereo wav, left caller, right agent")
    command.add_argument("--json", action="store_true", help="one JSON object on stdout; times in milliseconds")
    command.add_argument("--language", default="en", help="ISO 639-1 (default: %(default)s)")
    command.add_argument("--voice", help="default: the server's first")
    command.add_argument("--no-greeting", action="store_true", help="speak at once")
    command.add_argument("--key-file", type=Path, metavar="FILE", help="file that holds the server's API key")
    command.add_argument(
        "--barge-in-ms",
        type=_positive,
        metavar="MS",
        help="speak the next file so long after an answer has begun (default: when it has ended)",
    )


def _add_profile(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--profile", type=Path, default=profile_module.DEFAULT_PATH, metavar="FILE", help="YAML (default: %(default)s)"
    )


def _add_catalogue(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--catalogue",
        type=Path,
        default=catalogue_module.DEFAULT_PATH,
        metavar="FILE",
        help="TOML (default: %(default)s)",
    )


def _add_fetching(command: argparse.ArgumentParser) -> None:
    _add_catalogue(command)
    command.add_argument(
        "--source", choices=("wheel", "hub"), help="where weights come from (default: the first that has the model)"
    )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 60_000:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 60000, got {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
