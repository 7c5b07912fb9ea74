"""`load speech`: makes what synthetic callers say before a run does, and lets a person hear it."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import soundfile
import yaml
from rich.console import Console
from rich.progress import Progress

from load.errors import LoadError
from load.key import read_api_key
from load.scenario import talkers
from load.speech.cast import Cast
from load.speech.corpus import Corpus, Utterance, fillers_of, packaged, recorded
from load.speech.delivery import Delivery
from load.speech.sound import Sound
from load.speech.synthesis import Voice, speech
from wire.config import ConfigError
from wire.strict import Invalid, parse


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("utterance", nargs="*", help="such as doctor/1 (default: all)")
    add_voice_flags(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write NAME.wav and NAME.txt there (default: nowhere)"
    )
    parser.add_argument("--rate", type=int, default=16000, metavar="HZ", help="of those files (default: %(default)s)")
    parser.add_argument(
        "--delivery", default="{}", metavar="YAML", help="how, such as '{speed: 1.2, num_pauses: 1, telephone: mulaw}'"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (default: %(default)s)")


def add_voice_flags(parser: argparse.ArgumentParser) -> None:
    """Where callers get their speech; for every command that has callers."""
    parser.add_argument(
        "--voice-url",
        default="http://127.0.0.1:8102",
        metavar="URL",
        help="who speaks for callers (default: %(default)s)",
    )
    parser.add_argument("--voice", metavar="NAME", help="the callers' voice (default: the first one there)")
    parser.add_argument("--voice-model", metavar="ID", help="for voice servers that want one (default: none)")
    parser.add_argument(
        "--voice-speed", type=float, default=1.0, metavar="X", help="asked of the voice server (default: %(default)s)"
    )
    parser.add_argument(
        "--voice-key-file", type=Path, metavar="FILE", help="holds the voice server's API key (default: none)"
    )
    parser.add_argument(
        "--recordings", type=Path, metavar="FOLDER", help="NAME.wav beside NAME.txt, instead of a voice (default: none)"
    )


def corpus_of(arguments: argparse.Namespace) -> Corpus:
    """What can be said: the recordings, or the packaged corpus.

    Raises: LoadError.
    """
    try:
        if arguments.recordings is None:
            return packaged()
    except ConfigError as error:
        raise LoadError(str(error)) from None
    return Corpus("", (), tuple(utterance for utterance, _ in recorded(arguments.recordings).values()))


async def sounds_of(arguments: argparse.Namespace, utterances: Sequence[Utterance]) -> Mapping[str, Sound]:
    """Clean speech of each, with a progress bar on a terminal while it is made.

    Raises: LoadError.
    """
    if arguments.recordings is not None:
        found = await asyncio.to_thread(recorded, arguments.recordings)
        return {utterance.name: found[utterance.name][1] for utterance in utterances}
    if not 0.5 <= arguments.voice_speed <= 2:
        raise LoadError(f"--voice-speed must be 0.5 to 2, got {arguments.voice_speed}")
    voice = Voice(
        arguments.voice_url.rstrip("/"),
        arguments.voice,
        arguments.voice_model,
        arguments.voice_speed,
        key=read_api_key(arguments.voice_key_file),
    )
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("speech", total=len(utterances), visible=False)
        return await speech(utterances, voice, lambda done, _: progress.update(task, completed=done, visible=True))


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    if not 8000 <= arguments.rate <= 48000:
        raise LoadError(f"--rate must be 8000 to 48000, got {arguments.rate}")
    if arguments.seed < 0:
        raise LoadError(f"--seed must not be negative, got {arguments.seed}")
    delivery = delivery_of(arguments.delivery, "--delivery")
    corpus = corpus_of(arguments)
    every = corpus.utterances
    if delivery.num_fillers:
        fillers_of(corpus)
    wanted = [corpus.utterance(name) for name in arguments.utterance] or list(every.values())
    # Fillers and babble are speech as well, so everything is made.
    sounds = asyncio.run(sounds_of(arguments, list(every.values())))
    cast = Cast(sounds, [utterance.name for utterance in talkers(corpus)], arguments.rate)
    for number, utterance in enumerate(wanted):
        sound = cast.say(utterance.name, delivery, (arguments.seed, 0, number))
        if arguments.out is not None:
            _write(arguments.out, utterance, sound)
        console.print(
            f"{utterance.name:24}{sound.start / sound.rate_hz:7.2f} to {sound.end_s:5.2f} s   {utterance.text}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return 0


def delivery_of(text: str, flag: str) -> Delivery:
    """Raises: LoadError."""
    try:
        return parse(Delivery, yaml.safe_load(text) or {}, flag)
    except Invalid as error:
        raise LoadError(str(error)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise LoadError(f"{flag}: not YAML: {str(error).splitlines()[0]}") from None


def _write(folder: Path, utterance: Utterance, sound: Sound) -> None:
    name = re.sub(r"[^\w-]", "-", utterance.name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / f"{name}.wav", sound.pcm, sound.rate_hz, subtype="PCM_16")
        (folder / f"{name}.txt").write_text(utterance.text + "\n", encoding="utf-8")
    except (OSError, soundfile.LibsndfileError) as error:
        raise LoadError(f"{folder}: cannot write there: {error}") from None
