from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from llm.config import WorkerConfig
from llm.engine import Engine
from llm.loading import Loaded, load
from tests.llm import tiny
from wire.config import EdgeConfig

MODEL = "smollm2-135m-instruct"


@pytest.fixture(scope="session")
def real() -> Loaded:
    return load(MODEL, "int4")


@pytest.fixture(scope="session")
def real_config() -> WorkerConfig:
    return WorkerConfig(EdgeConfig(port=0), id=MODEL, weights=MODEL)


@contextlib.contextmanager
def started(config: WorkerConfig, loaded: Loaded, kind: type[Engine] = Engine) -> Iterator[Engine]:
    """An engine in its thread; at the end no block may be lost."""
    engine = kind(config, loaded)
    engine.start()
    try:
        yield engine
    finally:
        engine.close()
    engine._scheduler.audit()
    assert engine._scheduler.pool.num_free == engine._scheduler.pool.num_blocks


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    with started(tiny.CONFIG, tiny.loaded()) as engine:
        yield engine


@pytest.fixture
async def real_engine(real: Loaded, real_config: WorkerConfig) -> AsyncIterator[Engine]:
    with started(real_config, real) as engine:
        yield engine
