"""The fakes answer the exchanges that the call server relies on as the real services do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

import stt.service
import tts_engine.service
from stt.config import SttConfig
from tests.fakes import FakeStt, FakeTts
from tests.serving import serving
from tests.speech import clip
from tts_engine.config import TtsConfig
from wire import listen, speak
from wire.config import EdgeConfig, read
from wire.messages import decode, encode
from wire.pcm import unpack_utterance
from wire.service import Lifecycle

pytestmark = pytest.mark.slow

EDGE = EdgeConfig(port=0)
PROFILE = Path("deploy/profiles/cpu.yaml")


@contextlib.asynccontextmanager
async def connected(kind: str, path: str, *, draining: bool = False) -> AsyncIterator[ClientConnection]:
    lifecycle = Lifecycle(kind)
    lifecycle.draining = draining
    match kind:
        case "fake stt":
            app = FakeStt(lifecycle=lifecycle).app()
        case "fake tts":
            app = FakeTts().app()
        case "stt":
            stt_config = read(PROFILE).parse(SttConfig, "stt")
            app = stt.service.build(stt_config, stt.service.load_models(stt_config), lifecycle)
        case _:
            tts_config = read(PROFILE).parse(TtsConfig, "tts_engine")
            app = tts_engine.service.build(tts_config, tts_engine.service.load(tts_config), lifecycle)
    async with serving(app, lifecycle, EDGE) as base, connect(base.replace("http", "ws") + path, proxy=None) as line:
        yield line


async def heard(line: ClientConnection, last: type) -> list[listen.ServerMessage]:
    messages: list[listen.ServerMessage] = []
    while not messages or not isinstance(messages[-1], last):
        message = decode(str(await line.recv()), listen.SERVER_MESSAGES)
        if not isinstance(message, listen.Partial):
            messages.append(message)
    return messages


@pytest.mark.parametrize("kind", ["fake stt", "stt"])
async def test_a_speculated_final_comes_under_its_own_id_and_costs_nothing(kind: str):
    pcm, _ = clip("hello_world")
    async with connected(kind, "/v1/listen") as line:
        await line.send(encode(listen.Hello(1)))
        [ready] = await heard(line, listen.Ready)
        await line.send(pcm.tobytes())
        await line.send(encode(listen.Speculate(7, pcm.size)))
        [speculation] = await heard(line, listen.Speculation)
        await line.send(encode(listen.Finalize(8, pcm.size)))
        [final] = await heard(line, listen.Final)
        await line.send(encode(listen.Discard()))

    assert isinstance(ready, listen.Ready)
    assert isinstance(speculation, listen.Speculation)
    assert isinstance(final, listen.Final)
    assert (speculation.id, final.id) == (7, 8)
    assert (speculation.text, speculation.end_sample) == (final.text, final.end_sample)
    assert final.text
    assert final.compute_ms == 0
    assert final.revision > speculation.revision


@pytest.mark.parametrize("kind", ["fake stt", "stt"])
async def test_a_draining_recogniser_refuses_and_says_so(kind: str):
    async with connected(kind, "/v1/listen", draining=True) as line:
        error = decode(str(await line.recv()), listen.SERVER_MESSAGES)
        await line.wait_closed()

    assert isinstance(error, listen.Error)
    assert (error.code, error.id, line.close_code) == ("unavailable", None, 1012)


@pytest.mark.parametrize("kind", ["fake tts", "tts"])
async def test_words_come_before_their_audio_and_done_counts_it(kind: str):
    words: list[speak.Word] = []
    num_samples = 0
    async with connected(kind, "/v1/speak") as line:
        await line.send(encode(speak.Hello(1)))
        assert isinstance(decode(str(await line.recv()), speak.SERVER_MESSAGES), speak.Ready)
        for message in (speak.Text(1, "Hello "), speak.Text(1, "there."), speak.Flush(1), speak.End(1)):
            await line.send(encode(message))
        while True:
            data = await line.recv()
            if isinstance(data, bytes):
                utterance, pcm = unpack_utterance(data)
                assert utterance == 1
                assert words
                num_samples += pcm.size
                continue
            message = decode(data, speak.SERVER_MESSAGES)
            if isinstance(message, speak.Done):
                break
            assert isinstance(message, speak.Words)
            words += message.words

    assert message.samples == num_samples
    assert [w.text.strip(".") for w in words] == ["Hello", "there"]
    assert ["Hello there."[w.start_char : w.end_char].strip(".") for w in words] == ["Hello", "there"]
    assert np.all(np.diff([w.start_sample for w in words]) > 0)
    assert words[-1].end_sample <= num_samples


@pytest.mark.parametrize("kind", ["fake tts", "tts"])
async def test_nothing_of_an_utterance_comes_after_its_cancelled(kind: str):
    async with connected(kind, "/v1/speak") as line:
        await line.send(encode(speak.Hello(1)))
        await line.recv()
        await line.send(encode(speak.Text(1, "One two three four five. " * 10)))
        await line.send(encode(speak.Flush(1)))
        await line.send(encode(speak.Cancel(1)))
        while decode_or_none(await line.recv()) != speak.Cancelled(1):
            pass
        await line.send(encode(speak.Text(2, "Next.")))
        await line.send(encode(speak.End(2)))
        first = await line.recv()
        utterance = unpack_utterance(first)[0] if isinstance(first, bytes) else decode_or_none(first).utterance

    assert utterance == 2


@pytest.mark.parametrize("kind", ["fake tts", "tts"])
async def test_an_unknown_voice_is_refused_before_ready(kind: str):
    async with connected(kind, "/v1/speak") as line:
        await line.send(encode(speak.Hello(1, voice="nobody")))
        error = decode_or_none(await line.recv())
        await line.wait_closed()

    assert isinstance(error, speak.Error)
    assert (error.code, error.utterance, line.close_code) == ("unknown_voice", None, 1008)


def decode_or_none(data: str | bytes) -> speak.ServerMessage | None:
    return decode(data, speak.SERVER_MESSAGES) if isinstance(data, str) else None
