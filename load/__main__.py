"""`offhook load`, also `python -m load`: synthetic callers that measure what a caller hears.

Results go to stdout, everything else to stderr. Exit codes: 0; 1 for an error (one line, and a hint where there is
one), for a run that is worth nothing, and for an expectation that was not met; 2 for wrong usage, 130 for Ctrl-C or
SIGTERM, after which results are kept all the same.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from rich.console import Console

from load.errors import LoadError, first_of
from load.harmless import harmless

logger = logging.getLogger("load")

INTERRUPTED = 130  # 128 + SIGINT, as shells count
PIPE_COLUMNS = 200  # of tables that go into a file or pipe
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("load.run", "callers hold conversations or play scenarios; a report of what they heard"),
    "capacity": ("load.capacity_command", "the most calls at once that are all answered within the budget"),
    "compare": ("load.report.compare", "the difference of two results, with its interval"),
    "page": ("load.report.page", "a result as one HTML page with plots"),
    "scenarios": ("load.library", "list the scenarios, or check those in files"),
    "speech": ("load.speech.command", "make what callers say, and let a person hear it"),
    "relay": ("load.faults.command", "put network or stage faults between any client and server"),
    "chat": ("load.replay.chat", "replay a trace of chats against an OpenAI-compatible server"),
    "speak": ("load.replay.speak", "load a voice service with texts"),
    "trace": ("load.traces.files", "make a trace of voice chats"),
    "null-agent": ("load.null_command", "an agent without a mind, to measure the instrument itself"),
}


def main(argv: Sequence[str], prog: str = "python -m load") -> int:
    _log_to_stderr(prog)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _run(argv, prog)
    except LoadError as error:
        return _failed(error)
    except BaseExceptionGroup as group:
        told = group.subgroup(LoadError)
        if told is None:
            raise
        return _failed(first_of(told))
    except KeyboardInterrupt:
        logger.error("stopped")
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(argv: Sequence[str], prog: str) -> int:
    """Raises: LoadError."""
    if unreadable := [text for text in argv if not _is_text(text)]:
        raise LoadError(f"no UTF-8: {unreadable[0]!a}", "results, which hold the command line, are UTF-8")
    name = _parser(prog).parse_args(argv[:1] or ["--help"]).command
    module = importlib.import_module(COMMANDS[name][0])  # one command alone: the others need time to load
    parser = argparse.ArgumentParser(prog=f"{prog} {name}", description=COMMANDS[name][1])
    module.add_flags(parser)
    arguments = parser.parse_args(argv[1:])
    arguments.command_line = shlex.join([*prog.split(), *argv])
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_COLUMNS)
    status: int = module.run(arguments, console)
    return status


def _interrupt(_: int, frame: FrameType | None) -> None:
    """As Ctrl-C does, also where that is ignored, as in a shell's background.

    Once: coreutils' `timeout` sends it twice, and a second Ctrl-C would not wait for the results.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def _is_text(argument: str) -> bool:
    """Bytes of a command line that are no UTF-8 come as halves of surrogate pairs."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def _log_to_stderr(prog: str) -> None:
    """What we say ourselves; of libraries only warnings come through."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(f"{prog}: %(message)s"))
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _parser(prog: str) -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {about}" for name, (_, about) in COMMANDS.items())
    found = argparse.ArgumentParser(
        prog=prog,
        description="Synthetic callers that measure what a caller hears.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"commands:\n{listed}\n\n{prog} COMMAND --help says more.",
    )
    found.add_argument("command", choices=tuple(COMMANDS), metavar="COMMAND", help="one of those below")
    return found


def _failed(error: LoadError) -> int:
    logger.error("error: %s", error)
    if error.hint:
        logger.error("hint: %s", error.hint)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
