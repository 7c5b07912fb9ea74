"""Calls through the relay, placed at the hop's address and without knowing of either."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
import pytest
from aiohttp import web

from load.faults.http_hop import client, serving
from load.faults.impairment import NO_IMPAIRMENT, Delay, Impairment, Jitter, Loss
from load.faults.sdp import candidates
from load.faults.signalling import RtcFront
from tests.rtc_caller import RATE_HZ, rtc_calling
from tests.speech import clip
from tests.voice.conftest import Stage
from wire import calls

OFFER = "m=audio 9 X 0\r\na=candidate:1 1 udp 100 127.0.0.1 50001 typ host\r\n"
ANSWER = "m=audio 9 X 0\r\na=candidate:1 1 udp 100 127.0.0.1 50002 typ host\r\n"


class Server:
    """Takes offers in three protocols and keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    async def offer(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        return web.Response(status=201, text=ANSWER, content_type="application/sdp", headers={"location": "/calls/1"})

    async def offer_json(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        return web.json_response({"sdp": ANSWER, "type": "answer", "pc_id": "x"})

    async def other(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        return web.Response(status=404 if request.path == "/refused" else 200, text=request.path_qs)


@contextlib.asynccontextmanager
async def fronted(server: Server) -> AsyncIterator[tuple[RtcFront, str, aiohttp.ClientSession]]:
    app = web.Application()
    app.router.add_post("/calls", server.offer)
    app.router.add_post("/api/offer", server.offer_json)
    app.router.add_route("*", "/{path:.*}", server.other)
    async with serving(app, 0) as target, client() as http:
        front = RtcFront(target, NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1))
        async with front.open() as url:
            yield front, url, http


async def test_an_offer_and_its_answer_name_the_relay() -> None:
    server = Server()
    async with (
        fronted(server) as (_, url, http),
        http.post(f"{url}/calls", data=OFFER, headers={"content-type": "application/sdp"}) as response,
    ):
        assert (response.status, response.headers["location"]) == (201, "/calls/1")
        assert candidates(await response.text()) not in ([], candidates(ANSWER))
    assert candidates(server.bodies[0]) not in ([], candidates(OFFER))


async def test_json_signalling_is_understood_and_its_candidates_stay_behind() -> None:
    server = Server()
    async with fronted(server) as (_, url, http):
        async with http.post(f"{url}/api/offer", json={"sdp": OFFER, "type": "offer"}) as response:
            answer = await response.json()
        await http.patch(f"{url}/api/offer", json={"pc_id": "x", "candidates": [{"candidate": OFFER}]})
    assert (answer["type"], answer["pc_id"]) == ("answer", "x")
    assert candidates(answer["sdp"]) not in ([], candidates(ANSWER))
    assert candidates(json.loads(server.bodies[0])["sdp"]) not in ([], candidates(OFFER))
    assert json.loads(server.bodies[1]) == {"pc_id": "x", "candidates": []}


async def test_a_fragment_goes_through_the_relay_of_its_call() -> None:
    server = Server()
    async with fronted(server) as (front, url, http):
        await http.post(f"{url}/calls", data=OFFER, headers={"content-type": "application/sdp"})
        fragment = OFFER.replace("50001", "50003")
        await http.patch(f"{url}/calls/1", data=fragment, headers={"content-type": "application/trickle-ice-sdpfrag"})
        [offered], [trickled] = candidates(server.bodies[0]), candidates(server.bodies[1])
        assert trickled not in (offered, ("127.0.0.1", 50003))
        assert len(front.relays) == 1
        await http.delete(f"{url}/calls/1")
        assert front._open == {}


async def test_what_is_no_signalling_goes_through_as_it_is() -> None:
    async with fronted(Server()) as (front, url, http):
        async with http.get(f"{url}/v1/calls?x=1") as response:
            assert await response.text() == "/v1/calls?x=1"
        async with http.post(f"{url}/refused", data=OFFER, headers={"content-type": "application/sdp"}) as response:
            assert response.status == 404
        assert front._open == {}


async def test_a_server_that_is_not_there_is_told() -> None:
    front = RtcFront("http://127.0.0.1:9", NO_IMPAIRMENT, NO_IMPAIRMENT, np.random.default_rng(1))
    async with front.open() as url, client() as http:
        async with http.post(f"{url}/calls", data=OFFER, headers={"content-type": "application/sdp"}) as response:
            assert response.status == 502
        assert front._open == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [NO_IMPAIRMENT, Impairment(loss=Loss(0.03), jitter=Jitter(0.04)), Impairment(delay=Delay(0.1))]
)
async def test_a_whole_call_is_held_through_the_relay(stage: Stage, path: Impairment) -> None:
    stage.llm.replies = ["One two three four."]
    pcm, _ = clip("hello_world", RATE_HZ)
    async with stage.up() as base:
        front = RtcFront(base, path, path, np.random.default_rng(5))
        async with front.open() as url, rtc_calling(url, calls.Hello(1, 48000, 48000, greeting=False)) as caller:
            caller.say(pcm)
            turn = await caller.until(calls.Turn)
        [relay] = front.relays
    assert turn.outcome == "answered"
    assert caller.audio
    assert (relay.up.num_lost > 0) == (path.loss is not None)
    assert relay.up.num_sent > 50


@pytest.fixture
def stage() -> Stage:
    return Stage()
