"""Runs made up for tests: many outcomes, every kind of figure, nothing measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load.record import TurnRecord
from load.report.document import (
    SCHEMA_VERSION,
    CallFacts,
    CapacityStep,
    Head,
    Host,
    Kind,
    Plan,
    RequestRecord,
    RunDocument,
)
from load.report.measures import stages
from load.report.validity import judge

STAGES = ("endpointing", "stt", "llm_first_token", "llm_first_clause", "tts", "playout")
HOST = Host("x86_64", "A CPU", 2, 8.0, "Linux 6", "3.11.9")


def head(kind: Kind = "calls", scenario: str = "plain questions") -> Head:
    return Head(
        kind=kind,
        started_at="2026-01-02T03:04:05+00:00",
        command="offhook load calls --seed 1",
        commit="abc123",
        host=HOST,
        seed=1,
        target="ws://127.0.0.1:8080/v1/calls",
        scenario=scenario,
        transport="websocket",
        plan=Plan("poisson", {"rate_hz": 0.5, "duration_s": 60.0}, 12),
        notes=("speech is synthetic",),
    )


def call_run(num_calls: int = 12, turns_per_call: int = 6, seed: int = 1, slower_s: float = 0.0) -> RunDocument:
    rng = np.random.default_rng(seed)
    calls, turns = [], []
    for number in range(num_calls):
        start_s = 4.0 * number
        is_refused = number % 7 == 5
        calls.append(
            CallFacts(
                number=number,
                scenario="plain questions",
                transport="websocket",
                seed=number,
                scheduled_s=start_s,
                placed_s=start_s + 0.001,
                ready_s=None if is_refused else start_s + 0.1,
                ended_s=start_s + (0.2 if is_refused else 25.0),
                outcome="refused" if is_refused else "broken" if number % 9 == 8 else "completed",
                reason="no place" if is_refused else "",
                retry_after_s=2.0 if is_refused else None,
            )
        )
        if not is_refused:
            turns += [_turn(rng, number, turn, slower_s) for turn in range(1, turns_per_call + 1)]
    validity = judge([0.001, 0.002], 0.2, 60.0, shares_cores=True, num_cores=2)
    run = RunDocument(
        SCHEMA_VERSION, True, head(), validity, 60.0, tuple(calls), tuple(turns), (), _capacity(), n=len(turns)
    )
    return replace(run, stages=stages(run))


def request_run(num_requests: int = 30, seed: int = 1) -> RunDocument:
    rng = np.random.default_rng(seed)
    requests = []
    for number in range(num_requests):
        at_s = 0.5 * number
        refused = number % 10 == 9
        ttft_s = float(rng.uniform(0.05, 0.2))
        figures = {} if refused else {"ttft_s": ttft_s, "tpot_s": 0.02, "latency_s": ttft_s + 1, "cached_tokens": 512.0}
        requests.append(
            RequestRecord(
                number=number,
                session=number // 3,
                scheduled_s=at_s,
                sent_s=at_s + 0.001,
                ended_s=at_s + 0.3,
                outcome="refused" if refused else "completed",
                reason="HTTP 429: too much" if refused else "",
                retry_after_s=1.0 if refused else None,
                figures=figures,
            )
        )
    validity = judge([0.001], 0.1, 60.0, shares_cores=False, num_cores=2)
    run = RunDocument(SCHEMA_VERSION, True, head("chat"), validity, 20.0, requests=tuple(requests), n=num_requests)
    return replace(run, stages=stages(run))


def _turn(rng: np.random.Generator, call: int, number: int, slower_s: float) -> TurnRecord:
    stages_s = {name: float(rng.exponential(0.08)) for name in STAGES}
    server_s = sum(stages_s.values())
    answered = TurnRecord(
        call=call,
        turn=number,
        scenario="plain questions",
        transport="websocket",
        said="What are your opening hours?",
        outcome="answered",
        latency_s=server_s + 0.01 + slower_s,
        first_audible_s=server_s + 0.01 + slower_s,
        first_packet_s=server_s + slower_s,
        reply="We are open from nine to five.",
        understood="what are your opening hours",
        heard="We are open from nine to five.",
        lead_s=0.18,
        server_latency_s=server_s,
        server_stages_s=stages_s,
    )
    match (call + 5 * number) % 17:
        case 3:
            return replace(answered, outcome="missed", latency_s=None, first_audible_s=None, first_packet_s=None)
        case 5:
            return replace(answered, outcome="cut_in", latency_s=-0.3)
        case 7:
            return replace(answered, outcome="interrupted", gaps_s=(0.12, 0.05), num_clicks=1)
        case 9:
            return replace(answered, barge_in_stop_s=0.25, duck_s=0.1, stale_s=0.04, server_latency_s=server_s + 0.2)
        case 11:
            return replace(answered, outcome="unasked", latency_s=None)
        case 13:
            return replace(answered, lost_s=0.16, repeated_s=0.0, understood="what a long poem")
        case 14:
            return replace(answered, lost_s=0.0, repeated_s=0.3, heard_word_errors=0.8)
        case 15:
            return replace(answered, is_broken_off=True, heard_word_errors=0.1)
    return answered


def _capacity() -> tuple[CapacityStep, ...]:
    figures = ((1, 0.4), (2, 0.45), (4, 0.6), (6, 0.9))
    return tuple(
        CapacityStep(n, repeat, 20 * n, max(0, n - 4), p95_s + 0.02 * repeat, p95_s - 0.05, p95_s + 0.07)
        for n, p95_s in figures
        for repeat in range(3)
    )
