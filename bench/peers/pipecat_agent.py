"""A Pipecat agent of the models of `deploy/profiles/cpu.yaml`, to be measured beside ours on the same callers.

It wants a virtual environment of its own, because Pipecat is no dependency of ours; and the stack of ours, whose LLM
it asks (`--llm`) and whose weights it opens (`--models`, the cache's folder of models). How to run:

    python3 -m venv out/pipecat
    out/pipecat/bin/pip install "pipecat-ai[webrtc,whisper,piper,openai]==1.14.0" "fastapi<1" "uvicorn<1"
    OMP_NUM_THREADS=2 out/pipecat/bin/python bench/peers/pipecat_agent.py --port 9290
    PYTHONPATH=. .venv/bin/python bench/turns.py --url http://127.0.0.1:8080/v1/calls/rtc http://127.0.0.1:9290/api/offer
    .venv/bin/offhook load run barge-in-stops-the-answer --transport pipecat --url http://127.0.0.1:9290/api/offer

Everything is Pipecat's own: SmallWebRTC, Silero's detector, Smart Turn, `WhisperSTTService`, `OpenAILLMService`,
`PiperTTSService`, interruptions; what is set, and why, stands beside it below. Two things are done for it that a bot
need not do: models are loaded and run once before the call is answered, so that no first turn pays for it, and media
use 127.0.0.1 alone. mypy does not see Pipecat (pyproject.toml names it with the other packages without types here).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aioice.ice
import numpy as np
import uvicorn
from fastapi import FastAPI
from loguru import logger
from pipecat.audio.turn.smart_turn.base_smart_turn import SmartTurnParams
from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.stt import OpenAISTTService
from pipecat.services.openai.tts import VALID_VOICES, OpenAITTSService
from pipecat.services.piper.tts import PiperTTSService
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService
from pipecat.services.whisper.stt import WhisperSTTService
from pipecat.transcriptions.language import Language
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
from pipecat.transports.smallwebrtc.request_handler import SmallWebRTCRequest, SmallWebRTCRequestHandler
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
from pipecat.turns.user_stop import TurnAnalyzerUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner

LOCALHOST = "127.0.0.1"
CACHE = Path("~/.cache/offhook/models").expanduser()
WHISPER, PIPER = "whisper-tiny.en", "piper-en-us-joe-medium"
COMPUTE_TYPE = "int8"  # as stt/whisper.py has it
INSTRUCTIONS = (  # voice/config.py's
    "You are a friendly telephone agent. You speak with the caller, so answer with one or two short, plain sentences. "
    "No lists, no markup."
)
REPETITION_PENALTY = 1.1  # the profile's
VAD_STOP_S = 0.2  # Pipecat's default, and what its documentation recommends with Smart Turn
SMART_TURN_STOP_S = 3.0  # Pipecat's default: silence after which a turn that sounds unfinished is over all the same
TTFS_P99_S = 2.0  # end of speech -> transcript, which Pipecat asks for; costs nothing, as transcripts come marked final
NO_KEY = "none"
VOICE, VOICE_HZ = "joe", 22050
OUT_HZ = 24000  # Pipecat's default; the voice's 22,050 Hz are no whole number of samples in 10 ms


@dataclass(frozen=True)
class Services:
    stt: SegmentedSTTService
    llm: OpenAILLMService
    tts: TTSService
    turn_analyzer: LocalSmartTurnAnalyzerV3


def load(arguments: argparse.Namespace, voices: Path) -> Services:
    """What one call needs, its models loaded and each run once."""
    llm = OpenAILLMService(
        api_key=NO_KEY,
        base_url=arguments.llm,
        settings=OpenAILLMService.Settings(
            model=arguments.llm_model,
            system_instruction=INSTRUCTIONS,
            temperature=0.0,
            max_tokens=arguments.max_reply_tokens,
            extra={"extra_body": {"repetition_penalty": REPETITION_PENALTY}},
        ),
    )
    turn_analyzer = LocalSmartTurnAnalyzerV3(params=SmartTurnParams(stop_secs=arguments.smart_turn_stop_s))
    turn_analyzer._predict_endpoint(np.zeros(16000, np.float32))
    stt = _whisper(arguments.models / WHISPER) if arguments.stt is None else _our_whisper(arguments.stt)
    tts = _piper(voices) if arguments.tts is None else _our_voice(arguments.tts)
    return Services(stt, llm, tts, turn_analyzer)


def _whisper(folder: Path) -> SegmentedSTTService:
    """Its beams are five and cannot be set."""
    settings = WhisperSTTService.Settings(model=str(folder), language=Language.EN)
    stt = WhisperSTTService(device="cpu", compute_type=COMPUTE_TYPE, settings=settings, ttfs_p99_latency=TTFS_P99_S)
    list(stt._model.transcribe(np.zeros(16000, np.float32), language="en")[0])
    return stt


def _piper(voices: Path) -> TTSService:
    """Asked for whole sentences, which is the default; by tokens it would be asked for pieces of words."""
    tts = PiperTTSService(download_dir=voices, settings=PiperTTSService.Settings(voice=PIPER))
    list(tts._voice.synthesize("Hello, how can I help you?"))
    return tts


def _our_whisper(url: str) -> SegmentedSTTService:
    settings = OpenAISTTService.Settings(model=WHISPER, language=Language.EN)
    return OpenAISTTService(api_key=NO_KEY, base_url=url, settings=settings, ttfs_p99_latency=TTFS_P99_S)


def _our_voice(url: str) -> TTSService:
    VALID_VOICES[VOICE] = VOICE  # it asks for no others than OpenAI's
    settings = OpenAITTSService.Settings(model=PIPER, voice=VOICE)
    return OpenAITTSService(api_key=NO_KEY, base_url=url, sample_rate=VOICE_HZ, settings=settings)


async def hold(connection: SmallWebRTCConnection, services: Services, is_verbose: bool) -> None:
    """One call, until the caller is gone."""
    transport = SmallWebRTCTransport(connection, TransportParams(audio_in_enabled=True, audio_out_enabled=True))
    stop = TurnAnalyzerUserTurnStopStrategy(turn_analyzer=services.turn_analyzer)
    user, assistant = LLMContextAggregatorPair(
        LLMContext(),
        user_params=LLMUserAggregatorParams(
            vad_analyzer=SileroVADAnalyzer(params=VADParams(stop_secs=VAD_STOP_S)),
            user_turn_strategies=UserTurnStrategies(stop=[stop]),
        ),
    )
    steps = [transport.input(), services.stt, user, services.llm, services.tts, transport.output(), assistant]
    worker = PipelineWorker(
        Pipeline(steps),
        params=PipelineParams(audio_out_sample_rate=OUT_HZ, enable_metrics=is_verbose),
    )
    runner = WorkerRunner(handle_sigint=False)

    async def end(transport: Any, client: Any) -> None:
        await runner.cancel()

    transport.add_event_handler("on_client_disconnected", end)
    await runner.add_workers(worker)
    await runner.run()


def app_of(arguments: argparse.Namespace, voices: Path) -> FastAPI:
    handler = SmallWebRTCRequestHandler()
    running: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def until_closed(app: FastAPI) -> AsyncIterator[None]:
        yield
        await handler.close()

    app = FastAPI(lifespan=until_closed)

    @app.post("/api/offer")
    async def offer(request: dict[str, Any]) -> Any:
        services = await asyncio.to_thread(load, arguments, voices)

        async def begin(connection: SmallWebRTCConnection) -> None:
            task = asyncio.create_task(hold(connection, services, arguments.verbose))
            running.add(task)
            task.add_done_callback(running.discard)

        return await handler.handle_web_request(SmallWebRTCRequest.from_dict(request), begin)

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9290)
    parser.add_argument("--llm", default="http://127.0.0.1:8103/v1")
    parser.add_argument(
        "--stt", metavar="URL", help="recognise there, http://127.0.0.1:8101/v1, instead of by Pipecat's own"
    )
    parser.add_argument(
        "--tts", metavar="URL", help="speak there, http://127.0.0.1:8102/v1, instead of by Pipecat's own"
    )
    parser.add_argument("--llm-model", default="smollm2-135m-instruct")
    parser.add_argument("--models", type=Path, default=CACHE)
    parser.add_argument("--max-reply-tokens", type=int, default=80)
    parser.add_argument("--smart-turn-stop-s", type=float, default=SMART_TURN_STOP_S)
    parser.add_argument("--verbose", action="store_true", help="log what Pipecat does, with its own times")
    arguments = parser.parse_args()
    logger.remove()
    logger.add(sys.stderr, level="DEBUG" if arguments.verbose else "WARNING")
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [LOCALHOST]
    with TemporaryDirectory() as folder:
        voices = Path(folder)
        weights = arguments.models.absolute() / PIPER
        (voices / f"{PIPER}.onnx").symlink_to(weights / "model.onnx")  # Piper wants these two names
        (voices / f"{PIPER}.onnx.json").symlink_to(weights / "config.json")
        uvicorn.run(app_of(arguments, voices), host=LOCALHOST, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
