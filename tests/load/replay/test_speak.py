from __future__ import annotations

import argparse
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI, WebSocket
from rich.console import Console

from load.errors import LoadError
from load.replay import speak as command
from load.replay.speak import OPEN_AHEAD_S, Utterance
from load.report.document import RunDocument, read_run
from tests.fakes import SECONDS_PER_WORD, FakeTts
from tests.serving import serving
from wire import speak
from wire.config import EdgeConfig
from wire.errors import Overloaded, WireError
from wire.service import Lifecycle, create_app
from wire.sockets import Socket

RATE_HZ = 1000


async def offered(url: str, tmp_path: Path, *flags: str) -> tuple[RunDocument, str]:
    parser = argparse.ArgumentParser()
    command.add_flags(parser)
    result = tmp_path / "run.json"
    socket_url = url.replace("http://", "ws://") + "/v1/speak"
    words = ["--url", socket_url, "--rate", "20", "--duration", "0.4", "--json", str(result), *flags]
    file = io.StringIO()
    await command._run(parser.parse_args(words), Console(file=file, width=200))
    return read_run(result), file.getvalue()


def tone(length_s: float) -> np.ndarray:
    return (8000 * np.sin(np.arange(round(length_s * RATE_HZ)) * 0.9)).astype(np.int16)


def test_the_first_audible_packet_counts_and_silence_does_not() -> None:
    silence = np.zeros(300, np.int16)
    audio = [(1.2, silence), (1.3, tone(0.5)), (2.6, tone(0.5))]
    found = Utterance(RATE_HZ, audio, speak.Done(1, 1300, 130.0, 50.0)).figures(scheduled_s=1.0)
    assert found["first_packet_s"] == pytest.approx(0.2)
    assert found["ttfa_s"] == pytest.approx(0.3)
    assert found["rtf"] == pytest.approx(1.6 / 1.3)
    assert found["server_rtf"] == pytest.approx(0.1)
    assert found["server_ttfa_s"] == pytest.approx(0.05)
    assert (found["num_underruns"], found["underrun_s"]) == (1, pytest.approx(0.6))


def test_speech_that_is_never_audible_has_no_ttfa() -> None:
    found = Utterance(RATE_HZ, [(1.0, np.zeros(900, np.int16))], speak.Done(1, 900, 1.0)).figures(0.0)
    assert "ttfa_s" not in found
    assert found["audio_s"] == 0.9


@pytest.mark.slow
async def test_every_request_is_spoken_and_measured(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("One two three four.\n\n")
    app = create_app(Lifecycle("tts"), EdgeConfig(port=0))

    @app.websocket("/v1/speak")
    async def speak_alone(websocket: WebSocket) -> None:
        await FakeTts()._speak(websocket)

    async with serving(app, Lifecycle("tts"), EdgeConfig(port=0)) as url:
        run, printed = await offered(url, tmp_path, "--texts", str(tmp_path / "texts"))
    assert run.is_complete
    assert run.n == len(run.requests) == run.head.plan.num_planned > 0
    for request in run.requests:
        assert request.outcome == "completed"
        assert request.scheduled_s >= OPEN_AHEAD_S
        assert request.figures["audio_s"] == pytest.approx(4 * SECONDS_PER_WORD, abs=0.001)
        assert 0 < request.figures["ttfa_s"] < request.ended_s - request.scheduled_s + 0.001
    assert run.validity is not None
    assert run.validity.num_timed == run.n
    assert "TTFA" in printed


@dataclass
class FirstOnly:
    """Speaks to the first who comes; the others are refused, or lose their connection where there is no `error`."""

    error: WireError | None
    num_connections: int = 0

    def app(self) -> FastAPI:
        app = create_app(Lifecycle("tts"), EdgeConfig(port=0))
        app.websocket("/v1/speak")(self._speak)
        return app

    async def _speak(self, websocket: WebSocket) -> None:
        self.num_connections += 1
        if self.num_connections == 1 or self.error is None:
            await FakeTts(failure="none" if self.num_connections == 1 else "drop")._speak(websocket)
            return
        peer: Socket[speak.ClientMessage] = Socket(websocket, speak.CLIENT_MESSAGES, speak.Error)
        await peer.accept()
        await peer.fail(self.error)


@pytest.mark.slow
async def test_refusals_are_counted_apart_from_failures(tmp_path: Path) -> None:
    async with serving(
        FirstOnly(Overloaded("all taken", retry_after_s=2.0)).app(), Lifecycle("tts"), EdgeConfig(port=0)
    ) as url:
        run, printed = await offered(url, tmp_path)
    assert {request.outcome for request in run.requests} == {"refused"}
    assert {request.reason for request in run.requests} == {"all taken"}
    assert "refused" in printed


@pytest.mark.slow
async def test_a_voice_that_dies_fails_the_request_and_not_the_run(tmp_path: Path) -> None:
    async with serving(FirstOnly(None).app(), Lifecycle("tts"), EdgeConfig(port=0)) as url:
        run, _ = await offered(url, tmp_path)
    assert {request.outcome for request in run.requests} == {"failed"}
    assert all("1011" in request.reason for request in run.requests)


@pytest.mark.parametrize("failure", ["drop", "error"])
async def test_a_voice_that_cannot_speak_is_one_line_before_the_run(tmp_path: Path, failure: str) -> None:
    tts = FakeTts(failure=failure)  # type: ignore[arg-type]
    async with serving(tts.app(), Lifecycle("tts"), EdgeConfig(port=0)) as url:
        with pytest.raises(LoadError, match="no voice at"):
            await offered(url, tmp_path)
    assert not (tmp_path / "run.json").exists()


async def test_no_server_an_unknown_voice_and_no_text_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"no voice at ws://127\.0\.0\.1:1/"):
        await offered("http://127.0.0.1:1", tmp_path)
    async with serving(FakeTts().app(), Lifecycle("tts"), EdgeConfig(port=0)) as url:
        with pytest.raises(LoadError, match="no voice 'nobody'"):
            await offered(url, tmp_path, "--voice", "nobody")
        (tmp_path / "empty").write_text("\n")
        with pytest.raises(LoadError, match="has no text"):
            await offered(url, tmp_path, "--texts", str(tmp_path / "empty"))
        with pytest.raises(LoadError, match="cannot read: No such file"):
            await offered(url, tmp_path, "--texts", str(tmp_path / "none"))
    with pytest.raises(LoadError, match="--rate must be above 0"):
        await offered(url, tmp_path, "--rate", "0")
