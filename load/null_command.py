"""`offhook load null-agent`: something to call that costs next to nothing, until Ctrl-C. It prints its address."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from pathlib import Path

import numpy as np
from rich.console import Console

from load.errors import LoadError
from load.null_agent import ANSWER_HZ, NullAgent
from load.speech.corpus import read_sound
from load.speech.resample import resampled
from wire.pcm import AUDIO_FRAME_S, Pcm16, to_int16

HUM_S = 1.5
HUM_HZ = 220.0
SYLLABLE_HZ = 4.0  # where speech opens and closes most: its modulation spectrum (Houtgast and Steeneken, 1985)
MIN_ANSWER_AFTER_S = 2 * AUDIO_FRAME_S  # it takes two quiet messages to know that a loud one was the last
MAX_ANSWER_AFTER_S = 60.0


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, help="to listen on, on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--answer-after-ms",
        type=float,
        default=500.0,
        metavar="MS",
        help="after the caller's last loud sample; a shorter pause ends no turn (default: %(default)g)",
    )
    parser.add_argument("--answer", type=Path, metavar="FILE", help="wav or flac, said every time (default: a hum)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    if not 0 <= arguments.port <= 65_535:
        raise LoadError(f"--port must be 0 to 65535, got {arguments.port}")
    after_s = arguments.answer_after_ms / 1000
    if not MIN_ANSWER_AFTER_S <= after_s <= MAX_ANSWER_AFTER_S:
        raise LoadError(
            f"--answer-after-ms must be {1000 * MIN_ANSWER_AFTER_S:g} to {1000 * MAX_ANSWER_AFTER_S:g},"
            f" got {arguments.answer_after_ms:g}"
        )
    agent = NullAgent(hum() if arguments.answer is None else _recorded(arguments.answer), after_s)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(agent, arguments.port, console))
    return 0


def hum(seconds: float = HUM_S) -> Pcm16:
    """A tone that opens and closes as speech does, at the rate of answers."""
    t = np.arange(round(seconds * ANSWER_HZ)) / ANSWER_HZ
    loudness = 0.3 - 0.2 * np.cos(2 * np.pi * SYLLABLE_HZ * t)
    return to_int16((loudness * np.sin(2 * np.pi * HUM_HZ * t)).astype(np.float32))


async def _serve(agent: NullAgent, port: int, console: Console) -> None:
    try:
        async with agent.running(port=port) as url:
            console.print(url, markup=False, highlight=False, soft_wrap=True)
            await asyncio.Event().wait()
    except OSError as error:
        raise LoadError(
            f"cannot listen on 127.0.0.1:{port}: {os.strerror(error.errno or 0)}", "leave --port out"
        ) from None


def _recorded(path: Path) -> Pcm16:
    """From its first audible sample on, so that it begins audibly."""
    sound = read_sound(path, "")
    return to_int16(resampled(sound.audio[sound.start :], sound.rate_hz, ANSWER_HZ))
