from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llm.sampling import TOP_P_CANDIDATES, Sampler, Sampling, _nucleus

VOCAB = 50


def logits(seed: int = 0, size: int = VOCAB) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 2


def draws(sampling: Sampling, count: int = 400) -> Counter[int]:
    sampler = Sampler(sampling, ())
    return Counter(sampler.sample(logits()) for _ in range(count))


def test_temperature_zero_takes_the_largest():
    assert draws(Sampling(temperature=0), 3) == {int(logits().argmax()): 3}


def test_a_seed_repeats_the_draws():
    one, two, other = (Sampler(Sampling(seed=seed), ()) for seed in (3, 3, 4))
    first = [one.sample(logits(i)) for i in range(20)]

    assert first == [two.sample(logits(i)) for i in range(20)]
    assert first != [other.sample(logits(i)) for i in range(20)]


def test_draws_follow_the_softmax():
    counts = draws(Sampling(temperature=1.5, seed=0), 4000)
    wanted = (logits() / 1.5).softmax(0)

    for token in wanted.topk(5).indices.tolist():
        assert counts[token] / 4000 == pytest.approx(float(wanted[token]), abs=0.03)


def test_top_k_draws_from_the_k_largest():
    assert set(draws(Sampling(top_k=3, temperature=2, seed=0))) == set(logits().topk(3).indices.tolist())


@pytest.mark.parametrize("sampling", [Sampling(top_k=1, seed=0), Sampling(top_p=1e-6, seed=0)])
def test_the_narrowest_choice_is_the_largest(sampling: Sampling):
    assert set(draws(sampling, 20)) == {int(logits().argmax())}


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=40), st.floats(0.01, 1))
def test_the_nucleus_is_the_smallest_set_that_holds_top_p(weights: list[float], top_p: float):
    probabilities = torch.tensor(weights) / sum(weights)
    values, order = _nucleus(probabilities, top_p)
    ordered = probabilities.sort(descending=True).values

    assert torch.equal(values, ordered[: len(values)])
    assert torch.equal(probabilities[order], values)
    assert len(values) == len(weights) or float(values.sum()) >= top_p - 1e-5
    assert len(values) == 1 or float(values[:-1].sum()) < top_p + 1e-5


def test_a_flat_distribution_is_sorted_whole():
    size = 3 * TOP_P_CANDIDATES
    values, _ = _nucleus(torch.full((size,), 1 / size), 0.9)

    assert len(values) == pytest.approx(0.9 * size, rel=0.01)


def test_presence_and_frequency_count_the_answer_alone():
    sampler = Sampler(Sampling(temperature=0, presence_penalty=2, frequency_penalty=2), prompt=(0,))
    flat = torch.tensor([3.0, 2.9, -5.0])

    assert [sampler.sample(flat.clone()) for _ in range(4)] == [0, 1, 0, 1]


def test_repetition_weakens_prompt_tokens_of_either_sign():
    sampler = Sampler(Sampling(temperature=0, repetition_penalty=2), prompt=(0,))
    assert sampler.sample(torch.tensor([3.0, 2.0])) == 1

    sampler = Sampler(Sampling(temperature=0, repetition_penalty=2), prompt=(0,))
    assert sampler.sample(torch.tensor([-1.0, -1.5])) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": 1e-300},
        {"repetition_penalty": 1e-300},
        {"temperature": 2.1},
        {"top_p": 0},
        {"top_p": 1.1},
        {"top_k": -1},
        {"repetition_penalty": 0},
        {"presence_penalty": 3},
        {"frequency_penalty": -3},
        {"seed": 2**64},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sampling(**wrong)  # type: ignore[arg-type]
