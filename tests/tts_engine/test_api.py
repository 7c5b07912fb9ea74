"""The HTTP endpoints with the real voice over real sockets."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

import aiohttp
import numpy as np
import pytest
import soundfile

from tests.tts_engine.client import connected, speaking
from tts_engine.engine import Engine
from tts_engine.segmenter import Unit
from tts_engine.speaking import Chunk, Speaker
from wire import speak
from wire.request import DEADLINE_HEADER

pytestmark = pytest.mark.slow


TEXT = "Thank you for calling. How can I help you today?"


LONG = "This is a long sentence about nothing in particular, said to fill the line with speech. " * 1140  # 100 kB


@pytest.mark.parametrize("response_format", ["wav", "pcm", "flac"])
async def test_the_speech_endpoint_answers_with_audio(engine: Engine, response_format: str):
    body = {"model": "piper-en-us-joe-medium", "input": TEXT, "voice": "joe", "response_format": response_format}
    async with speaking(engine) as base, aiohttp.ClientSession() as http:
        async with http.post(base + "/v1/audio/speech", json=body) as response:
            assert response.status == 200
            data = await response.read()
        async with connected(base) as client:
            await client.say(1, TEXT)
            await client.until(speak.Done, 1)

    raw = {"format": "RAW", "samplerate": 22050, "channels": 1, "subtype": "PCM_16"} if response_format == "pcm" else {}
    pcm, rate = soundfile.read(io.BytesIO(data), dtype="int16", **raw)
    assert rate == 22050
    assert np.array_equal(pcm, client.heard[1].audio)


async def test_a_client_that_leaves_before_its_flac_is_whole_frees_the_voice(engine: Engine):
    async with speaking(engine) as base, connected(base) as other, aiohttp.ClientSession() as http:
        await other.say(1, LONG)  # the voice has enough to do
        body = {"input": LONG[:4000], "response_format": "flac"}
        asking = asyncio.create_task(http.post(base + "/v1/audio/speech", json=body))
        async with asyncio.timeout(10):
            while await num_connections(http, base) < 2:
                pass
            asking.cancel()
            while await num_connections(http, base) > 1:
                pass


async def num_connections(http: aiohttp.ClientSession, base: str) -> int:
    async with http.get(base + "/health") as response:
        return int((await response.json())["connections"])


class BreaksOff(Speaker):
    """Fails behind its first audio."""

    def speak(self, unit: Unit, *, index: int, first_sample: int, seed: int, speed: float) -> Iterator[Chunk]:
        for chunk in super().speak(unit, index=index, first_sample=first_sample, seed=seed, speed=speed):
            yield chunk
            if chunk.pcm.size:
                raise ZeroDivisionError("a bug")


async def test_a_voice_that_breaks_off_breaks_off_the_response(speaker: Speaker):
    broken = Engine({"joe": BreaksOff(speaker.voice, speaker.lexicon)}, max_waiting=4)
    async with speaking(broken) as base, aiohttp.ClientSession() as http:
        async with http.post(base + "/v1/audio/speech", json={"input": TEXT}) as response:
            assert response.status == 200
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
        async with http.post(base + "/v1/audio/speech", json={"input": TEXT, "response_format": "flac"}) as response:
            assert response.status == 500
            assert (await response.json())["error"]["code"] == "internal"


async def test_nothing_speakable_is_a_file_without_samples(engine: Engine):
    async with speaking(engine) as base, aiohttp.ClientSession() as http:
        async with http.post(base + "/v1/audio/speech", json={"input": "😀"}) as response:
            assert (response.status, response.content_type) == (200, "audio/wav")
            wav = await response.read()
        async with http.post(base + "/v1/audio/speech", json={"input": "😀", "response_format": "pcm"}) as response:
            assert response.headers["content-type"] == "audio/pcm; rate=22050; channels=1"
            assert await response.read() == b""

    assert soundfile.read(io.BytesIO(wav))[0].size == 0


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "bad_json"),
        (b"{}", 400, "bad_request"),
        (b'{"input": ""}', 400, "bad_request"),
        (b'{"input": "  "}', 400, "bad_request"),
        (b'{"input": 5}', 400, "bad_request"),
        (b'{"input": "a", "voice": "nobody"}', 400, "unknown_voice"),
        (b'{"input": "a", "model": "gpt"}', 404, "model_not_found"),
        (b'{"input": "a", "speed": 9}', 400, "bad_speed"),
        (b'{"input": "a", "response_format": "mp3"}', 400, "bad_request"),
        (b'{"input": "' + b"a" * 5000 + b'"}', 400, "too_large"),
    ],
)
async def test_a_bad_speech_request_says_what_is_wrong(engine: Engine, body: bytes, status: int, code: str):
    async with (
        speaking(engine) as base,
        aiohttp.ClientSession(base) as http,
        http.post("/v1/audio/speech", data=body) as response,
    ):
        assert response.status == status
        assert (await response.json())["error"]["code"] == code


async def test_a_speech_request_past_its_deadline_gets_504(engine: Engine):
    async with speaking(engine) as base, aiohttp.ClientSession() as http:
        headers = {DEADLINE_HEADER: "1"}
        async with http.post(base + "/v1/audio/speech", json={"input": TEXT}, headers=headers) as response:
            assert response.status == 504


async def test_models_voices_and_metrics_are_listed(engine: Engine):
    async with speaking(engine) as base, aiohttp.ClientSession() as http:
        async with http.get(base + "/v1/models") as response:
            models = await response.json()
        async with http.get(base + "/v1/voices") as response:
            voices = await response.json()
        async with http.get(base + "/metrics") as response:
            metrics = await response.text()

    assert [m["id"] for m in models["data"]] == ["piper-en-us-joe-medium"]
    assert voices["data"][0] == {
        "id": "joe",
        "model": "piper-en-us-joe-medium",
        "language": "en",
        "sample_rate_hz": 22050,
    }
    for name in ("tts_ttfa_seconds", "tts_rtf", "tts_waiting_utterances", "tts_utterances_total"):
        assert name in metrics
