"""Speech for synthetic callers, by a stack's own `POST /v1/audio/speech`, made once and kept.

The same text, voice, speed and seed give the same samples, so what was made is found again under a hash of them.
A voice that `/v1/voices` describes is known by its model, whatever the address; any other server by its address.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import soundfile

from load.errors import LoadError
from load.lines.boundary import is_here
from load.speech.borders import with_borders
from load.speech.corpus import Utterance, read_sound
from load.speech.sound import Silent, Sound, labelled
from wire.pcm import Pcm16, to_int16
from wire.weights import cache_dir

REQUEST_TIMEOUT_S = 60.0  # an utterance of ten seconds on a slow machine takes a fifth of that
FORMAT_VERSION = 1  # of the key: raise it when the same request would be spoken or kept otherwise


@dataclass(frozen=True)
class Voice:
    """Who speaks. Without `id` it is the server's first; `model` is asked for where a server wants one."""

    url: str  # http://host:port
    id: str | None = None
    model: str | None = None
    speed: float = 1.0
    seed: int = 0
    key: str | None = None  # sent as bearer


def ignore_progress(done: int, total: int) -> None:
    pass


async def speech(
    utterances: Sequence[Utterance], voice: Voice, on_progress: Callable[[int, int], None] = ignore_progress
) -> dict[str, Sound]:
    """Clean labelled audio of each utterance by name, at the voice's own rate.

    Raises: LoadError.
    """
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    headers = {"authorization": f"Bearer {voice.key}"} if voice.key is not None else {}
    made: dict[str, Sound] = {}
    async with aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=not is_here(voice.url)) as http:
        asked: dict[str, Any] | None = None
        for number, utterance in enumerate(utterances, 1):
            if asked is None:
                asked = await _identity(http, voice)
            path = cached_path(utterance.text, asked)
            if not path.is_file():
                _keep(path, await _synthesise(http, voice, utterance, asked))
            made[utterance.name] = await asyncio.to_thread(read_sound, path, utterance.text)
            on_progress(number, len(utterances))
    return made


def cached_path(text: str, asked: Mapping[str, Any]) -> Path:
    described = json.dumps({"format": FORMAT_VERSION, "text": text, **asked}, sort_keys=True)
    return cache_dir() / "corpus" / f"{hashlib.sha256(described.encode()).hexdigest()[:32]}.flac"


async def _identity(http: aiohttp.ClientSession, voice: Voice) -> dict[str, Any]:
    """What decides about the samples, beside the text."""
    asked: dict[str, Any] = {"voice": voice.id, "model": voice.model, "speed": voice.speed, "seed": voice.seed}
    try:
        async with http.get(f"{voice.url}/v1/voices") as response:
            if response.status == 404:
                return {**asked, "url": voice.url}
            await _check(response, voice.url)
            known = {str(each["id"]): str(each["model"]) for each in (await response.json())["data"]}
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable(voice.url, error) from None
    except (ValueError, LookupError, TypeError):
        raise LoadError(f"{voice.url}: its /v1/voices cannot be read") from None
    chosen = voice.id or next(iter(known), None)
    if chosen not in known:
        raise LoadError(f"{voice.url} has no voice '{chosen}'", f"it has: {', '.join(known) or 'none'}")
    return {**asked, "voice": chosen, "model": known[chosen]}


async def _synthesise(
    http: aiohttp.ClientSession, voice: Voice, utterance: Utterance, asked: Mapping[str, Any]
) -> tuple[Pcm16, int]:
    body = {name: asked[name] for name in ("voice", "model") if asked[name] is not None}
    body |= {"input": utterance.text, "response_format": "wav", "speed": voice.speed}
    if voice.seed:  # not every server knows it
        body["seed"] = voice.seed
    try:
        async with http.post(f"{voice.url}/v1/audio/speech", json=body) as response:
            await _check(response, voice.url)
            data = await response.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable(voice.url, error) from None
    try:
        audio, rate_hz = await asyncio.to_thread(soundfile.read, io.BytesIO(data), dtype="float32", always_2d=True)
        pcm = to_int16(audio.mean(axis=1))
        with_borders(labelled(pcm, rate_hz), utterance.text)
    except soundfile.LibsndfileError as error:
        raise LoadError(f"{voice.url} answered '{utterance.name}' with what is no wav: {error}") from None
    except Silent:
        raise LoadError(f"{voice.url} spoke '{utterance.name}' as silence", f"its text is: {utterance.text}") from None
    return pcm, rate_hz


async def _check(response: aiohttp.ClientResponse, url: str) -> None:
    if response.status == 200:
        return
    if response.status == 401:
        raise LoadError(f"{url} wants an API key (HTTP 401)", "give the file that holds it")
    try:
        message = str((await response.json())["error"]["message"])
    except (aiohttp.ClientError, ValueError, LookupError, TypeError):
        message = response.reason or ""
    raise LoadError(f"{url} does not speak: HTTP {response.status} {message}".rstrip())


def _keep(path: Path, made: tuple[Pcm16, int]) -> None:
    """Whole or not at all: written beside its place and renamed."""
    pcm, rate_hz = made
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            soundfile.write(file, pcm, rate_hz, format="FLAC", subtype="PCM_16")
        os.replace(file.name, path)
    except (OSError, soundfile.LibsndfileError) as error:
        raise LoadError(f"{path}: cannot keep speech there: {error}", "is there room on the disk?") from None


def _unreachable(url: str, error: BaseException) -> LoadError:
    problem = getattr(error, "strerror", None) or str(error) or "no answer"
    return LoadError(f"no voice service at {url}: {problem}", "start one: offhook up")
