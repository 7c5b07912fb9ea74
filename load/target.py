"""Who is called, and what belongs to it: the faults that can be had there, who speaks for callers, who recognises."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from load.dial import DEFAULT_URLS, Dial, add_dial_flags, dial_of
from load.errors import LoadError
from load.faults.kill import Processes
from load.faults.site import Site
from load.lines.boundary import CONNECT_TIMEOUT_S, is_here, unreachable
from load.recognition import Recogniser, add_recognition_flags, recogniser_of
from load.stack import started

KEY_FLAGS = {"key_file": "voice", "stt_key_file": "stt", "voice_key_file": "tts_engine"}  # whose key each holds


@dataclass(frozen=True)
class Target:
    """`shares_cores`: the server runs on this machine too. `voice_url`: who speaks for callers."""

    dial: Dial
    site: Site
    recogniser: Recogniser | None
    voice_url: str
    voice_key_file: Path | None

    @property
    def shares_cores(self) -> bool:
        return is_here(self.dial.url)


def add_target_flags(parser: argparse.ArgumentParser) -> None:
    add_dial_flags(parser)
    parser.add_argument(
        "--start",
        type=Path,
        metavar="PROFILE",
        help="start a stack for the run and end it after: needed for faults of stages and processes (default: none)",
    )
    add_recognition_flags(parser)


@contextlib.asynccontextmanager
async def reached(arguments: argparse.Namespace) -> AsyncIterator[Target]:
    """Everything that a run needs answers before it begins. Raises: LoadError."""
    if arguments.start is not None:
        async with _of_own_stack(arguments) as target:
            yield target
        return
    dial = dial_of(arguments)
    await _require_reachable(dial.url)
    recogniser = recogniser_of(arguments)
    if recogniser is not None:
        await recogniser.check()
    yield Target(dial, Site(), recogniser, arguments.voice_url, arguments.voice_key_file)


@contextlib.asynccontextmanager
async def _of_own_stack(arguments: argparse.Namespace) -> AsyncIterator[Target]:
    if arguments.url is not None:
        raise LoadError("--start and --url are two servers", "give one of them")
    if arguments.transport not in DEFAULT_URLS:
        raise LoadError(
            f"a stack of ours takes no calls over {arguments.transport}", f"it has: {', '.join(DEFAULT_URLS)}"
        )
    async with started(arguments.start, np.random.default_rng(arguments.seed)) as stack:
        given = {**vars(arguments), "url": stack.urls[arguments.transport], "stt_url": stack.stt_url}
        given |= {flag: stack.key_files[name] for flag, name in KEY_FLAGS.items() if name in stack.key_files}
        ours = argparse.Namespace(**given)
        recogniser = recogniser_of(ours)
        if recogniser is not None:
            await recogniser.check()
        site = Site(stack.stages, Processes())
        yield Target(dial_of(ours), site, recogniser, stack.voice_url, ours.voice_key_file)


async def _require_reachable(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme in ("wss", "https") else 80)
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except ValueError as error:
        raise LoadError(f"{url} is no address: {error}") from None
    except (OSError, TimeoutError) as error:
        raise LoadError(str(nobody := unreachable(url, error)), nobody.hint) from None
    writer.close()
