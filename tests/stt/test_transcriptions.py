"""`POST /v1/audio/transcriptions` and `GET /v1/models` over real sockets with the real models."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import numpy as np
import pytest
import soundfile

from load.alignment import word_error_rate
from tests.speech import RATE_HZ, clip, clip_paths, read, silence

FOX, FOX_TEXT = clip("quick_brown_fox")


def wav(pcm: np.ndarray, rate_hz: int = RATE_HZ) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, pcm, rate_hz, format="WAV")
    return buffer.getvalue()


async def post(
    url: str, data: bytes | None, *fields: tuple[str, str], headers: dict[str, str] | None = None
) -> tuple[int, str]:
    form = aiohttp.FormData()
    if data is not None:
        form.add_field("file", io.BytesIO(data), filename="speech.wav")
    for name, value in fields:
        form.add_field(name, value)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/audio/transcriptions", data=form(), headers=headers) as response,
    ):
        return response.status, await response.text()


async def transcribe(url: str, data: bytes, *fields: tuple[str, str]) -> dict[str, Any]:
    status, text = await post(url, data, *fields)
    assert status == 200, text
    parsed = json.loads(text)
    assert isinstance(parsed, dict)
    return parsed


@pytest.mark.slow
async def test_a_file_is_transcribed(url: str) -> None:
    assert word_error_rate(FOX_TEXT, (await transcribe(url, wav(FOX), ("model", "whisper-tiny.en")))["text"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("rate_hz", "form"), [(8000, "FLAC"), (44100, "OGG"), (48000, "MP3")])
async def test_other_rates_formats_and_two_channels_are_transcribed(url: str, rate_hz: int, form: str) -> None:
    mono, _ = clip("quick_brown_fox", rate_hz)
    buffer = io.BytesIO()
    stereo = np.stack([mono, mono], axis=1) / 32768  # as floats: libsndfile writes broken MP3 from int16 stereo
    soundfile.write(buffer, stereo, rate_hz, format=form)
    assert word_error_rate(FOX_TEXT, (await transcribe(url, buffer.getvalue()))["text"]) <= 0.2


@pytest.mark.slow
async def test_plain_text_is_plain_text(url: str) -> None:
    status, text = await post(url, wav(FOX), ("response_format", "text"))
    assert status == 200
    assert word_error_rate(FOX_TEXT, text) == 0
    assert text.endswith("\n")


@pytest.mark.slow
async def test_word_times_are_monotone_and_within_a_file_longer_than_the_models_view(url: str) -> None:
    pcm = np.concatenate([part for _ in range(10) for part in (FOX, silence(0.5))])
    fields = ("response_format", "verbose_json"), ("timestamp_granularities[]", "word")
    body = await transcribe(url, wav(pcm), *fields)
    assert body["duration"] == pcm.size / RATE_HZ
    assert body["language"] == "en"
    edges = [edge for word in body["words"] for edge in (word["start"], word["end"])]
    assert edges == sorted(edges)
    assert edges[0] >= 0
    assert edges[-1] <= body["duration"]
    assert " ".join(word["word"] for word in body["words"]) == body["text"]
    assert len(body["segments"]) > 1
    assert [segment["end"] for segment in body["segments"][:-1]] == [s["start"] for s in body["segments"][1:]]
    assert " ".join(segment["text"] for segment in body["segments"]) == body["text"]


@pytest.mark.slow
async def test_the_multilingual_model_detects_the_language(url: str) -> None:
    [path] = [path for path in clip_paths("pt") if path.stem == "pangrama"]
    fields = ("model", "whisper-base"), ("response_format", "verbose_json")
    body = await transcribe(url, wav(read(path)), *fields)
    assert body["language"] == "pt"
    assert "words" not in body


@pytest.mark.slow
async def test_silence_has_no_words(url: str) -> None:
    fields = ("response_format", "verbose_json"), ("timestamp_granularities[]", "word")
    body = await transcribe(url, wav(silence(2)), *fields)
    assert (body["text"], body["words"]) == ("", [])


@pytest.mark.parametrize(
    ("data", "fields", "status", "code"),
    [
        (b"no audio", [], 400, "bad_audio"),
        (None, [], 400, "bad_request"),
        (None, [("file", "a string")], 400, "bad_request"),
        (wav(silence(1)), [("model", "whisper-9")], 404, "model_not_found"),
        (wav(silence(1)), [("language", "ko")], 400, "unknown_language"),
        (wav(silence(1)), [("response_format", "srt")], 400, "bad_request"),
        (wav(silence(1)), [("temperature", "0.7")], 400, "unsupported_field"),
        (wav(silence(1)), [("prompt", "Names: Kim")], 400, "unsupported_field"),
        (wav(silence(1)), [("timestamp_granularities[]", "word")], 400, "bad_request"),
    ],
)
async def test_a_bad_request_is_one_clear_error(
    url: str, data: bytes | None, fields: list[tuple[str, str]], status: int, code: str
) -> None:
    got, text = await post(url, data, *fields)
    assert (got, json.loads(text)["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "multipart/form-data"),
        (b"no boundary in here", "multipart/form-data; boundary=x"),
        (b"", ""),
    ],
)
async def test_a_body_that_is_no_form_is_one_clear_error(url: str, body: bytes, content_type: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/audio/transcriptions", data=body, headers={"content-type": content_type}) as response,
    ):
        assert response.status == 400
        assert "message" in (await response.json())["error"]


@pytest.mark.slow
async def test_a_body_above_the_limit_is_refused(url: str) -> None:
    status, text = await post(url, bytes(33 << 20))
    assert (status, json.loads(text)["error"]["code"]) == (413, "too_large")


async def test_a_deadline_that_has_passed_is_a_504(url: str) -> None:
    status, text = await post(url, wav(FOX), headers={"x-offhook-deadline-ms": "0"})
    assert (status, json.loads(text)["error"]["code"]) == (504, "deadline_exceeded")


async def test_a_file_that_never_comes_frees_its_place_at_the_deadline(url: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
        await asyncio.Event().wait()

    headers = {"content-type": "multipart/form-data; boundary=x", "x-offhook-deadline-ms": "50"}
    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/audio/transcriptions", data=endless(), headers=headers) as response,
    ):
        assert (response.status, (await response.json())["error"]["code"]) == (504, "deadline_exceeded")


async def test_models_are_listed_with_their_languages(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/v1/models") as response:
        body = await response.json()
    assert {model["id"]: model["languages"] for model in body["data"]} == {
        "whisper-tiny.en": ["en"],
        "whisper-base": ["*"],
    }


@pytest.mark.slow
async def test_metrics_tell_queue_wait_compute_and_audio(url: str) -> None:
    await transcribe(url, wav(FOX))
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        text = await response.text()
    for name in ("queue_wait", "compute", "audio"):
        assert f'stt_{name}_seconds_count{{model="whisper-tiny.en",priority="file"}}' in text
    assert 'stt_queue_depth{model="whisper-tiny.en"} 0.0' in text
