"""The real voice, loaded once."""

from __future__ import annotations

import pytest

from stt.whisper import Whisper
from tts_engine.config import TtsConfig, VoiceConfig
from tts_engine.engine import Engine
from tts_engine.speaking import Speaker
from tts_engine.text.lexicon import Lexicon, read_lexicon
from tts_engine.vits.voice import VitsVoice
from wire.config import EdgeConfig
from wire.weights import cache_dir, model_dir

MODEL = "piper-en-us-joe-medium"


def config(**changes: int) -> TtsConfig:
    return TtsConfig(edge=EdgeConfig(port=0), voices=(VoiceConfig("joe", MODEL),), **changes)


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    return read_lexicon(model_dir("lexicon-en-us"))


@pytest.fixture(scope="session")
def voice() -> VitsVoice:
    folder = model_dir(MODEL)
    return VitsVoice(folder / "model.onnx", folder / "config.json", cache_dir() / "derived")


@pytest.fixture(scope="session")
def speaker(voice: VitsVoice, lexicon: Lexicon) -> Speaker:
    return Speaker(voice, lexicon)


@pytest.fixture(scope="session")
def recogniser() -> Whisper:
    return Whisper(model_dir("whisper-tiny.en"))


@pytest.fixture
def engine(speaker: Speaker) -> Engine:
    """Not started."""
    return Engine({"joe": speaker}, config().max_waiting)
