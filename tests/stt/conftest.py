from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stt.config import ModelConfig, SttConfig
from stt.recognition import Models
from stt.service import build, load_models
from stt.whisper import Whisper, load
from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle
from wire.weights import model_dir

CONFIG = SttConfig(
    EdgeConfig(port=0),
    (ModelConfig("whisper-tiny.en", ("en",)), ModelConfig("whisper-base", ("*",), num_instances=1)),
)


@pytest.fixture(scope="session")
def tiny() -> Whisper:
    return load(model_dir("whisper-tiny.en"))


@pytest.fixture(scope="session")
def base() -> Whisper:
    return load(model_dir("whisper-base"))


@pytest.fixture(scope="session")
def models() -> Models:
    return load_models(CONFIG)


@pytest.fixture
async def url(models: Models) -> AsyncIterator[str]:
    """A running service with the real models."""
    lifecycle = Lifecycle("stt")
    async with serving(build(CONFIG, models, lifecycle), lifecycle, CONFIG.edge) as base_url:
        yield base_url
