from __future__ import annotations

from collections import Counter
from dataclasses import replace

from load.report.bad import KINDS, bad
from load.report.measures import rates
from tests.load.report.runs import call_run, request_run


def test_what_is_bad_comes_worst_kind_first() -> None:
    kinds = [row.kind for row in bad(call_run())]
    assert kinds == sorted(kinds, key=KINDS.index)
    assert kinds[0] == "call lost"
    assert kinds[-1] == "refused"


def test_the_table_counts_what_the_rates_count() -> None:
    run = call_run(40)
    counts, shares = Counter(row.kind for row in bad(run)), rates(run)
    for kind, rate in (
        ("missed", "missed"),
        ("cut in", "cut_in"),
        ("misreported", "misreported"),
        ("gap", "with_gaps"),
        ("click", "with_clicks"),
        ("broken off", "broken_off"),
        ("lost audio", "with_losses"),
        ("repeated audio", "with_repeats"),
        ("misunderstood", "misunderstood"),
        ("heard wrong", "heard_wrong"),
        ("refused", "calls_refused"),
        ("call lost", "calls_lost"),
    ):
        assert counts[kind] == shares[rate].num_hits > 0, kind
    asked_in_time = shares["on_time"]
    assert asked_in_time.num_trials - asked_in_time.num_hits == counts["missed"] + counts["cut in"] + counts["late"]


def test_a_turn_says_how_far_the_server_is_off() -> None:
    run = call_run(1, 1)
    turn = replace(run.turns[0], outcome="answered", latency_s=0.5, server_latency_s=0.42)
    (row,) = bad(replace(run, turns=(turn,)))
    assert row.kind == "misreported"
    assert "-80 ms" in row.detail


def test_a_turn_says_what_the_server_believes_and_what_was_so() -> None:
    run = call_run(1, 1)
    good = replace(run.turns[0], outcome="answered", latency_s=0.5, server_latency_s=0.49)
    wrong = replace(good, heard="We are", recognised="We are open", heard_word_errors=0.6, understood="a poem")
    first, second = bad(replace(run, turns=(wrong,)))
    assert (first.kind, first.detail) == ("misunderstood", "the server took it for: a poem")
    assert (second.kind, second.detail) == (
        "heard wrong",
        "the server believes that this was heard: We are. It was: We are open",
    )
    assert bad(replace(run, turns=(replace(wrong, outcome="cut_in"),)))[1:] == []


def test_a_good_run_has_nothing_bad() -> None:
    run = call_run(1, 1)
    good = replace(run.turns[0], outcome="answered", latency_s=0.5, server_latency_s=0.49)
    assert bad(replace(run, turns=(good,))) == []


def test_underruns_and_refusals_of_requests_are_told() -> None:
    run = request_run(10)
    first = replace(run.requests[0], figures={"num_underruns": 2.0, "underrun_s": 0.25})
    rows = bad(replace(run, requests=(first, *run.requests[1:])))
    assert [(row.kind, row.detail) for row in rows] == [
        ("underrun", "2, 250 ms in all"),
        ("refused", "HTTP 429: too much (come back in 1 s)"),
    ]
