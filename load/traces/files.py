"""Traces on disk: which format a file has, and the command that makes one of phone calls."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, fields
from pathlib import Path

from rich.console import Console
from rich.text import Text

from load.errors import LoadError
from load.traces.azure import read_azure
from load.traces.mooncake import read_mooncake
from load.traces.trace import Trace, reuse_bound
from load.traces.voice_chat import VoiceChat, generate, is_voice_chat, read_voice_chat, to_lines

ABOUT = {  # each parameter of a trace, or range of them
    "seed": "of all that is drawn",
    "num_calls": "calls in all",
    "calls_per_minute": "how many begin, on average",
    "num_agents": "different system prompts, of which each call has one",
    "turns": "requests of a call",
    "agent_tokens": "length of a system prompt",
    "new_tokens": "what the caller says in a turn",
    "output_tokens": "length of an answer",
    "pause_s": "seconds from one request of a call to the next",
    "abort_share": "of a call's answers, those that the caller interrupts",
}


def read_trace(path: Path) -> Trace:
    """A trace of ours, of Mooncake's (`.jsonl`) or Azure's (`.csv`). Raises: LoadError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head = file.readline()
            file.seek(0)
            if is_voice_chat(head):
                return read_voice_chat(file, str(path))
            return read_azure(file, str(path)) if path.suffix == ".csv" else read_mooncake(file, str(path))
    except UnicodeDecodeError:
        raise LoadError(f"{path}: not UTF-8", "give a trace as JSON lines or CSV") from None
    except OSError as error:
        raise LoadError(
            f"{path}: cannot read: {error.strerror}", "make one: offhook load trace --out calls.jsonl"
        ) from None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where the trace goes, as JSON lines")
    for field in fields(VoiceChat):
        if field.name not in ("format", "version"):
            default = 0 if field.default is MISSING else field.default
            flag = f"--{field.name.replace('_', '-')}"
            about = ABOUT[field.name.removeprefix("min_").removeprefix("max_")]
            extreme = {"min": ", at least", "max": ", at most"}.get(field.name[:3], "")
            parser.add_argument(
                flag, type=type(default), default=default, metavar="N", help=f"{about}{extreme} (default: %(default)s)"
            )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    names = [field.name for field in fields(VoiceChat) if field.name not in ("format", "version")]
    try:
        config = VoiceChat(**{name: getattr(arguments, name) for name in names})
    except ValueError as error:
        raise LoadError(str(error)) from None
    path: Path = arguments.out
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(to_lines(config, generate(config)))
    except OSError as error:
        raise LoadError(f"{path}: cannot write: {error.strerror}", "choose another file with --out") from None
    trace = read_trace(path)
    console.print(
        Text(
            f"{path}: {len(trace.requests)} requests of {config.num_calls} calls in {trace.duration_s:.0f} s,"
            f" {reuse_bound(trace):.0%} of the prompt tokens were in an earlier prompt"
        )
    )
    return 0
