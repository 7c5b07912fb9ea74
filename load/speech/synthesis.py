"""Speech for synthetic callers, spoken by a stack's own voice on first use and kept.

The same text, voice, speed and seed give the same samples, so what was made is found again under a hash of them.
A voice that `/v1/voices` describes is known by its model, whatever the address, and speaks over `WS /v1/speak`, which
tells where its words meet. Any other server with OpenAI's `POST /v1/audio/speech` is known by its address, and the
borders of its words are estimated: on the packaged corpus, 696 borders, a fourth lay over 30 ms from any true one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import numpy as np
import soundfile

from load.errors import LoadError
from load.http_errors import stated_reason
from load.lines.boundary import is_here
from load.speech.borders import with_borders
from load.speech.corpus import Utterance
from load.speech.sound import Silent, Sound, labelled
from load.speech.spoken import hello_of, speaker_at
from wire.pcm import Pcm16, to_int16
from wire.weights import cache_dir

REQUEST_TIMEOUT_S = 60.0
FORMAT_VERSION = 2  # of the key: raise it when the same request would be spoken or kept otherwise


@dataclass(frozen=True)
class Voice:
    """Who speaks. Without `id` it is the server's first; `model` is asked for where a server wants one."""

    url: str  # http://host:port
    id: str | None = None
    model: str | None = None
    speed: float = 1.0
    seed: int = 0
    key: str | None = None  # sent as bearer


@dataclass(frozen=True)
class Made:
    """`borders` is None where the voice does not tell them."""

    pcm: Pcm16
    rate_hz: int
    borders: list[int] | None = None


Synthesise: TypeAlias = Callable[[str], Awaitable[Made]]


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
    async with aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=not is_here(voice.url)) as http:
        identity = await _identity(http, voice)
        paths = {utterance.name: cached_path(utterance.text, identity) for utterance in utterances}
        if missing := [utterance for utterance in utterances if not paths[utterance.name].is_file()]:
            async with _synthesis(http, voice, identity) as synthesise:
                done = len(utterances) - len(missing)
                for number, utterance in enumerate(missing, done + 1):
                    made = await synthesise(utterance.text)
                    _sound(made, utterance, voice.url)
                    await asyncio.to_thread(_keep, paths[utterance.name], made)
                    on_progress(number, len(utterances))
    kept = await asyncio.to_thread(lambda: [_read(paths[utterance.name]) for utterance in utterances])
    return {
        utterance.name: _sound(made, utterance, voice.url) for utterance, made in zip(utterances, kept, strict=True)
    }


def cached_path(text: str, identity: Mapping[str, Any]) -> Path:
    described = json.dumps({"format": FORMAT_VERSION, "text": text, **identity}, sort_keys=True)
    return cache_dir() / "corpus" / f"{hashlib.sha256(described.encode()).hexdigest()[:32]}.flac"


async def _identity(http: aiohttp.ClientSession, voice: Voice) -> dict[str, Any]:
    """What decides about the samples, beside the text; with `url` for a server that is none of ours."""
    asked: dict[str, Any] = {"voice": voice.id, "model": voice.model, "speed": voice.speed, "seed": voice.seed}
    try:
        async with http.get(f"{voice.url}/v1/voices") as response:
            if response.status == 404:
                return {**asked, "url": voice.url}
            await _check(response, voice.url)
            known = {str(each["id"]): str(each["model"]) for each in (await response.json())["data"]}
    except aiohttp.InvalidURL:
        raise LoadError(f"{voice.url} is no address", "it looks like http://127.0.0.1:8102") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable(voice.url, error) from None
    except (ValueError, LookupError, TypeError):
        raise LoadError(f"{voice.url}: its /v1/voices cannot be read") from None
    chosen = voice.id or next(iter(known), None)
    if chosen not in known:
        raise LoadError(f"{voice.url} has no voice '{chosen}'", f"it has: {', '.join(known) or 'none'}")
    return {**asked, "voice": chosen, "model": known[chosen]}


@contextlib.asynccontextmanager
async def _synthesis(
    http: aiohttp.ClientSession, voice: Voice, identity: Mapping[str, Any]
) -> AsyncIterator[Synthesise]:
    if "url" in identity:
        yield lambda text: _by_http(http, voice, text)
        return
    async with speaker_at(voice.url, hello_of(identity["voice"], voice.speed, voice.seed), voice.key) as ours:

        async def synthesise(text: str) -> Made:
            pcm, borders = await ours.say(text)
            return Made(pcm, ours.sample_rate_hz, borders)

        yield synthesise


async def _by_http(http: aiohttp.ClientSession, voice: Voice, text: str) -> Made:
    asked = {"voice": voice.id, "model": voice.model, "seed": voice.seed or None}  # not every server knows a seed
    body: dict[str, object] = {name: value for name, value in asked.items() if value is not None}
    body |= {"input": text, "response_format": "wav", "speed": voice.speed}
    try:
        async with http.post(f"{voice.url}/v1/audio/speech", json=body) as response:
            await _check(response, voice.url)
            data = await response.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise _unreachable(voice.url, error) from None
    try:
        audio, rate_hz = await asyncio.to_thread(soundfile.read, io.BytesIO(data), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise LoadError(f"{voice.url} answered with what is no wav: {error.error_string}") from None
    if not np.isfinite(audio).all():
        raise LoadError(f"{voice.url} spoke samples that are no numbers")
    return Made(to_int16(audio.mean(axis=1)), rate_hz)


async def _check(response: aiohttp.ClientResponse, url: str) -> None:
    if response.status == 200:
        return
    if response.status == 401:
        raise LoadError(f"{url} wants an API key (HTTP 401)", "give the file that holds it")
    reason = stated_reason(await response.text(errors="replace")) or response.reason or ""
    raise LoadError(f"{url} does not speak: HTTP {response.status} {reason}".rstrip())


def _sound(made: Made, utterance: Utterance, url: str) -> Sound:
    try:
        sound = labelled(made.pcm, made.rate_hz)
    except Silent:
        raise LoadError(f"{url} spoke '{utterance.name}' as silence", f"its text is: {utterance.text}") from None
    if made.borders is None:
        return with_borders(sound, utterance.text)
    return replace(sound, borders=tuple(sorted(border for border in made.borders if sound.start < border < sound.end)))


def _keep(path: Path, made: Made) -> None:
    """Whole or not at all: written beside its place and renamed. Borders go into the file's comment."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file,
            soundfile.SoundFile(file, "w", made.rate_hz, 1, "PCM_16", format="FLAC") as flac,
        ):
            flac.comment = json.dumps(made.borders)
            flac.write(made.pcm)
        os.replace(file.name, path)
    except (OSError, soundfile.LibsndfileError) as error:
        raise LoadError(f"{path}: cannot keep speech there: {error}", "is there room on the disk?") from None


def _read(path: Path) -> Made:
    try:
        with soundfile.SoundFile(path) as flac:
            return Made(flac.read(dtype="int16"), flac.samplerate, json.loads(flac.comment))
    except (OSError, ValueError, soundfile.LibsndfileError) as error:
        raise LoadError(f"{path}: damaged: {error}", "delete it: it is made anew") from None


def _unreachable(url: str, error: BaseException) -> LoadError:
    problem = getattr(error, "strerror", None) or str(error) or "no answer"
    return LoadError(f"no voice service at {url}: {problem}", "start one: offhook up; or do without: --recordings")
