from __future__ import annotations

import numpy as np
import pytest

from load.errors import LoadError
from load.faults.breaks import HalfClose, Reset
from load.faults.impairment import Delay, Loss
from load.faults.path import call_path
from tests.caller import calling
from tests.rtc_caller import rtc_calling
from tests.voice.conftest import Stage
from wire import calls

RTC_HELLO = calls.Hello(1, 48000, 48000)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


async def test_without_faults_the_path_is_the_address_itself() -> None:
    async with call_path("ws://127.0.0.1:1/v1/calls", [], rng()) as path:
        assert path.url == "ws://127.0.0.1:1/v1/calls"
        assert path.counts() == {}


@pytest.mark.parametrize(
    ("url", "faults", "says"),
    [
        ("ws://127.0.0.1:1/", [Loss(0.1)], "TCP would repair it"),
        ("http://127.0.0.1:1/", [Reset(at_s=1)], "reset is of a TCP connection"),
        ("wss://127.0.0.1:1/", [Delay(0.1)], "without TLS"),
        ("http://127.0.0.1:1/", [Delay(0.1), Delay(0.2)], "delay is given twice for up"),
        ("nowhere", [Delay(0.1)], "is no address"),
    ],
)
async def test_a_fault_the_path_cannot_have_is_one_clear_line(url: str, faults, says: str) -> None:
    with pytest.raises(LoadError, match=says):
        async with call_path(url, faults, rng()):
            pass


@pytest.mark.slow
async def test_a_websocket_call_takes_the_path_and_is_broken_on_it() -> None:
    stage = Stage(greeting="Good morning.")
    url = "{}/v1/calls"
    async with stage.up() as base:
        there = url.format(base.replace("http", "ws"))
        async with call_path(there, [Delay(0.02)], rng()) as path:
            async with calling(path.url.removesuffix("/v1/calls").replace("ws", "http")) as caller:
                await caller.until_audio(0.1)
                path.do(Reset(at_s=0))
                assert await caller.until_closed() == 1006
            with pytest.raises(LoadError, match="only a WebRTC call's path"):
                path.change([Loss(0.1)])
            assert path.counts()["num_resets"] == 1


@pytest.mark.slow
async def test_a_webrtc_call_takes_the_path_and_dies_on_it() -> None:
    stage = Stage(greeting="Good morning.")
    async with (
        stage.up() as base,
        call_path(f"{base}/v1/calls/rtc", [], rng(), is_open=True) as path,
        rtc_calling(path.url.removesuffix("/v1/calls/rtc"), RTC_HELLO) as caller,
    ):
        await caller.until(calls.Ready)
        with pytest.raises(LoadError, match="half_close is of a TCP connection"):
            path.do(HalfClose(at_s=0))
        path.change([Loss(1.0, direction="down")])
        assert "nothing came for 1 s" in await caller.until_gone()
        assert path.counts()["num_lost_down"] > 0
        assert path.counts()["num_lost_up"] == 0
