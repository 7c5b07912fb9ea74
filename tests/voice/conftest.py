from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from tests.fakes import FakeLlm, FakeStt, FakeTts
from tests.serving import free_ports, serving
from voice.config import AgentConfig, VoiceConfig
from voice.server import build, load
from wire.config import EdgeConfig
from wire.service import Lifecycle

EDGE = EdgeConfig(port=0)


@dataclass
class Stage:
    """A call server on scripted services."""

    stt: FakeStt = field(default_factory=FakeStt)
    tts: FakeTts = field(default_factory=FakeTts)
    llm: FakeLlm = field(default_factory=FakeLlm)
    lifecycle: Lifecycle = field(default_factory=lambda: Lifecycle("voice"))
    greeting: str = ""
    filler: str = "One moment, please."
    missing: str = ""  # the service where nobody listens
    settings: dict[str, object] = field(default_factory=dict)
    edge: EdgeConfig = EDGE

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        async with contextlib.AsyncExitStack() as stack:
            urls = [
                f"http://127.0.0.1:{free_ports(1)[0]}"
                if name == self.missing
                else await stack.enter_async_context(serving(fake.app(), Lifecycle("fake"), EDGE))
                for name, fake in (("stt", self.stt), ("tts", self.tts), ("llm", self.llm))
            ]
            config = VoiceConfig(
                self.edge,
                *urls,
                llm_model="fake",
                agent=AgentConfig(greeting=self.greeting, filler=self.filler),
                **self.settings,  # type: ignore[arg-type]
            )
            yield await stack.enter_async_context(
                serving(build(load(config, self.lifecycle), self.lifecycle), self.lifecycle, self.edge)
            )


@pytest.fixture
def stage() -> Stage:
    return Stage()
