"""The replay against real sockets: a scripted server of OpenAI's API, and a stage fake that dies without a word."""

from __future__ import annotations

import argparse
import io
import itertools
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from rich.console import Console

from load.errors import LoadError
from load.replay import chat
from load.report.document import RunDocument, read_run
from load.traces.trace import first
from load.traces.voice_chat import VoiceChat, generate, read_voice_chat, to_lines
from tests.fakes import FakeLlm
from tests.load.replay.openai import NUM_PROBES, ScriptedOpenAi
from tests.serving import serving
from wire.config import EdgeConfig
from wire.service import Lifecycle

CALLS = VoiceChat(
    seed=4,
    num_calls=4,
    calls_per_minute=6000,
    max_turns=3,
    min_pause_s=0.01,
    max_pause_s=0.05,
    min_abort_share=0.4,
    max_abort_share=0.6,
)


@asynccontextmanager
async def server(app: FastAPI) -> AsyncIterator[str]:
    async with serving(app, Lifecycle("llm"), EdgeConfig(port=0)) as url:
        yield url


async def replayed(url: str, tmp_path: Path, *flags: str) -> tuple[RunDocument, str]:
    """The result of the command on a trace of a few calls, and what it prints."""
    trace = tmp_path / "calls.jsonl"
    trace.write_text("".join(to_lines(CALLS, generate(CALLS))))
    parser = argparse.ArgumentParser()
    chat.add_flags(parser)
    result = tmp_path / "run.json"
    arguments = parser.parse_args([str(trace), "--url", url, "--model", "m", "--json", str(result), *flags])
    file = io.StringIO()
    await chat._run(arguments, Console(file=file, width=200))
    return read_run(result), file.getvalue()


@pytest.mark.slow
async def test_a_trace_is_replayed_with_the_prompts_and_aborts_it_has(tmp_path: Path) -> None:
    openai = ScriptedOpenAi(token_s=0.002)
    async with server(openai.app()) as url:
        run, printed = await replayed(url, tmp_path)
    trace = first(read_voice_chat(to_lines(CALLS, generate(CALLS)), "t"))
    assert len(run.requests) == len(trace.requests) == run.n
    assert run.is_complete
    by_number = {request.number: request for request in run.requests}
    for number, request in enumerate(trace.requests):
        record = by_number[number]
        assert record.outcome == ("completed" if request.abort_after_tokens is None else "aborted")
        assert record.scheduled_s == request.at_s
        assert 0 <= record.figures["ttft_from_sent_s"] <= record.figures["ttft_s"]
        if record.outcome == "completed":
            assert record.figures["prompt_tokens"] == pytest.approx(request.input_tokens, abs=2 * len(request.parts))
            assert record.figures["output_tokens"] == request.output_tokens
    assert any(record.outcome == "aborted" for record in run.requests)
    assert openai.num_aborted > 0
    assert any(record.figures.get("cached_tokens", 0) > 0 for record in run.requests)
    assert "TTFT" in printed
    assert "2.000 tokens a word" in run.head.notes[0]


@pytest.mark.slow
async def test_turns_of_a_call_share_its_prefix_and_its_name(tmp_path: Path) -> None:
    openai = ScriptedOpenAi()
    async with server(openai.app()) as url:
        await replayed(url, tmp_path)
    sent = list(zip(openai.bodies, openai.headers, strict=True))[NUM_PROBES:]
    by_call: dict[str, list[dict[str, object]]] = {}
    for body, headers in sent:
        by_call.setdefault(headers["x-offhook-call"], []).append(body)
    assert len(by_call) == CALLS.num_calls
    for bodies in by_call.values():
        turns = sorted((body["messages"] for body in bodies), key=lambda found: len(list(found)))  # type: ignore[call-overload]
        for shorter, longer in itertools.pairwise(turns):
            assert longer[: len(shorter)] == shorter
    assert {body["ignore_eos"] for body in openai.bodies} == {True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failure", "outcome", "reason"),
    [
        ("refuse", "refused", "HTTP 429: too many"),
        ("error", "failed", "HTTP 500: out of memory"),
        ("break", "failed", "broke off"),
        ("error_event", "failed", "the engine died"),
        ("stall", "failed", "no end within 0.2 s"),
        ("empty", "failed", "the answer is empty"),
    ],
)
async def test_what_a_server_does_wrong_is_counted_and_named(
    tmp_path: Path, failure: str, outcome: str, reason: str
) -> None:
    openai = ScriptedOpenAi(failure=failure)  # type: ignore[arg-type]
    async with server(openai.app()) as url:
        run, printed = await replayed(url, tmp_path, "--timeout", "0.2")
    whole = [request for request in run.requests if request.outcome != "aborted"]
    assert {request.outcome for request in whole} == {outcome}
    assert all(reason in request.reason for request in whole)
    assert outcome in printed
    if failure == "refuse":
        assert {request.retry_after_s for request in whole} == {1.5}


async def test_a_worker_that_dies_in_its_answer_fails_the_request_and_not_the_run(tmp_path: Path) -> None:
    async with server(FakeLlm(failure="drop", fail_half_way=True).app()) as url:
        with pytest.raises(LoadError, match="broke off"):  # the probe finds it before the run
            await replayed(url, tmp_path)


@pytest.mark.slow
async def test_a_server_that_counts_no_tokens_gets_estimated_prompts_and_says_so(tmp_path: Path) -> None:
    openai = ScriptedOpenAi(has_usage=False)
    async with server(openai.app()) as url:
        run, _ = await replayed(url, tmp_path, "--requests", "3")
    assert "estimate" in run.head.notes[0]
    assert all("prompt_tokens" not in request.figures for request in run.requests)


@pytest.mark.slow
async def test_prompts_are_cut_to_what_a_server_takes_and_the_result_says_how_many(tmp_path: Path) -> None:
    async with server(ScriptedOpenAi().app()) as url:
        flags = ("--max-input-tokens", "300", "--max-output-tokens", "8", "--no-ignore-eos")
        run, _ = await replayed(url, tmp_path, *flags)
    assert max(r.figures.get("prompt_tokens", 0) for r in run.requests) <= 310
    assert max(r.figures["output_tokens"] for r in run.requests) <= 8
    assert f"{len(run.requests)} of {len(run.requests)} requests were shortened" in run.head.notes
    assert run.head.plan.parameters["max_input_tokens"] == 300


async def test_no_server_is_one_line_and_leaves_no_result(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"127\.0\.0\.1:1") as failed:
        await replayed("http://127.0.0.1:1", tmp_path)
    assert "--url" in failed.value.hint
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize("flag", ["--speed", "--requests", "--duration", "--timeout", "--max-input-tokens"])
async def test_a_number_that_makes_no_sense_is_one_line(tmp_path: Path, flag: str) -> None:
    with pytest.raises(LoadError, match=f"{flag} must be above 0"):
        await replayed("http://127.0.0.1:1", tmp_path, flag, "0")


@pytest.mark.slow
async def test_a_page_can_be_had_with_the_result(tmp_path: Path) -> None:
    async with server(ScriptedOpenAi().app()) as url:
        run, printed = await replayed(url, tmp_path, "--html", str(tmp_path / "run.html"))
    assert str(tmp_path / "run.html") in printed
    assert "How long it took" in (tmp_path / "run.html").read_text()
    assert run.duration_s is not None
    assert math.isfinite(run.duration_s)
