from __future__ import annotations

import pytest

from llm.__main__ import choose
from llm.config import LlmConfig, WorkerConfig
from tests.llm import tiny
from wire.config import ConfigError, EdgeConfig


def worker(name: str, port: int = 0, **settings: int) -> WorkerConfig:
    return WorkerConfig(EdgeConfig(port=port), id=name, weights=name, **settings)  # type: ignore[arg-type]


def test_the_only_worker_needs_no_name():
    assert choose(LlmConfig((tiny.CONFIG,)), None) is tiny.CONFIG


def test_of_several_one_must_be_named():
    config = LlmConfig((worker("a"), worker("b")))

    assert choose(config, "b").id == "b"
    with pytest.raises(ConfigError, match="--worker"):
        choose(config, None)
    with pytest.raises(ConfigError, match=r"1 \(a\), 2 \(b\)"):
        choose(config, "c")


def test_workers_of_one_model_are_told_apart_by_their_number():
    config = LlmConfig((worker("a", 1), worker("a", 2)))

    assert [choose(config, number).edge.port for number in ("1", "2")] == [1, 2]
    for wrong in ("0", "3"):
        with pytest.raises(ConfigError, match="0 workers, not one"):
            choose(config, wrong)
    with pytest.raises(ConfigError, match="2 workers, not one; choose by number"):
        choose(config, "a")


def test_a_number_is_a_number_also_where_an_id_looks_like_one():
    config = LlmConfig((worker("2", 1), worker("1", 2)))

    assert choose(config, "2").edge.port == 2


@pytest.mark.parametrize(
    "wrong",
    [{"num_threads": 0}, {"kv_tokens": 1024}, {"kv_tokens": 4001}, {"prefill_chunk_tokens": 4}, {"max_running": 0}],
)
def test_values_out_of_range_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        worker("a", **wrong)


def test_two_workers_cannot_share_a_port():
    with pytest.raises(ValueError, match="port"):
        LlmConfig((worker("a", 9), worker("b", 9)))
