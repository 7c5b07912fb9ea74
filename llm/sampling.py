"""From logits to one token: penalties, temperature, top-k, top-p. Knows no model and no other sequence.

Source of the rules: OpenAI's API reference (temperature, top_p, presence and frequency penalty); top_k and
repetition_penalty as vLLM has them (Keskar et al. 2019, 4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

MIN_FACTOR = 0.01  # dividing logits by less makes no difference to sampling, and by much less overflows
# Sorting 49,152 logits takes 5 ms, finding the 1,024 largest 0.5; all are sorted when these do not hold `top_p`.
TOP_P_CANDIDATES = 1024


@dataclass(frozen=True)
class Sampling:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all
    repetition_penalty: float = 1.0  # of tokens in prompt or answer
    frequency_penalty: float = 0.0  # per occurrence in the answer
    presence_penalty: float = 0.0  # once for occurring in the answer
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or MIN_FACTOR <= self.temperature <= 2):
            raise ValueError(f"temperature must be 0, or {MIN_FACTOR} to 2, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (all) or more, got {self.top_k}")
        if not MIN_FACTOR <= self.repetition_penalty <= 2:
            raise ValueError(f"repetition_penalty must be {MIN_FACTOR} to 2, got {self.repetition_penalty}")
        for name in ("frequency_penalty", "presence_penalty"):
            if not -2 <= getattr(self, name) <= 2:
                raise ValueError(f"{name} must be -2 to 2, got {getattr(self, name)}")
        if self.seed is not None and not -(2**63) <= self.seed < 2**64:
            raise ValueError("seed must fit 64 bits")


class Sampler:
    """One per sequence: the same seed and logits give the same tokens, whatever else runs."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        self._sampling = sampling
        self._random = torch.Generator()
        if sampling.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed(sampling.seed)
        self._prompt = frozenset(prompt) if sampling.repetition_penalty != 1 else frozenset()
        self._counts: Counter[int] = Counter()

    def sample(self, logits: torch.Tensor) -> int:
        """`logits`: float32 [vocab], changed in place."""
        self._penalize(logits)
        token = int(logits.argmax()) if self._sampling.temperature == 0 else self._draw(logits)
        self._counts[token] += 1
        return token

    def _penalize(self, logits: torch.Tensor) -> None:
        sampling = self._sampling
        if sampling.repetition_penalty != 1 and (seen := sorted(self._prompt | self._counts.keys())):
            ids = torch.tensor(seen)
            known = logits[ids]
            penalty = sampling.repetition_penalty
            logits[ids] = torch.where(known > 0, known / penalty, known * penalty)
        if (sampling.frequency_penalty or sampling.presence_penalty) and self._counts:
            counts = torch.tensor(list(self._counts.values()), dtype=torch.float32)
            logits[torch.tensor(list(self._counts))] -= sampling.frequency_penalty * counts + sampling.presence_penalty

    def _draw(self, logits: torch.Tensor) -> int:
        sampling = self._sampling
        logits = logits / sampling.temperature
        if sampling.top_k:
            values, ids = logits.topk(min(sampling.top_k, len(logits)))
            probabilities = values.softmax(0)
        else:
            probabilities, ids = logits.softmax(0), None
        if sampling.top_p < 1:
            probabilities, order = _nucleus(probabilities, sampling.top_p)
            ids = order if ids is None else ids[order]
        chosen = int(torch.multinomial(probabilities, 1, generator=self._random))
        return chosen if ids is None else int(ids[chosen])


def _nucleus(probabilities: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The fewest most likely tokens that hold at least `top_p` (Holtzman et al. 2020), and their places."""
    values, order = probabilities.topk(min(TOP_P_CANDIDATES, len(probabilities)))
    if float(values.sum()) < top_p:
        values, order = probabilities.sort(descending=True)
    before = values.cumsum(0) - values
    kept = max(1, int((before < top_p).sum()))
    return values[:kept], order[:kept]
