"""`offhook`: start the stack, bring weights, check the machine, make a test call, measure what callers hear.

Data goes to stdout, everything else to stderr. Exit codes: 0, 1 for an error (one line, and a hint where there is one),
2 for wrong usage, 130 for Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.doctor.examine import examine
from deploy.doctor.findings import as_lines, as_object, count
from deploy.flags import parser
from deploy.paths import offhook
from wire.weights import cache_dir

logger = logging.getLogger("offhook")

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["load"]:
        return _load(argv[1:])
    arguments = parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="offhook: %(message)s", force=True)
    for chatty in ("aioice", "aiortc"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        logger.error("stopped")
        return INTERRUPTED


def _load(argv: Sequence[str]) -> int:
    try:
        from load.__main__ import main as load
    except ImportError as error:
        sys.stderr.write(f"offhook: error: {error}\noffhook: hint: {offhook()} doctor says what is missing here\n")
        return 1
    return load(argv, "offhook load")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "doctor":
        return _doctor(arguments.profile, arguments.catalogue, as_json=arguments.json)
    try:
        from deploy import commands
    except ImportError as error:
        logger.error("error: %s", error)
        logger.error("hint: %s doctor says what is missing here", offhook())
        return 1
    return commands.run(arguments)


def _doctor(profile: Path, catalogue: Path, *, as_json: bool) -> int:
    findings = examine(profile, catalogue, cache_dir())
    shown = [json.dumps(as_object(findings, profile), ensure_ascii=False)] if as_json else as_lines(findings)
    sys.stdout.write("\n".join(shown) + "\n")
    return 1 if count(findings, "problem") else 0


if __name__ == "__main__":
    sys.exit(main())
