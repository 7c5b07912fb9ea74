from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from aiohttp import web
from aiohttp.test_utils import TestServer

from load.errors import LoadError
from load.speech.corpus import Utterance
from load.speech.synthesis import Voice, speech
from tests.load.speech.waves import words
from tests.tts_engine.client import speaking
from tests.tts_engine.conftest import engine, lexicon, speaker, voice  # noqa: F401
from tts_engine.engine import Engine

HELLO = Utterance("hello", "Hello there.")
BYE = Utterance("bye", "Goodbye.")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OFFHOOK_CACHE", str(tmp_path))
    return tmp_path / "corpus"


def kept_in(cache: Path) -> list[Path]:
    return sorted(cache.glob("*"))


class Speaker:
    """A server with OpenAI's speech endpoint and nothing else; says tones, or `answer`."""

    def __init__(self, answer: web.Response | None = None) -> None:
        self.answer = answer
        self.asked: list[dict[str, object]] = []

    async def speak(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        if self.answer is not None:
            return self.answer
        return web.Response(body=wav(words([0.3, 0.4], 22050).pcm), content_type="audio/wav")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/audio/speech", self.speak)
        async with TestServer(app) as server:
            yield str(server.make_url("")).rstrip("/")


def wav(pcm: np.ndarray, rate_hz: int = 22050) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, pcm, rate_hz, format="WAV")
    return file.getvalue()


async def test_speech_is_made_once_and_found_again(cache: Path) -> None:
    server = Speaker()
    async with server.running() as url:
        first = await speech([HELLO, BYE], Voice(url))
        again = await speech([BYE, HELLO], Voice(url))
    assert [asked["input"] for asked in server.asked] == [HELLO.text, BYE.text]
    assert np.array_equal(first["hello"].audio, again["hello"].audio)
    assert first["hello"].end_s == pytest.approx(0.3 + 0.3 + 0.05 + 0.4, abs=0.01)
    assert len(first["hello"].borders) == 1
    assert len(kept_in(cache)) == 2


async def test_another_voice_speed_seed_or_server_is_another_sound(cache: Path) -> None:
    server, other = Speaker(), Speaker()
    async with server.running() as url, other.running() as other_url:
        for voice in (Voice(url), Voice(url, speed=1.2), Voice(url, seed=3), Voice(url, "amy"), Voice(other_url)):
            await speech([HELLO], voice)
    assert len(kept_in(cache)) == 5
    assert [asked.get("seed") for asked in server.asked] == [None, None, 3, None]


async def test_progress_is_told(cache: Path) -> None:
    told: list[tuple[int, int]] = []
    async with Speaker().running() as url:
        await speech([HELLO, BYE], Voice(url), lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (web.Response(status=401), "wants an API key"),
        (web.json_response({"error": {"message": "no such model"}}, status=404), "HTTP 404 no such model"),
        (web.Response(body=b"<html>"), "what is no wav"),
        (web.Response(body=wav(np.zeros(8000, np.int16))), "spoke 'hello' as silence"),
    ],
)
async def test_a_server_that_does_not_speak_is_one_line_and_leaves_nothing(
    cache: Path, answer: web.Response, problem: str
) -> None:
    async with Speaker(answer).running() as url:
        with pytest.raises(LoadError, match=problem) as caught:
            await speech([HELLO], Voice(url))
    assert "\n" not in str(caught.value)
    assert kept_in(cache) == []


async def test_a_server_that_is_not_there_is_one_line(cache: Path) -> None:
    async with Speaker().running() as url:
        pass
    with pytest.raises(LoadError, match=f"no voice service at {url}"):
        await speech([HELLO], Voice(url))


async def test_a_damaged_file_of_the_cache_is_named(cache: Path) -> None:
    async with Speaker().running() as url:
        await speech([HELLO], Voice(url))
        [path] = kept_in(cache)
        path.write_bytes(b"torn")
        with pytest.raises(LoadError, match=path.name):
            await speech([HELLO], Voice(url))


async def test_progress_does_not_tell_what_was_there(cache: Path) -> None:
    told: list[tuple[int, int]] = []
    async with Speaker().running() as url:
        await speech([HELLO], Voice(url))
        await speech([HELLO, BYE], Voice(url), lambda done, total: told.append((done, total)))
    assert told == [(2, 2)]


@pytest.mark.slow
async def test_the_real_voice_speaks_the_same_each_time_and_is_known_by_its_model(
    cache: Path,
    engine: Engine,  # noqa: F811
) -> None:
    async with speaking(engine) as url:
        first = await speech([HELLO], Voice(url))
        [kept] = kept_in(cache)
        kept.rename(cache / "kept")
        again = await speech([HELLO], Voice(url.replace("127.0.0.1", "localhost"), id="joe"))
        with pytest.raises(LoadError, match="has no voice 'jo'"):
            await speech([HELLO], Voice(url, id="jo"))
    assert kept.is_file(), "the address is no part of the key"
    assert len(first["hello"].borders) == 1
    assert np.array_equal(first["hello"].audio, again["hello"].audio)
    assert 0.3 < (first["hello"].end - first["hello"].start) / first["hello"].rate_hz < 2
