"""The whole chain as a user runs it: `offhook up`, then calls with recorded speech over the real models."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import numpy as np
import pytest
import soundfile

from load.alignment import plain, word_error_rate
from tests.caller import OUTPUT_HZ, Caller, calling
from tests.rtc_caller import rtc_calling
from tests.serving import free_ports
from tests.speech import clip, read, silence, tone, white_noise
from voice.budget import STAGES
from voice.media.level import first_audible
from wire import calls

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROFILE = Path("deploy/profiles/cpu.yaml")
SHARED_SPEECH = Path("../shared/data/speech")


def on_free_ports(profile: str) -> tuple[str, dict[int, int]]:
    """The profile with every port replaced, and what each was replaced by."""
    ports = sorted({int(p) for p in re.findall(r"(?:port: |127\.0\.0\.1:)(\d+)", profile)})
    moved = dict(zip(ports, free_ports(len(ports)), strict=True))
    return re.sub(r"(port: |127\.0\.0\.1:)(\d+)", lambda m: f"{m[1]}{moved[int(m[2])]}", profile), moved


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Base URLs of the running processes."""
    folder = tmp_path_factory.mktemp("up")
    text, moved = on_free_ports(PROFILE.read_text())
    profile = folder / "profile.yaml"
    profile.write_text(text)
    log = folder / "up.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "deploy", "up", "--profile", str(profile)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), log.read_text()
        names = {8080: "voice", 8101: "stt", 8102: "tts", 8103: "router", 8104: "llm"}
        yield {name: f"http://127.0.0.1:{moved[port]}" for port, name in names.items()}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()
    assert process.returncode in (0, 130), log.read_text()


@contextlib.asynccontextmanager
async def quiet_call(stack: dict[str, str], **settings: object) -> AsyncIterator[Caller]:
    """A call without greeting."""
    hello = calls.Hello(1, output_sample_rate_hz=OUTPUT_HZ, greeting=False)
    async with calling(stack["voice"], hello, **settings) as caller:  # type: ignore[arg-type]
        await caller.until(calls.Ready)
        yield caller


def speech(name: str) -> tuple[np.ndarray, str]:
    pcm, text = clip(name)
    return np.concatenate([silence(0.3), pcm]), text


async def test_a_turn_over_the_real_models(stack: dict[str, str]):
    pcm, text = speech("quick_brown_fox")
    async with quiet_call(stack, acknowledges=True) as caller:
        caller.say(pcm)
        turn = await caller.until(calls.Turn, timeout_s=60)

    assert word_error_rate(text, turn.text) <= 0.12
    assert turn.outcome == "answered"
    assert turn.heard.strip()
    assert "".join(r.delta for r in caller.of(calls.Reply)).strip() == turn.heard.strip()
    audio = np.concatenate([samples for _, samples in caller.audio])
    assert first_audible(audio) is not None
    assert np.sqrt(np.mean(audio.astype(float) ** 2)) > 300
    words = [w for message in caller.of(calls.Words) for w in message.words]
    assert words
    assert all(a.start_sample < a.end_sample <= b.end_sample for a, b in itertools.pairwise(words))
    assert words[-1].end_sample <= audio.size
    assert turn.latency_ms is not None
    assert list(turn.stages_ms) == list(STAGES)
    assert sum(turn.stages_ms.values()) == pytest.approx(turn.latency_ms, abs=0.5)


async def test_what_is_said_is_what_the_reply_claims(stack: dict[str, str]):
    """The answer's audio, recognised by the running STT service."""
    pcm, _ = speech("hello_world")
    async with quiet_call(stack) as caller:
        caller.say(pcm)
        turn = await caller.until(calls.Turn, timeout_s=60)
    file = io.BytesIO()
    soundfile.write(file, np.concatenate([samples for _, samples in caller.audio]), OUTPUT_HZ, format="WAV")
    form = aiohttp.FormData({"model": "whisper-tiny.en"})
    form.add_field("file", file.getvalue(), filename="answer.wav")
    address = f"{stack['stt']}/v1/audio/transcriptions"
    async with aiohttp.ClientSession() as http, http.post(address, data=form) as response:
        recognised = (await response.json())["text"]

    assert word_error_rate(turn.heard, recognised) <= 0.35


async def test_the_greeting_comes_first_and_can_be_interrupted(stack: dict[str, str]):
    pcm, _ = speech("quick_brown_fox")
    hello = calls.Hello(1, output_sample_rate_hz=OUTPUT_HZ)
    async with calling(stack["voice"], hello, acknowledges=True) as caller:
        await caller.until(calls.Words, timeout_s=30)
        caller.say(pcm)
        await caller.until(calls.Clear, timeout_s=30)
        turn = await caller.until(calls.Turn, timeout_s=60)

    assert turn.outcome == "answered"


async def test_a_call_over_webrtc_is_understood_answered_and_spoken(stack: dict[str, str]):
    pcm, text = clip("quick_brown_fox", 48000)
    async with rtc_calling(stack["voice"], calls.Hello(1, 48000, 48000, greeting=False)) as caller:
        await caller.until(calls.Ready, timeout_s=30)
        caller.say(pcm)
        turn = await caller.until(calls.Turn, timeout_s=60)
        await caller.send(calls.Hangup())
        assert (await caller.until(calls.Bye)).reason == "hangup"

    assert word_error_rate(text, turn.text) <= 0.12
    assert turn.outcome == "answered"
    assert list(turn.stages_ms) == list(STAGES)
    assert sum(turn.stages_ms.values()) == pytest.approx(turn.latency_ms, abs=0.5)
    assert "".join(reply.delta for reply in caller.of(calls.Reply)).strip() == turn.heard
    words = [word for message in caller.of(calls.Words) for word in message.words]
    assert plain(" ".join(word.text for word in words)) == plain(turn.heard)
    heard = np.concatenate([samples for _, samples in caller.audio])
    assert 0.5 * words[-1].end_sample < heard.size < words[-1].end_sample + 48000  # quiet between words is left out
    assert first_audible(heard) is not None


async def test_barge_in_stops_the_answer_and_keeps_what_was_heard(stack: dict[str, str]):
    pcm, _ = speech("quick_brown_fox")
    async with quiet_call(stack, acknowledges=True) as caller:
        caller.say(pcm)
        await caller.until(calls.State, lambda s: s.state == "speaking", timeout_s=60)
        caller.say(pcm)
        first = await caller.until(calls.Turn, timeout_s=60)
        if first.outcome != "interrupted":
            pytest.fail("the answer was shorter than a second")
        clear = await caller.until(calls.Clear)
        await caller.until(calls.Turn, lambda t: t.turn == 2, timeout_s=60)

    reply = "".join(r.delta for r in caller.of(calls.Reply) if r.turn == 1)
    assert reply.startswith(first.heard)
    assert len(first.heard) < len(reply)
    assert clear.sample < sum(samples.size for _, samples in caller.audio)


async def test_hanging_up_mid_answer_frees_the_line(stack: dict[str, str]):
    pcm, _ = speech("hello_world")
    async with quiet_call(stack) as caller:
        caller.say(pcm)
        await caller.until(calls.State, lambda s: s.state == "speaking", timeout_s=60)
        await caller.send(calls.Hangup())
        assert (await caller.until(calls.Bye)).reason == "hangup"
        assert await caller.until_closed() == 1000
    async with aiohttp.ClientSession() as http, asyncio.timeout(10):
        for name in ("voice", "llm", "router"):
            while True:
                async with http.get(f"{stack[name]}/health") as response:
                    if (await response.json())["active"] == 0:
                        break


async def test_two_calls_at_once_hear_only_their_own(stack: dict[str, str]):
    fox, fox_text = speech("quick_brown_fox")
    counting, counting_text = speech("counting")
    async with quiet_call(stack) as one, quiet_call(stack) as two:
        one.say(fox)
        two.say(counting)
        first = await one.until(calls.Turn, timeout_s=60)
        second = await two.until(calls.Turn, timeout_s=60)

    assert word_error_rate(fox_text, first.text) <= 0.12
    assert word_error_rate(fox_text, second.text) > 0.9
    assert word_error_rate(counting_text, first.text) > 0.9


@pytest.mark.parametrize(
    "noise",
    [silence(3.0), white_noise(3.0, -40), white_noise(3.0, -20), tone(3.0, 440), tone(3.0, 1000, -6)],
    ids=["silence", "quiet noise", "loud noise", "tone", "loud tone"],
)
async def test_nothing_is_heard_in_silence_noise_and_tones(stack: dict[str, str], noise: np.ndarray):
    async with quiet_call(stack) as caller:
        caller.say(np.concatenate([noise, silence(1.0)]))
        await caller.until_quiet()

    assert not [m for m in caller.of(calls.Final) if m.text]
    assert caller.num_samples == 0


@pytest.mark.skipif(not SHARED_SPEECH.is_dir(), reason="more recorded speech is not on this machine")
async def test_more_recorded_speech(stack: dict[str, str]):
    pcm = read(SHARED_SPEECH / "leopard_test.wav")
    async with quiet_call(stack) as caller:
        caller.say(np.concatenate([silence(0.3), pcm]))
        turn = await caller.until(calls.Turn, timeout_s=60)

    assert turn.text
    assert turn.outcome == "answered"


async def test_every_process_is_measured(stack: dict[str, str]):
    expected = {
        "voice": "voice_turn_latency_seconds",
        "stt": "stt_",
        "tts": "tts_ttfa_seconds",
        "router": "router_first_byte_seconds",
        "llm": "vllm:time_to_first_token_seconds",
    }
    async with aiohttp.ClientSession() as http:
        for name, metric in expected.items():
            async with http.get(f"{stack[name]}/metrics") as response:
                assert metric in await response.text()
