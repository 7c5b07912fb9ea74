"""Scripted services behind the real protocols, for what real models cannot be made to do on demand: fail, stall, die.

`tests/test_fakes.py` holds them to the same exchanges as the real services.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import JSONResponse, Response, StreamingResponse

from wire import listen, speak, sse
from wire.config import EdgeConfig
from wire.errors import PeerError, WireError
from wire.pcm import pack_utterance
from wire.service import Lifecycle, create_app
from wire.sockets import Disconnected, Socket

Failure = Literal["none", "silent", "error", "drop"]
TTS_RATE_HZ = 22050
SECONDS_PER_WORD = 0.12


@dataclass
class FakeStt:
    """Says `texts` one after another, whatever it hears. `failure`: how it treats `finalize`."""

    texts: list[str] = field(default_factory=lambda: ["Hello there."])
    failure: Failure = "none"
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle("stt"))
    peers: list[Socket[listen.ClientMessage]] = field(default_factory=list)  # that are connected
    num_connections: int = 0
    final_delay_s: float = 0.0
    speculates: bool = True
    speculation_s: float = 0.0
    num_finals: int = 0
    num_samples: int = 0

    def app(self) -> FastAPI:
        app = create_app(self.lifecycle, EdgeConfig(port=0))
        app.websocket("/v1/listen")(self._listen)
        return app

    async def cut(self) -> None:
        """Lose all connections."""
        for peer in [*self.peers]:
            await peer.close(1011)

    async def _listen(self, websocket: WebSocket) -> None:
        peer = Socket(websocket, listen.CLIENT_MESSAGES, listen.Error)
        await peer.accept()
        try:
            with self.lifecycle.unit():
                self.peers.append(peer)
                self.num_connections += 1
                await self._converse(peer)
        except WireError as error:
            await peer.fail(error)
        finally:
            if peer in self.peers:
                self.peers.remove(peer)

    async def _converse(self, peer: Socket[listen.ClientMessage]) -> None:
        revision, received = 0, 0
        try:
            while True:
                message = await peer.receive()
                revision += 1
                text = self.texts[min(self.num_finals, len(self.texts) - 1)]
                match message:
                    case bytes():
                        received += len(message) // 2
                        self.num_samples = received
                    case listen.Hello():
                        await peer.send(listen.Ready(1, "fake"))
                    case listen.Speculate(id=request) if self.speculates:
                        await asyncio.sleep(self.speculation_s)
                        await peer.send(listen.Speculation(request, revision, text, received, 0.0))
                    case listen.Finalize(id=request):
                        if self.failure == "drop":
                            await peer.close(1011)
                            return
                        if self.failure == "error":
                            await peer.send(listen.Error("unavailable", "out of order", request))
                        if self.failure == "none":
                            await asyncio.sleep(self.final_delay_s)
                            self.num_finals += 1
                            await peer.send(listen.Final(request, revision, text, 0, received, 0.0))
        except Disconnected:
            return


@dataclass
class FakeTts:
    """Speaks a tone of `word_s` per word. `failure`: how it treats the first flush of an utterance."""

    failure: Failure = "none"
    word_s: float = SECONDS_PER_WORD
    cancelled: list[int] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)

    def app(self) -> FastAPI:
        app = create_app(Lifecycle("tts"), EdgeConfig(port=0))
        app.websocket("/v1/speak")(self._speak)
        return app

    async def _speak(self, websocket: WebSocket) -> None:
        peer = Socket(websocket, speak.CLIENT_MESSAGES, speak.Error)
        await peer.accept()
        spoken: dict[int, tuple[int, int]] = {}  # utterance -> (characters, samples) so far
        try:
            while True:
                match await peer.receive():
                    case speak.Hello(voice="nobody"):
                        raise PeerError("no voice 'nobody'", code="unknown_voice")
                    case speak.Hello():
                        await peer.send(speak.Ready(1, "tone", TTS_RATE_HZ))
                    case speak.Text(utterance=utterance, delta=delta):
                        self.texts[utterance] = self.texts.get(utterance, "") + delta
                    case speak.Flush(utterance=utterance) if self.failure == "none":
                        spoken[utterance] = await self._say(peer, utterance, *spoken.get(utterance, (0, 0)))
                    case speak.Flush(utterance=utterance) if self.failure == "error":
                        await peer.send(speak.Error("unavailable", "out of order", utterance))
                    case speak.Flush() if self.failure == "drop":
                        await peer.close(1011)
                        return
                    case speak.End(utterance=utterance) if self.failure == "none":
                        await peer.send(speak.Done(utterance, spoken.get(utterance, (0, 0))[1], 1.0, 1.0))
                    case speak.Cancel(utterance=utterance):
                        self.cancelled.append(utterance)
                        await peer.send(speak.Cancelled(utterance))
        except PeerError as error:
            await peer.fail(error)
        except Disconnected:
            return

    def pitch_hz(self, utterance: int) -> float:
        return 220.0

    async def _say(
        self, peer: Socket[speak.ClientMessage], utterance: int, chars: int, samples: int
    ) -> tuple[int, int]:
        text, per_word = self.texts[utterance], round(self.word_s * TTS_RATE_HZ)
        for word in text[chars:].split():
            start_char = text.index(word, chars)
            chars = start_char + len(word)
            timed = speak.Word(word, samples, samples + per_word, start_char, chars)
            await peer.send(speak.Words(utterance, (timed,)))
            t = np.arange(per_word) / TTS_RATE_HZ
            tone = 8000 * np.sin(2 * np.pi * self.pitch_hz(utterance) * t)
            await peer.send(pack_utterance(utterance, tone.astype(np.int16)))
            samples += per_word
        return len(text), samples


@dataclass
class FakeLlm:
    """Answers with `replies` one after another. `failure`: before the first token, or after half of the reply."""

    replies: list[str] = field(default_factory=lambda: ["This is my answer, and it goes on. Really."])
    failure: Failure = "none"
    fail_half_way: bool = False
    token_s: float = 0.005
    first_token_s: float = 0.0
    prompts: list[list[dict[str, str]]] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)  # of the same requests
    likely: dict[str, float] | None = None  # the next token after any words; None: it does not tell
    expected_after: list[str] = field(default_factory=list)
    num_prefills: int = 0
    num_aborted: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    aborted: asyncio.Event = field(default_factory=asyncio.Event)

    def app(self) -> FastAPI:
        app = create_app(Lifecycle("llm"), EdgeConfig(port=0))
        app.post("/v1/chat/completions")(self._complete)
        app.post("/v1/completions")(self._expect)
        return app

    async def _expect(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.expected_after.append(body["prompt"])
        if self.failure == "error":
            return JSONResponse({"error": {"message": "out of order"}}, status_code=503)
        if self.failure == "silent":
            await asyncio.sleep(3600)
        if self.likely is None:
            return JSONResponse({"error": {"message": "logprobs: not supported"}}, status_code=400)
        logprobs = {"top_logprobs": [self.likely]}
        return JSONResponse({"choices": [{"index": 0, "text": "", "logprobs": logprobs}]})

    async def _complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        if body["max_tokens"] == 0:
            self.num_prefills += 1
            return StreamingResponse(self._events([]), media_type="text/event-stream")
        self.prompts.append(body["messages"])
        self.bodies.append(body)
        failure = self.failure  # of this request, whatever comes after it
        self.asked.set()
        if failure == "error" and not self.fail_half_way:
            return JSONResponse({"error": {"message": "out of order"}}, status_code=503)
        reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        return StreamingResponse(self._events(reply.split(" "), failure), media_type="text/event-stream")

    async def _events(self, words: list[str], failure: Failure = "none") -> AsyncIterator[bytes]:
        try:
            for i, word in enumerate(words):
                if failure != "none" and (not self.fail_half_way or i >= len(words) // 2):
                    if failure == "silent":
                        await asyncio.sleep(3600)
                    return
                await asyncio.sleep(self.token_s if i else max(self.token_s, self.first_token_s))
                text = word if i == 0 else f" {word}"
                yield sse.encode(json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}))
            yield sse.encode(sse.DONE)
        except asyncio.CancelledError:
            self.num_aborted += 1
            self.aborted.set()
            raise
