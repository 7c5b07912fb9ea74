from __future__ import annotations

from dataclasses import replace

from load.report.measures import asked, label, rates, samples, stages
from tests.load.report.runs import call_run, request_run


def test_latencies_are_those_of_answered_turns_by_call() -> None:
    run = call_run()
    groups = samples(run)["latency_s"]
    answered = [t for t in run.turns if t.outcome in ("answered", "interrupted")]
    assert sum(len(group) for group in groups) == len(answered)
    assert len(groups) == len({turn.call for turn in answered})
    assert min(value for group in groups for value in group) > 0


def test_a_missed_turn_counts_against_being_on_time() -> None:
    run = call_run()
    before = rates(run)["on_time"]
    on_time = next(t for t in run.turns if t.outcome == "answered" and (t.latency_s or 9) < 0.7)
    missed = replace(on_time, outcome="missed", latency_s=None)
    after = rates(replace(run, turns=tuple(missed if t is on_time else t for t in run.turns)))["on_time"]
    assert (after.num_hits, after.num_trials) == (before.num_hits - 1, before.num_trials)


def test_a_backchannel_asks_for_no_answer() -> None:
    run = call_run()
    assert len(asked(run.turns)) == sum(1 for turn in run.turns if turn.outcome != "unasked") < len(run.turns)


def test_rates_have_the_trials_they_are_shares_of() -> None:
    found = rates(call_run())
    assert found["calls_refused"].num_trials == 12
    assert found["calls_refused"].num_hits == 1
    assert 0 < found["misreported"].num_hits < found["misreported"].num_trials


def test_what_was_not_measured_is_in_no_figure() -> None:
    run = call_run()
    found = samples(run)
    for name in ("lost_s", "repeated_s", "duck_s", "heard_word_errors"):
        measured = [turn for turn in run.turns if getattr(turn, name) is not None]
        assert 0 < sum(len(group) for group in found[name]) == len(measured) < len(run.turns), name
    assert found["understood_word_errors"][0][0] == 0.0


def test_requests_yield_their_figures_by_session_and_refusals_none() -> None:
    run = request_run()
    groups = samples(run)["ttft_s"]
    assert sum(len(group) for group in groups) == 27
    assert len(groups) == 10
    assert rates(run)["refused"].num_hits == 3
    assert set(stages(run)) == {"ttft_s", "tpot_s", "latency_s", "cached_tokens"}


def test_the_same_run_always_has_the_same_intervals() -> None:
    assert call_run().stages == call_run().stages


def test_names_for_people_have_no_units() -> None:
    assert label("server.llm_first_token_s") == "server: LLM first token"
    assert label("ttft_s") == "TTFT"
    assert label("cached_tokens") == "cached tokens"
