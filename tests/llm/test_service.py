"""The worker over real sockets; the tiny model answers fast, the real one once."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from llm.config import WorkerConfig
from llm.loading import Loaded
from llm.service import build
from tests.llm import tiny
from tests.serving import serving
from wire.service import Lifecycle
from wire.sse import DONE, Decoder

MESSAGES = [{"role": "user", "content": "hello world " * 4}]
CHAT = "/v1/chat/completions"


@dataclass
class Client:
    http: aiohttp.ClientSession
    base: str
    model: str

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(f"{self.base}{path}", json={"model": self.model, **body}, headers=sent) as response:
            return response.status, await response.json()

    async def stream(self, path: str, body: dict[str, Any]) -> list[Any]:
        sent = {"model": self.model, "stream": True, **body}
        async with self.http.post(f"{self.base}{path}", json=sent) as response:
            assert response.status == 200, await response.text()
            assert response.content_type == "text/event-stream"
            events = Decoder().feed(await response.read())
        assert events[-1] == DONE
        return [json.loads(event) for event in events[:-1]]

    async def health(self) -> dict[str, Any]:
        async with self.http.get(f"{self.base}/health") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def idle(self) -> None:
        """Wait until nothing runs."""
        async with asyncio.timeout(10):
            while (await self.health())["inside"]:
                pass


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    lifecycle = Lifecycle("llm")
    app = build(tiny.CONFIG, tiny.loaded(), lifecycle)
    async with serving(app, lifecycle, tiny.CONFIG.edge) as base, aiohttp.ClientSession() as http:
        yield Client(http, base, tiny.CONFIG.id)


GREEDY = {"messages": MESSAGES, "temperature": 0, "max_tokens": 9, "ignore_eos": True}


async def test_a_stream_joins_to_the_whole_answer(client: Client):
    status, whole = await client.post(CHAT, GREEDY)
    chunks = await client.stream(CHAT, GREEDY)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]

    assert status == 200
    assert "".join(delta.get("content", "") for delta in deltas) == whole["choices"][0]["message"]["content"] != ""
    assert [delta.get("role") for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert whole["choices"][0]["finish_reason"] == "length"


async def test_usage_shows_what_was_cached(client: Client):
    _, cold = await client.post(CHAT, GREEDY)
    chunks = await client.stream(CHAT, {**GREEDY, "stream_options": {"include_usage": True}})
    usage, warm = cold["usage"], chunks[-1]["usage"]

    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1
    assert warm["total_tokens"] == usage["prompt_tokens"] + 9
    assert chunks[-1]["choices"] == []


async def test_a_prefill_warms_the_request_after_it(client: Client):
    _, prefill = await client.post(CHAT, {**GREEDY, "max_tokens": 0})
    _, asked = await client.post(CHAT, GREEDY)

    assert prefill["choices"][0]["message"]["content"] == ""
    assert prefill["usage"]["completion_tokens"] == 0
    assert asked["usage"]["prompt_tokens_details"]["cached_tokens"] == asked["usage"]["prompt_tokens"] - 1


async def test_a_prefill_can_be_streamed(client: Client):
    chunks = await client.stream(CHAT, {**GREEDY, "max_tokens": 0})

    assert [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks] == ["", ""]


async def test_completions_take_text_and_token_ids(client: Client):
    _, tokens = await client.post("/tokenize", {"prompt": "hello world"})
    body = {"temperature": 0, "max_tokens": 5, "ignore_eos": True}
    _, by_text = await client.post("/v1/completions", {"prompt": "hello world", **body})
    _, by_ids = await client.post("/v1/completions", {"prompt": tokens["tokens"], **body})
    chunks = await client.stream("/v1/completions", {"prompt": "hello world", **body})

    assert by_text["choices"][0]["text"] == by_ids["choices"][0]["text"]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == by_text["choices"][0]["text"]
    assert tokens["count"] == by_text["usage"]["prompt_tokens"]


async def test_a_completion_tells_what_was_likely(client: Client):
    body = {"prompt": "hello world", "temperature": 0, "max_tokens": 4, "ignore_eos": True}
    _, plain = await client.post("/v1/completions", body)
    _, told = await client.post("/v1/completions", {**body, "logprobs": 5})

    logprobs = told["choices"][0]["logprobs"]
    assert plain["choices"][0]["logprobs"] is None
    assert told["choices"][0]["text"] == plain["choices"][0]["text"]
    assert {len(values) for values in logprobs.values()} == {4}
    for name, value, top in zip(*(logprobs[k] for k in ("tokens", "token_logprobs", "top_logprobs")), strict=True):
        assert top[name] == value == max(top.values()) < 0  # greedy
        assert sum(map(math.exp, top.values())) < 1


async def test_the_token_that_ends_an_answer_is_told_too(client: Client):
    asked = {"prompt": "hello", "max_tokens": 100, "seed": 1, "temperature": 2, "logprobs": 0}
    _, told = await client.post("/v1/completions", asked)

    choice = told["choices"][0]
    assert len(choice["logprobs"]["tokens"]) == told["usage"]["completion_tokens"]
    assert (choice["finish_reason"] == "stop") == (choice["logprobs"]["tokens"][-1] in ("<|im_end|>", "<|endoftext|>"))


async def test_tokenize_counts_a_conversation_as_the_answer_does(client: Client):
    _, tokens = await client.post("/tokenize", {"messages": MESSAGES})
    _, answer = await client.post(CHAT, GREEDY)

    assert tokens["count"] == answer["usage"]["prompt_tokens"]


async def test_stop_strings_end_the_answer(client: Client):
    _, whole = await client.post(CHAT, {**GREEDY, "max_tokens": 40})
    text = whole["choices"][0]["message"]["content"]
    _, stopped = await client.post(CHAT, {**GREEDY, "max_tokens": 40, "stop": [text[3:5]]})

    assert stopped["choices"][0]["message"]["content"] == text[: text.index(text[3:5])]
    assert stopped["choices"][0]["finish_reason"] == "stop"


async def test_models_are_listed(client: Client):
    async with client.http.get(f"{client.base}/v1/models") as response:
        (model,) = (await response.json())["data"]

    assert (model["id"], model["max_model_len"]) == ("tiny", tiny.CONFIG.context_tokens)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (CHAT, {"messages": MESSAGES, "model": "other"}, 404, "model_not_found"),
        (CHAT, {"messages": MESSAGES, "tools": [1]}, 400, "unsupported_parameter"),
        (CHAT, {"messages": MESSAGES, "max_tokens": 9999}, 400, "context_length_exceeded"),
        (CHAT, {"messages": [{"role": "user", "content": "x" * 500}]}, 400, "context_length_exceeded"),
        (CHAT, {}, 400, "bad_request"),
        ("/v1/completions", {"prompt": ""}, 400, "bad_request"),
    ],
)
async def test_wrong_requests_are_refused_also_as_streams(
    client: Client, path: str, body: dict[str, Any], status: int, code: str
):
    for extra in ({}, {"stream": True}):
        got, answer = await client.post(path, {**body, **extra})
        assert (got, answer["error"]["code"]) == (status, code)


async def test_a_deadline_that_passed_is_504(client: Client):
    status, answer = await client.post(CHAT, {**GREEDY, "stream": True}, x_offhook_deadline_ms="0")

    assert (status, answer["error"]["code"]) == (504, "deadline_exceeded")


@pytest.mark.slow
async def test_a_full_house_is_429_before_the_stream_begins(client: Client):
    long = {"messages": MESSAGES, "max_tokens": 150, "stream": True, "ignore_eos": True}
    limit = tiny.CONFIG.max_running + tiny.CONFIG.max_waiting
    async with asyncio.TaskGroup() as group:
        asking = [
            group.create_task(client.http.post(f"{client.base}{CHAT}", json={"model": "tiny", **long}))
            for _ in range(3 * limit)
        ]
    responses = [task.result() for task in asking]
    statuses = [response.status for response in responses]
    refused = next(response for response in responses if response.status == 429)

    assert set(statuses) == {200, 429}
    assert int(refused.headers["retry-after"]) >= 1
    assert (await refused.json())["error"]["code"] == "overloaded"
    for response in responses:
        response.close()
    await client.idle()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_goes_ends_its_request(client: Client, stream: bool):
    body = {"model": "tiny", "messages": MESSAGES, "max_tokens": 180, "stream": stream, "ignore_eos": True}
    asking = asyncio.create_task(client.http.post(f"{client.base}{CHAT}", json=body))
    async with asyncio.timeout(10):
        while not (await client.health())["inside"]:
            pass
    if stream:
        (await asking).close()
    else:
        asking.cancel()
    await client.idle()

    _, after = await client.post(CHAT, GREEDY)
    assert after["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_metrics_have_vllms_names(client: Client):
    await client.post(CHAT, GREEDY)
    await client.post(CHAT, GREEDY)
    async with client.http.get(f"{client.base}/metrics") as response:
        text = await response.text()

    for name in ("time_to_first_token_seconds_count", "num_requests_running", "prefix_cache_hits_total"):
        (line,) = [line for line in text.splitlines() if line.startswith(f'vllm:{name}{{model_name="tiny"}}')]
        assert float(line.split()[-1]) > 0 or name == "num_requests_running"


@pytest.mark.slow
async def test_the_real_model_answers(real: Loaded, real_config: WorkerConfig):
    lifecycle = Lifecycle("llm")
    app = build(real_config, real, lifecycle)
    async with serving(app, lifecycle, real_config.edge) as base, aiohttp.ClientSession() as http:
        client = Client(http, base, real_config.id)
        messages = [{"role": "user", "content": "What is the capital of Italy? Answer in one sentence."}]
        chunks = await client.stream(CHAT, {"messages": messages, "temperature": 0, "max_tokens": 30})

    assert "Rome" in "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
