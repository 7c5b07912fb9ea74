"""What the commands of `offhook` do, but for `doctor`, which must start where packages are missing."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import os
import shutil
import sys
from pathlib import Path

from rich.console import Console

from deploy.call import CallBroken, call
from deploy.call_report import report, show
from deploy.catalogue import Catalogue, Model, read_catalogue
from deploy.errors import CallError, DeployError, NoProfile, StartError
from deploy.flags import DEFAULT_URLS
from deploy.model_list import as_lines, as_objects
from deploy.profile import Profile, log_folder, nearest_profile, read_profile
from deploy.progress import progress_for
from deploy.recording import read_speech
from deploy.sources import resolve_with_pip
from deploy.store import Store
from deploy.up import up
from deploy.weights import Puller
from load.errors import LoadError
from load.record import CallRecord
from load.recording_wav import write_stereo
from load.track import Track, track_of
from wire import calls
from wire.calls import RTC_HZ
from wire.config import ConfigError, read_key
from wire.messages import PROTOCOL_VERSION
from wire.urls import HTTP, split_url
from wire.weights import cache_dir

logger = logging.getLogger("offhook")

SCHEMES = {"websocket": ("ws", "wss"), "webrtc": HTTP}
PIPE_COLUMNS = 320  # of a call's report that goes into a file or pipe: transcripts are not cut
LIST_COLUMNS = 100


def run(arguments: argparse.Namespace) -> int:
    """The exit status."""
    name = arguments.command if arguments.command != "models" else arguments.action
    try:
        COMMANDS[name](arguments)
    except (DeployError, ConfigError) as error:
        if isinstance(error, StartError):
            for line in error.log_tail:
                logger.error("  | %s", line)
        logger.error("error: %s", error)
        if isinstance(error, DeployError) and error.hint:
            logger.error("hint: %s", error.hint)
        return 1
    return 0


def _up(arguments: argparse.Namespace) -> None:
    catalogue = read_catalogue(arguments.catalogue)
    profile = _profile(arguments.profile, catalogue, reads_keys=True)
    _puller(catalogue, arguments).pull([catalogue.model(model) for model in profile.models])
    up(profile, arguments.profile, arguments.logs or log_folder(cache_dir(), profile))


def _pull(arguments: argparse.Namespace) -> None:
    catalogue = read_catalogue(arguments.catalogue)
    ids = arguments.models or _profile(arguments.profile, catalogue).models
    models = [catalogue.model(model) for model in ids]
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
    models: list[Model] = list(read_catalogue(arguments.catalogue).models)
    states = {model.id: store.state(model) for model in models}
    if arguments.json:
        sys.stdout.write(json.dumps(as_objects(models, states), ensure_ascii=False) + "\n")
        return
    columns = min(LIST_COLUMNS, shutil.get_terminal_size((LIST_COLUMNS, 24)).columns)
    sys.stdout.write("\n".join(as_lines(models, states, columns)) + "\n")


def _call(arguments: argparse.Namespace) -> None:
    key = read_key(arguments.key_file) if arguments.key_file is not None else None
    if arguments.out is not None and not arguments.out.absolute().parent.is_dir():
        raise CallError(f"{arguments.out}: its folder does not exist")
    url = _call_url(arguments.url, arguments.transport)
    is_rtc = arguments.transport == "webrtc"
    speeches, rate_hz = read_speech(arguments.wav, RTC_HZ if is_rtc else None)
    hello = calls.Hello(
        PROTOCOL_VERSION,
        sample_rate_hz=rate_hz,
        output_sample_rate_hz=RTC_HZ if is_rtc else 24000,
        language=arguments.language,
        voice=arguments.voice,
        greeting=not arguments.no_greeting,
    )
    barge_in_s = None if arguments.barge_in_ms is None else arguments.barge_in_ms / 1000
    broken: CallBroken | None = None
    try:
        heard = asyncio.run(call(url, speeches, hello, key=key, barge_in_s=barge_in_s))
    except CallBroken as error:
        heard, broken = error.heard, error
    if arguments.out is not None:
        _write(arguments.out, heard.record)
    result = report(url, heard, arguments.out)
    if arguments.json:
        sys.stdout.write(json.dumps(dataclasses.asdict(result), ensure_ascii=False) + "\n")
    else:
        console = Console(highlight=False)
        show(result, console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS))
    if broken is not None:
        raise broken


def _write(path: Path, record: CallRecord) -> None:
    """Raises: CallError."""
    caller = Track(record.sent, record.sample_rate_hz)
    try:
        write_stereo(path, caller, track_of(record), record.placed_s, record.placed_s)
    except LoadError as error:
        raise CallError(str(error), error.hint) from None


def _profile(path: Path, catalogue: Catalogue, *, reads_keys: bool = False) -> Profile:
    """Raises: NoProfile; ConfigError for one that is wrong."""
    if not os.path.lexists(path):
        raise NoProfile(f"there is no profile {path}", nearest_profile(path))
    return read_profile(path, catalogue, reads_keys=reads_keys)


def _call_url(given: str | None, transport: str) -> str:
    """Raises: CallError."""
    default = DEFAULT_URLS[transport]
    try:
        return split_url(default if given is None else given, SCHEMES[transport]).geturl()  # the scheme in lower case
    except ValueError as error:
        query = "; --language, --voice and --no-greeting say what a query would" if "?" in (given or "") else ""
        raise CallError(f"--url of a {transport} call: {error}", f"it looks like {default}{query}") from None


def _puller(catalogue: Catalogue, arguments: argparse.Namespace) -> Puller:
    progress = progress_for(Console(stderr=True))
    return Puller(catalogue, Store(cache_dir()), resolve_with_pip, progress, source=arguments.source)


COMMANDS = {"up": _up, "pull": _pull, "verify": _verify, "list": _list, "call": _call}
