"""Traces that others have recorded: samples of the formats, and the real files where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from load.errors import LoadError
from load.traces.azure import read_azure
from load.traces.files import read_trace
from load.traces.mooncake import read_mooncake
from load.traces.trace import reuse_bound

REAL = Path(__file__).parents[4] / "shared" / "data" / "traces"
MOONCAKE = [
    '{"timestamp": 0, "input_length": 1100, "output_length": 20, "hash_ids": [0, 1, 2]}\n',
    '{"timestamp": 2500, "input_length": 1024, "output_length": 3, "hash_ids": [0, 1]}\n',
    "\n",
    '{"timestamp": 3000.5, "input_length": 5, "output_length": 0, "hash_ids": [9]}\n',
]
AZURE = [
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n",
    "2023-11-16 18:15:46.6805900,374,44\r\n",
    "2023-11-16 18:15:50.9951690,396,109\r\n",
]


def test_a_mooncake_line_is_blocks_at_a_time() -> None:
    trace = read_mooncake(MOONCAKE, "m")
    assert [r.at_s for r in trace.requests] == [0, 2.5, 3.0005]
    assert [r.input_tokens for r in trace.requests] == [1100, 1024, 5]
    assert [r.output_tokens for r in trace.requests] == [20, 3, 1]
    assert trace.requests[0].parts[:2] == trace.requests[1].parts
    assert reuse_bound(trace) == pytest.approx(1024 / 2129)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a mapping"),
        ('{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1]}', "does not fit 1 blocks"),
        ('{"timestamp": 0, "input_length": 512, "output_length": 1, "hash_ids": [1, 2]}', "does not fit 2 blocks"),
        ('{"timestamp": 0, "input_length": 0, "output_length": 1, "hash_ids": []}', "does not fit 0 blocks"),
        ('{"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [1]}', "must not be negative"),
        ('{"timestamp": 0, "input_len": 1, "output_length": 1, "hash_ids": [1]}', "did you mean 'input_length'"),
    ],
)
def test_a_bad_mooncake_line_is_named(line: str, problem: str) -> None:
    with pytest.raises(LoadError, match=problem) as failed:
        read_mooncake([MOONCAKE[0], line], "trace.jsonl")
    assert str(failed.value).startswith("trace.jsonl:2: ")


def test_an_azure_line_is_a_prompt_of_its_own_at_a_time() -> None:
    trace = read_azure(AZURE, "a")
    assert [r.at_s for r in trace.requests] == pytest.approx([0, 4.314579])
    assert [(r.input_tokens, r.output_tokens) for r in trace.requests] == [(374, 44), (396, 109)]
    assert reuse_bound(trace) == 0


def test_the_azure_trace_of_2024_has_time_zones() -> None:
    lines = [AZURE[0], "2024-05-10 00:00:00.009930+00:00,2162,5\n", "2024-05-10 00:00:01.009930+00:00,2399,6\n"]
    assert read_azure(lines, "a").duration_s == 1.0


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ([], ":1: the header"),
        (["time,in,out\n"], ":1: the header"),
        ([AZURE[0], "yesterday,1,2\n"], ":2: TIMESTAMP"),
        ([AZURE[0], "2023-11-16 18:15:46,1\n"], ":2: 3 columns"),
        ([AZURE[0], "2023-11-16 18:15:46,-1,2\n"], ":2: ContextTokens"),
        ([AZURE[0], "2023-11-16 18:15:46,1,99999999999999\n"], ":2: GeneratedTokens"),
        ([AZURE[0], AZURE[1], "2024-05-10 00:00:00+00:00,1,1\n"], ":3: times with and without"),
        ([AZURE[0]], "no requests"),
    ],
)
def test_a_bad_azure_line_is_named(lines: list[str], where: str) -> None:
    with pytest.raises(LoadError, match=where):
        read_azure(lines, "azure.csv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_requests", "mean_input", "bound"),
    [
        ("mooncake_synthetic.jsonl", 3993, 15325, 0.65),
        ("azure_llm_2023_conv.csv", 19366, 1155, 0.0),
        ("azure_llm_2023_code.csv", 8819, 2048, 0.0),
    ],
)
def test_the_real_traces_are_read_whole(name: str, num_requests: int, mean_input: float, bound: float) -> None:
    path = REAL / name
    if not path.is_file():
        pytest.skip(f"no {name} here")
    trace = read_trace(path)
    assert len(trace.requests) == num_requests
    assert sum(r.input_tokens for r in trace.requests) / num_requests == pytest.approx(mean_input, abs=1)
    assert reuse_bound(trace) == pytest.approx(bound, abs=0.005)
