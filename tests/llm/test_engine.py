"""The engine in its thread. Equalities hold exactly on the tiny float32 model; the real model shows that it works."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from prometheus_client import REGISTRY

from llm.engine import Engine
from llm.loading import Loaded
from llm.sampling import Sampler, Sampling
from llm.sequence import Event, Finished, Generation, Sequence, Text
from tests.llm import tiny
from tests.llm.conftest import started
from wire.errors import DeadlineExceeded, Overloaded, PeerError, Unavailable

GREEDY = Sampling(temperature=0)
PROMPT = tuple(range(3, 90))


def request(prompt: tuple[int, ...] = PROMPT, max_tokens: int = 12, **settings: object) -> Generation:
    defaults: dict[str, object] = {"sampling": GREEDY, "ignore_eos": True}
    return Generation(prompt, max_tokens, **(defaults | settings))  # type: ignore[arg-type]


async def answer(engine: Engine, generation: Generation) -> tuple[str, Finished]:
    text = ""
    async for event in engine.submit(generation):
        text += event.text
    assert isinstance(event, Finished)
    return text, event


async def first_token(engine: Engine, generation: Generation):
    """A stream that has begun."""
    stream = engine.submit(generation)
    async for event in stream:
        assert isinstance(event, Text)
        break
    return stream


async def test_cached_uncached_and_chunked_answers_are_equal():
    wanted = None
    for chunk_tokens in (16, 32, 256):
        config = replace(tiny.CONFIG, prefill_chunk_tokens=chunk_tokens)
        with started(config, tiny.loaded()) as engine:
            cold, warm = await answer(engine, request()), await answer(engine, request())
        assert (cold[1].usage.cached_tokens, warm[1].usage.cached_tokens) == (0, len(PROMPT) - 1)
        wanted = wanted or cold[0]
        assert cold[0] == warm[0] == wanted


async def test_answers_side_by_side_equal_answers_alone(engine: Engine):
    requests = [request(PROMPT[i:], seed_tokens) for i, seed_tokens in enumerate((20, 5, 11))]
    together = await asyncio.gather(*(answer(engine, each) for each in requests))
    with started(tiny.CONFIG, tiny.loaded()) as other:
        alone = [await answer(other, each) for each in requests]

    assert [text for text, _ in together] == [text for text, _ in alone]


async def test_every_token_is_an_event_and_the_last_one_counts_them(engine: Engine):
    events = [event async for event in engine.submit(request(max_tokens=7))]

    assert [type(event) for event in events] == [Text] * 6 + [Finished]
    assert events[-1].reason == "length"
    assert (events[-1].usage.prompt_tokens, events[-1].usage.completion_tokens) == (len(PROMPT), 7)


async def test_prefill_only_samples_nothing_and_the_request_after_it_computes_one_token(engine: Engine):
    _, prefill = await answer(engine, request(max_tokens=0))
    _, asked = await answer(engine, request())

    assert (prefill.usage.completion_tokens, prefill.reason) == (0, "length")
    assert asked.usage.cached_tokens == len(PROMPT) - 1


async def test_the_next_turn_finds_the_answer_too(engine: Engine):
    stream = [event async for event in engine.submit(request(max_tokens=20))]
    assert isinstance(stream[-1], Finished)
    tokens = engine._tokenizer.encode("".join(event.text for event in stream))
    _, following = await answer(engine, request((*PROMPT, *tokens, 5, 6)))

    assert following.usage.cached_tokens >= len(PROMPT)


async def test_two_conversations_by_turns_each_find_all_they_had(engine: Engine):
    system = PROMPT[:20]
    prompts = [(*system, 7, *range(30, 50)), (*system, 8, *range(60, 80))]
    for turn in range(3):
        for i, prompt in enumerate(prompts):
            _, finished = await answer(engine, request(prompt, 1))
            assert finished.usage.cached_tokens >= (len(prompt) - 11 if turn else i * len(system))
            prompts[i] = (*prompt, *range(90 + turn, 100 + turn))


async def test_a_seed_repeats_an_answer_and_another_seed_does_not(engine: Engine):
    hot = [
        (await answer(engine, request(max_tokens=30, sampling=Sampling(temperature=2, seed=seed))))[0]
        for seed in (1, 1, 2)
    ]

    assert hot[0] == hot[1] != hot[2]


async def test_a_seed_gives_the_same_answer_beside_others(engine: Engine):
    seeded = request(max_tokens=30, sampling=Sampling(temperature=1.5, seed=5))
    (alone, _), (beside, _) = (
        await answer(engine, seeded),
        (await asyncio.gather(answer(engine, seeded), answer(engine, request(PROMPT[9:], 40))))[0],
    )

    assert alone == beside


async def test_a_stop_string_ends_the_answer_before_it(engine: Engine):
    whole, _ = await answer(engine, request(max_tokens=40))
    assert len(whole) > 6
    stop = whole[4:6]
    text, finished = await answer(engine, request(max_tokens=40, stops=(stop,)))

    assert text == whole[: whole.index(stop)]
    assert finished.reason == "stop"
    assert finished.usage.completion_tokens < 40


async def test_abort_ends_the_stream_and_keeps_what_was_computed(engine: Engine):
    stream = await first_token(engine, request(max_tokens=150))
    stream.abort()
    rest = [event async for event in stream]
    _, again = await answer(engine, request())

    assert isinstance(rest[-1], Finished)
    assert rest[-1].reason == "abort"
    assert rest[-1].usage.completion_tokens < 150
    assert again.usage.cached_tokens == len(PROMPT) - 1
    assert engine.num_inside == 0


async def test_abort_of_a_waiting_request_never_runs_it(engine: Engine):
    running = [await first_token(engine, request(PROMPT[i:], 100)) for i in range(tiny.CONFIG.max_running)]
    waiting = engine.submit(request(PROMPT[50:], 9))
    waiting.abort()
    events = [event async for event in waiting]
    for stream in running:
        stream.abort()

    assert [(e.reason, e.usage.completion_tokens) for e in events if isinstance(e, Finished)] == [("abort", 0)]


async def test_a_full_house_refuses(engine: Engine):
    limit = tiny.CONFIG.max_running + tiny.CONFIG.max_waiting
    streams = [engine.submit(request(PROMPT[i:], 100)) for i in range(limit)]
    with pytest.raises(Overloaded) as refused:
        engine.submit(request())
    for stream in streams:
        stream.abort()

    assert refused.value.retry_after_s > 0
    assert [e async for e in streams[-1]]
    assert engine.submit(request(max_tokens=1))


async def test_a_waiting_request_fails_when_its_deadline_passes():
    with started(replace(tiny.CONFIG, max_running=1), tiny.loaded()) as engine:
        running = await first_token(engine, request(max_tokens=160))  # some 80 ms
        late = engine.submit(request(PROMPT[40:], 5, deadline_s=time.monotonic() + 0.002))
        with pytest.raises(DeadlineExceeded):
            [event async for event in late]
        running.abort()
        with pytest.raises(DeadlineExceeded):
            engine.submit(request(deadline_s=time.monotonic() - 1))


async def test_a_deadline_does_not_cut_an_answer_that_began(engine: Engine):
    deadline_s = time.monotonic() + 0.05
    stream = await first_token(engine, request(max_tokens=100, deadline_s=deadline_s))
    await asyncio.to_thread(_until, deadline_s)
    rest = [event async for event in stream]

    assert isinstance(rest[-1], Finished)


def _until(instant_s: float) -> None:
    while time.monotonic() < instant_s:
        pass


async def test_what_cannot_fit_the_context_is_refused(engine: Engine):
    with pytest.raises(PeerError) as refused:
        engine.submit(request(max_tokens=tiny.CONFIG.context_tokens - len(PROMPT) + 1))
    _, fits = await answer(engine, request(max_tokens=tiny.CONFIG.context_tokens - len(PROMPT)))

    assert refused.value.code == "context_length_exceeded"
    assert fits.usage.completion_tokens == tiny.CONFIG.context_tokens - len(PROMPT)


async def test_a_failing_step_ends_its_requests_and_no_others(engine: Engine, caplog: pytest.LogCaptureFixture):
    broken = request((1, 2, 10**6))  # no such token: the embedding has no row
    with pytest.raises(Unavailable):
        await answer(engine, broken)
    _, fine = await answer(engine, request())

    assert fine.reason == "length"
    assert sum(record.exc_info is not None for record in caplog.records) == 1


class Unlucky(Engine):
    """Of prompts that begin with 1, sampling fails; of those that begin with 2, the scheduler's own bookkeeping."""

    def sequence(self, generation: Generation, emit: Callable[[Event], None]) -> Sequence:
        sequence = super().sequence(generation, emit)
        if generation.prompt[0] == 1:
            sequence.sampler = Broken(generation.sampling, generation.prompt)
        if generation.prompt[0] == 2:
            sequence.tokens.clear()
        return sequence


class Broken(Sampler):
    def sample(self, logits: torch.Tensor) -> int:
        raise ZeroDivisionError("a bug")


async def test_a_failure_of_sampling_ends_its_request_and_no_other_of_the_batch(caplog: pytest.LogCaptureFixture):
    wanted = request(PROMPT[5:20], 9)
    with started(tiny.CONFIG, tiny.loaded(), Unlucky) as engine:
        alone, _ = await answer(engine, wanted)
        # Together they fill one step, the broken one in the middle.
        streams = [engine.submit(each) for each in (request((3, 4), 9), request((1, 4), 9), wanted)]
        with pytest.raises(Unavailable, match="sampling failed"):
            [event async for event in streams[1]]
        beside = [event async for event in streams[2]]
        before = [event async for event in streams[0]]

    assert "".join(event.text for event in beside) == alone
    assert [type(events[-1]) for events in (before, beside)] == [Finished] * 2
    assert sum(record.exc_info is not None for record in caplog.records) == 1


async def test_a_failure_of_the_scheduler_ends_what_it_holds_and_the_engine_goes_on(caplog: pytest.LogCaptureFixture):
    with started(tiny.CONFIG, tiny.loaded(), Unlucky) as engine:
        async with asyncio.timeout(10):
            with pytest.raises(Unavailable):
                await answer(engine, request((2, 4)))
            _, fine = await answer(engine, request())

    assert fine.reason == "length"
    assert sum(record.exc_info is not None for record in caplog.records) == 1


def metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"model_name": tiny.CONFIG.id, **labels}) or 0.0


async def test_after_an_abort_nothing_is_said_to_run():
    with started(tiny.CONFIG, tiny.loaded()) as engine:
        stream = await first_token(engine, request(max_tokens=150))
        stream.abort()
        assert [event async for event in stream]

    assert metric("vllm:num_requests_running") == 0
    assert metric("vllm:kv_cache_usage_perc") == 0


async def test_what_is_refused_is_counted(engine: Engine):
    before = metric("llm_requests_failed_total", code="bad_request")
    with pytest.raises(PeerError, match="at least one token"):
        engine.submit(request(()))

    assert metric("llm_requests_failed_total", code="bad_request") == before + 1


async def test_closing_fails_what_runs():
    engine = Engine(tiny.CONFIG, tiny.loaded())
    engine.start()
    stream = await first_token(engine, request(max_tokens=150))
    await asyncio.to_thread(engine.close)
    with pytest.raises(Unavailable):
        [event async for event in stream]
    with pytest.raises(Unavailable):
        engine.submit(request())


@pytest.mark.slow
async def test_the_real_model_knows_a_fact(real: Loaded, real_engine: Engine):
    prompt = real.tokenizer.encode_chat([{"role": "user", "content": "What is the capital of France?"}])
    text, finished = await answer(real_engine, Generation(tuple(prompt), 24, sampling=GREEDY))

    assert "Paris" in text
    assert finished.reason == "stop"


@pytest.mark.slow
async def test_conversations_with_the_real_model_share_their_system_prompt(real: Loaded, real_engine: Engine):
    system = {"role": "system", "content": "You answer the phone of a small hotel by the sea. " * 4}

    async def ask(text: str) -> Finished:
        prompt = real.tokenizer.encode_chat([system, {"role": "user", "content": text}])
        return (await answer(real_engine, Generation(tuple(prompt), 2, sampling=GREEDY)))[1]

    first, other = await ask("Do you have a room?"), await ask("Is breakfast included?")

    assert first.usage.cached_tokens == 0
    assert other.usage.cached_tokens >= len(real.tokenizer.encode(system["content"]))
