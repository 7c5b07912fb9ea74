"""What the agent said, by a recogniser that tells when each word was said.

That is `POST /v1/audio/transcriptions`, of a stack of ours or any other server that gives the times of words there.
Only what is audible is sent, a piece at a time: Whisper makes up words in long silence, and borders of words are best
where a piece has a little of it around. Times come back on the clock of the run.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import aiohttp
import numpy as np
import soundfile

from load.alignment import HeardWord, plain
from load.errors import LoadError
from load.lines.boundary import is_here
from load.measure import window_s
from load.record import CallRecord
from load.replay.key import read_api_key
from load.track import Track
from wire.pcm import Pcm16

BEFORE_ALL = -1  # index of what was heard before the first utterance: a greeting

PAUSE_S = 1.5  # between two pieces; pauses of a speaker are shorter
MAX_PIECE_S = 28.0  # Whisper's 30 s less some silence; a piece without a pause may be longer, and is cut by the server
MARGIN_S = 0.1  # half of `load.hearing.HOLD_S`, so that no two pieces share it: soft beginnings and ends of words
SILENCE_S = 0.3  # around a piece
LATE_S = 0.3  # tiny.en after a pause: 5 to 250 ms, over three clips with 0.3 and 0.8 s of pause before
CHECK_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 60.0  # of a piece; one of 28 s takes tiny.en some 2 s on one idle core
MAX_ECHO = 200

DEFAULT_URL = "http://127.0.0.1:8101"
NOT_THERE = "start one: offhook up; or do without: --no-recognition"

Span: TypeAlias = tuple[float, float]  # seconds, from and to


@dataclass(frozen=True)
class Piece:
    """`start_s`: of its first sample, on the clock of the run. `audible`: stretches in it, on the same clock."""

    start_s: float
    pcm: Pcm16
    audible: tuple[Span, ...]


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
            known = [str(model["id"]) for model in json.loads(text)["data"]]
        except (ValueError, LookupError, TypeError):
            raise LoadError(f"{self._url}: its /v1/models cannot be read", NOT_THERE) from None
        if self._model is not None and self._model not in known:
            raise LoadError(f"{self._url} has no model '{self._model}'", f"it has: {', '.join(known) or 'none'}")

    async def words(self, pcm: Pcm16, rate_hz: int) -> list[HeardWord]:
        """Times count from the first sample. Raises: LoadError."""
        form = aiohttp.FormData()
        form.add_field("file", await asyncio.to_thread(_wav, pcm, rate_hz), filename="heard.wav")
        form.add_field("response_format", "verbose_json")
        form.add_field("timestamp_granularities[]", "word")
        if self._model is not None:
            form.add_field("model", self._model)
        async with self._turn:
            text = await self._ask("POST", "/v1/audio/transcriptions", form, REQUEST_TIMEOUT_S)
        try:
            return [HeardWord(str(w["word"]), float(w["start"]), float(w["end"])) for w in json.loads(text)["words"]]
        except (ValueError, LookupError, TypeError):
            raise LoadError(f"{self._url} gave no times of words: {text[:MAX_ECHO]!r}") from None

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
            raise LoadError(f"no recognition at {self._url}: {problem}", NOT_THERE) from None
        if status == 401:
            raise LoadError(f"{self._url} wants an API key (HTTP 401)", "give the file that holds it: --stt-key-file")
        if status != 200:
            raise LoadError(f"{self._url} does not recognise: HTTP {status} {_message(text)}".rstrip())
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
                raise LoadError(
                    f"call {call.number}, heard at {piece.audible[0][0]:.1f} s: {error}", error.hint
                ) from None
            found[index] += placed([_moved(word, piece.start_s) for word in words], piece.audible)
    return found


def pieces_of(track: Track, from_s: float, to_s: float) -> list[Piece]:
    """What is audible in that time, cut at long pauses, with a little silence around. Pure."""
    groups: list[list[Span]] = []
    for heard in track.audible(from_s, to_s):
        span = (heard.start_s, heard.end_s)
        if groups and span[0] - groups[-1][-1][1] < PAUSE_S and span[1] - groups[-1][0][0] <= MAX_PIECE_S:
            groups[-1].append(span)
        else:
            groups.append([span])
    silence = np.zeros(round(SILENCE_S * track.rate_hz), np.int16)
    found = []
    for spans in groups:
        begin_s, until_s = max(from_s, spans[0][0] - MARGIN_S), min(to_s, spans[-1][1] + MARGIN_S)
        pcm = np.concatenate([silence, track.render(begin_s, until_s), silence])
        found.append(Piece(begin_s - silence.size / track.rate_hz, pcm, tuple(spans)))
    return found


def placed(words: Sequence[HeardWord], audible: Sequence[Span]) -> list[HeardWord]:
    """Words put where they were said, by the pauses between what is audible. Pure.

    A word does not reach over a pause. The first is aligned to the beginning of the audio, whatever sounds there before
    it, so it lies where it ends; another lies where most of it is. Numbers may be many words written as one, and stay.
    The first word after a pause begins where the pause ends: alignment is up to 0.25 s late there.
    """
    found: list[HeardWord] = []
    for word in words:
        word = _beside_pauses(word, audible, is_first=not found)
        since_s = found[-1].end_s if found else 0.0
        begun = [start_s for start_s, _ in audible if since_s <= start_s < word.start_s <= start_s + LATE_S]
        found.append(HeardWord(word.text, begun[-1], word.end_s) if begun else word)
    return found


def _beside_pauses(word: HeardWord, audible: Sequence[Span], *, is_first: bool) -> HeardWord:
    parts = [(max(word.start_s, start_s), min(word.end_s, end_s)) for start_s, end_s in audible]
    parts = [(start_s, end_s) for start_s, end_s in parts if end_s > start_s]
    if len(parts) < 2 or len(plain(word.text)) > 1 or any(char.isdigit() for char in word.text):
        return word
    start_s, end_s = parts[-1] if is_first else max(parts, key=lambda part: part[1] - part[0])
    return HeardWord(word.text, start_s, end_s)


def add_recognition_flags(parser: argparse.ArgumentParser) -> None:
    """For every command that wants to know what was said, and not only when."""
    parser.add_argument(
        "--stt-url", default=DEFAULT_URL, metavar="URL", help="who recognises what was heard (default: %(default)s)"
    )
    parser.add_argument("--stt-key-file", type=Path, metavar="FILE", help="holds its API key (default: none)")
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
    track = Track(call.heard, call.output_sample_rate_hz)
    windows = {BEFORE_ALL: _before_all_s(call), **{index: window_s(call, index) for index in range(len(call.said))}}
    found = {index: pieces_of(track, from_s, to_s) for index, (from_s, to_s) in windows.items()}
    return {index: pieces for index, pieces in found.items() if pieces}


def _before_all_s(call: CallRecord) -> tuple[float, float]:
    if call.said:
        return call.placed_s, call.said[0].start_s
    ends = [at_s + pcm.size / call.output_sample_rate_hz for at_s, pcm in call.heard[-1:]]
    return call.placed_s, max([call.placed_s, call.ended_s or 0.0, *ends])


def _moved(word: HeardWord, by_s: float) -> HeardWord:
    return HeardWord(word.text, word.start_s + by_s, word.end_s + by_s)


def _wav(pcm: Pcm16, rate_hz: int) -> io.BytesIO:
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate_hz, format="WAV", subtype="PCM_16")
    buffer.seek(0)
    return buffer


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return text[:MAX_ECHO].strip()
