"""The agent's voice over a real WebSocket when it is interrupted for nothing: every sample once, none twice."""

from __future__ import annotations

import asyncio
import contextlib
import time

import numpy as np
import pytest
from fastapi import FastAPI, WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.caller import OUTPUT_HZ, calling
from tests.fakes import TTS_RATE_HZ, FakeTts
from tests.serving import serving
from tests.speech import clip
from tests.voice.conftest import EDGE, Stage
from voice.clients.tts import TtsClient
from voice.media.resample import Resampler
from voice.mouth import Mouth
from voice.outbox import Outbox
from voice.playout import RAMP_S, Playout
from voice.transports.websocket import WebSocketTransport
from wire import calls, speak
from wire.messages import encode
from wire.pcm import Pcm16, pack_utterance
from wire.service import Lifecycle
from wire.sockets import Socket

pytestmark = pytest.mark.slow
LEAD_S = 0.16
TIMEOUT_S = 20.0
PAUSE = calls.Played(0)


class NoiseTts(FakeTts):
    """No two stretches of what it says are alike."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.pcm = np.random.default_rng(0).integers(-8000, 8000, round(seconds * TTS_RATE_HZ)).astype(np.int16)

    async def _say(
        self, peer: Socket[speak.ClientMessage], utterance: int, chars: int, samples: int
    ) -> tuple[int, int]:
        text = self.texts[utterance]
        if samples:
            return len(text), samples
        await peer.send(speak.Words(utterance, (speak.Word(text, 0, self.pcm.size, 0, len(text)),)))
        for begin in range(0, self.pcm.size, 2205):
            await peer.send(pack_utterance(utterance, self.pcm[begin : begin + 2205]))
        return len(text), self.pcm.size

    def resampled(self) -> Pcm16:
        resampler = Resampler(TTS_RATE_HZ, OUTPUT_HZ)
        return np.concatenate([resampler.push(self.pcm), resampler.flush()])


def agent(tts_url: str, *, takes_back: bool) -> FastAPI:
    """Speaks once, and pauses at the caller's first acknowledgement until the next. Then it goes on where it was, or
    where the caller says he was.
    """
    app = FastAPI()

    @app.websocket("/v1/calls")
    async def call(websocket: WebSocket) -> None:
        transport, is_said = WebSocketTransport(websocket, LEAD_S), asyncio.Event()
        await transport.accept()
        playout, outbox = Playout(OUTPUT_HZ, LEAD_S), Outbox(transport)
        tts = TtsClient(
            tts_url,
            key=None,
            call="call",
            voice=None,
            on_event=lambda event: mouth.on_event(event),
            on_lost=lambda: None,
        )
        mouth = Mouth(
            tts,
            playout,
            post=outbox.post,
            on_audio=lambda utterance: None,
            on_audible=lambda utterance, now: None,
            on_said=lambda utterance, heard: is_said.set(),
        )
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(part.run()) for part in (tts.link, outbox, mouth)]
            await tts.link.wait_ready(time.monotonic() + TIMEOUT_S)
            utterance = mouth.begin("prompt", 0)
            await mouth.say(utterance, "A text.")
            await mouth.finish(utterance)
            assert isinstance(await transport.receive(), calls.Played)
            playout.pause()
            outbox.post(calls.State("listening", 0))
            told = await transport.receive()
            assert isinstance(told, calls.Played)
            playout.resume(time.monotonic(), told.sample if takes_back else None)
            mouth.acknowledge(told.sample, time.monotonic())
            await is_said.wait()
            for task in running:
                task.cancel()
        await transport.socket.close()

    return app


@pytest.mark.parametrize("takes_back", [False, True])
async def test_a_voice_that_paused_goes_on_with_the_very_next_sample(*, takes_back: bool) -> None:
    tts = NoiseTts(1.5)
    async with contextlib.AsyncExitStack() as stack:
        tts_url = await stack.enter_async_context(serving(tts.app(), Lifecycle("tts"), EDGE))
        base = await stack.enter_async_context(serving(agent(tts_url, takes_back=takes_back), Lifecycle("voice"), EDGE))
        await stack.enter_async_context(asyncio.timeout(TIMEOUT_S))
        caller = await stack.enter_async_context(connect(base.replace("http", "ws") + "/v1/calls"))
        await caller.send(encode(calls.Hello(1, 16000, OUTPUT_HZ)))
        heard, has_paused = np.zeros(0, np.int16), False
        with contextlib.suppress(ConnectionClosed):
            while True:
                data = await caller.recv()
                if isinstance(data, bytes):
                    heard = np.concatenate([heard, np.frombuffer(data, "<i2")])
                    if not has_paused and heard.size > 0.4 * OUTPUT_HZ:
                        has_paused = True
                        await caller.send(encode(PAUSE))
                elif '"state"' in data:
                    heard = heard[: heard.size - 1000] if takes_back else heard  # as one does who drops the rest
                    await caller.send(encode(calls.Played(heard.size)))
    assert has_paused
    np.testing.assert_array_equal(heard, tts.resampled())


async def test_a_cough_over_the_answer_takes_nothing_of_it(stage: Stage) -> None:
    stage.tts = tts = NoiseTts(3.0)
    stage.stt.texts = ["Hello there.", ""]
    async with stage.up() as base, calling(base) as caller:
        caller.say(clip("hello_world")[0])
        await caller.until_audio(0.8)
        caller.say(clip("hello_world")[0][4000:6400])
        await caller.until(calls.Turn)
    heard, said = caller.track, tts.resampled()
    assert heard.size == said.size
    assert caller.of(calls.Clear) == []
    softer = np.flatnonzero(heard != said)
    if softer.size:  # else it was silent at once
        first, last = softer[0] + round(RAMP_S * OUTPUT_HZ), softer[-1] - round(RAMP_S * OUTPUT_HZ)
        gain = 10 ** (-12 / 20)
        np.testing.assert_allclose(heard[first:last], said[first:last] * gain, atol=1)
