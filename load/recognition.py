"""What the agent said, by a recogniser that tells when each word was said.

That is `POST /v1/audio/transcriptions`, of a stack of ours or any other server that gives the times of words there.
Each audible stretch is sent by itself. Whisper aligns words to audio only roughly, and across a pause it gives a word
to the wrong side; what was said before a pause and what after it, such as a filler and the answer, must not be mixed.
It costs no words (116 utterances of `joe`, tiny.en: word errors 10.0 % by stretches, 10.2 % whole). A sound that is no
speech, without a pause before the first word, belongs to that word. Times are those of the run's clock.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import numpy as np
import soundfile

from load.alignment import HeardWord
from load.errors import LoadError
from load.http_errors import MAX_REASON, stated_reason
from load.key import read_api_key
from load.lines.boundary import is_here
from load.measure import BEFORE_ALL, window_s
from load.record import CallRecord
from load.track import Track, track_of
from wire.errors import PeerError
from wire.messages import read_json_object
from wire.pcm import Pcm16

# What tiny.en is late by with words within a stretch. Without it the middle 90 % of 477 words lie between -84 and
# 143 ms, the median at 1 ms; of replies without a pause after a filler at 122 ms (bench/recognition.py, voice `joe`).
LATE_S = 0.075
MARGIN_S = 0.1  # half of `load.hearing.HOLD_S`, so that no two stretches share it: soft beginnings and ends of words
SILENCE_S = 0.3  # around a stretch
CHECK_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 60.0  # of a piece; one of 30 s takes tiny.en some 2 s on one idle core
PATIENCE_S = 60.0  # with a service that is busy, or was killed by a fault of the run and starts again
RETRY_S = 1.0
BUSY = (429, 502, 503)

DEFAULT_URL = "http://127.0.0.1:8101"
NOT_THERE = "start one: offhook up; or do without: --no-recognition"


@dataclass(frozen=True)
class Piece:
    """A stretch, audible from `begins_s` on, with a little silence around; its first sample is at `start_s`."""

    start_s: float
    begins_s: float
    pcm: Pcm16


class _NotNow(LoadError):
    """It may answer soon."""


class Recogniser:
    """One piece at a time, whoever asks. `url`: http://host:port; without `model` it is the server's first."""

    def __init__(self, url: str, key: str | None = None, model: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self._model = model
        self._turn = asyncio.Semaphore(1)

    async def check(self) -> None:
        """Raises: LoadError when nobody there recognises, or not with that model or key."""
        text = await self._ask("GET", "/v1/models", None, CHECK_TIMEOUT_S)
        try:
            known = [str(model["id"]) for model in read_json_object(text)["data"]]
        except (PeerError, LookupError, TypeError):
            raise LoadError(f"{self._url}: its /v1/models cannot be read", NOT_THERE) from None
        if self._model is not None and self._model not in known:
            raise LoadError(f"{self._url} has no model '{self._model}'", f"it has: {', '.join(known) or 'none'}")

    async def words(self, pcm: Pcm16, rate_hz: int) -> list[HeardWord]:
        """Times count from the first sample. Raises: LoadError."""
        wav = await asyncio.to_thread(_wav, pcm, rate_hz)
        async with self._turn:
            text = await self._transcript(wav)
        try:
            words = read_json_object(text)["words"]
            return [HeardWord(str(word["word"]), float(word["start"]), float(word["end"])) for word in words]
        except (PeerError, ValueError, OverflowError, LookupError, TypeError):
            raise LoadError(f"{self._url} gave no times of words: {text[:MAX_REASON]!r}") from None

    async def _transcript(self, wav: bytes) -> str:
        until_s = time.monotonic() + PATIENCE_S
        while True:
            form = aiohttp.FormData()
            form.add_field("file", io.BytesIO(wav), filename="heard.wav")
            form.add_field("response_format", "verbose_json")
            form.add_field("timestamp_granularities[]", "word")
            if self._model is not None:
                form.add_field("model", self._model)
            try:
                return await self._ask("POST", "/v1/audio/transcriptions", form, REQUEST_TIMEOUT_S)
            except _NotNow:
                if time.monotonic() > until_s:
                    raise
            await asyncio.sleep(RETRY_S)

    async def _ask(self, method: str, path: str, form: aiohttp.FormData | None, timeout_s: float) -> str:
        headers = {"authorization": f"Bearer {self._key}"} if self._key is not None else {}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=not is_here(self._url)) as http,
                http.request(method, f"{self._url}{path}", data=form) as response,
            ):
                status, text = response.status, await response.text(errors="replace")
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise LoadError(f"{self._url} is no address", f"it looks like {DEFAULT_URL}") from None
        except TimeoutError:
            raise LoadError(f"{self._url}: no answer from recognition within {timeout_s:.0f} s", NOT_THERE) from None
        except (aiohttp.ClientError, OSError) as error:
            problem = getattr(error, "strerror", None) or str(error) or "no answer"
            raise _NotNow(f"no recognition at {self._url}: {problem}", NOT_THERE) from None
        if status == 401:
            raise LoadError(f"{self._url} wants an API key (HTTP 401)", "give the file that holds it: --stt-key-file")
        if status != 200:
            kind = _NotNow if status in BUSY else LoadError
            raise kind(
                f"{self._url} does not recognise: HTTP {status} {stated_reason(text) or text[:MAX_REASON]}".rstrip()
            )
        return text


async def recognise(call: CallRecord, recogniser: Recogniser) -> dict[int, list[HeardWord]]:
    """For each utterance by index what was heard from its end to the next, and under `BEFORE_ALL` what came before all.

    Windows in which nothing was audible are left out.

    Raises: LoadError, which names the call.
    """
    found: dict[int, list[HeardWord]] = {}
    for index, pieces in (await asyncio.to_thread(_heard, call)).items():
        found[index] = []
        for piece in pieces:
            try:
                words = await recogniser.words(piece.pcm, call.output_sample_rate_hz)
            except LoadError as error:
                raise LoadError(f"call {call.number}, heard at {piece.begins_s:.1f} s: {error}", error.hint) from None
            found[index] += placed(words, piece)
    return found


def pieces_of(track: Track, from_s: float, to_s: float) -> list[Piece]:
    """What is audible in that time. Pure."""
    silence = np.zeros(round(SILENCE_S * track.rate_hz), np.int16)
    found = []
    for heard in track.audible(from_s, to_s):
        begin_s, until_s = max(from_s, heard.start_s - MARGIN_S), min(to_s, heard.end_s + MARGIN_S)
        pcm = np.concatenate([silence, track.render(begin_s, until_s), silence])
        found.append(Piece(begin_s - silence.size / track.rate_hz, heard.start_s, pcm))
    return found


def placed(words: Sequence[HeardWord], piece: Piece) -> list[HeardWord]:
    """The words of a piece on the clock of the run, mended by what is known of their alignment. Pure."""
    found: list[HeardWord] = []
    for word in words:
        start_s = max(found[-1].start_s, piece.start_s + word.start_s - LATE_S) if found else piece.begins_s
        if found:
            found[-1] = replace(found[-1], end_s=min(found[-1].end_s, start_s))
        found.append(HeardWord(word.text, start_s, max(start_s, piece.start_s + word.end_s)))
    return found


def add_recognition_flags(parser: argparse.ArgumentParser) -> None:
    """For every command that wants to know what was said, and not only when."""
    parser.add_argument(
        "--stt-url", default=DEFAULT_URL, metavar="URL", help="who recognises what was heard (default: %(default)s)"
    )
    parser.add_argument(
        "--stt-key-file", type=Path, metavar="FILE", help="holds the recogniser's API key (default: none)"
    )
    parser.add_argument(
        "--no-recognition",
        action="store_true",
        help="do not recognise what was heard: the first audible speech counts as the answer, fillers too",
    )


def recogniser_of(arguments: argparse.Namespace) -> Recogniser | None:
    """None where none is wanted. Raises: LoadError for a key file that cannot be read."""
    if arguments.no_recognition:
        return None
    return Recogniser(arguments.stt_url, read_api_key(arguments.stt_key_file))


def _heard(call: CallRecord) -> dict[int, list[Piece]]:
    track = track_of(call)
    windows = {index: window_s(call, track, index) for index in (BEFORE_ALL, *range(len(call.said)))}
    found = {index: pieces_of(track, from_s, to_s) for index, (from_s, to_s) in windows.items()}
    return {index: pieces for index, pieces in found.items() if pieces}


def _wav(pcm: Pcm16, rate_hz: int) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate_hz, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
