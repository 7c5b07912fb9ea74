"""Where the time of a turn went: marks on one line from the last speech sample to the first audible answer sample.

The stages partition that span, so their sum is the turn latency by construction; a stage that was hidden behind
another costs 0.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

BUDGET_S = 0.7

Stage: TypeAlias = Literal["endpointing", "stt", "llm_first_token", "llm_first_clause", "tts", "playout"]
STAGES: tuple[Stage, ...] = get_args(Stage)


class Waterfall:
    """`begun_s`: monotonic time at which the last speech sample arrived."""

    def __init__(self, begun_s: float) -> None:
        self.begun_s = begun_s
        self._last_s = begun_s
        self._stages_s: dict[Stage, float] = {}

    def mark(self, stage: Stage, now: float) -> None:
        """`stage` ended at `now`. Stages end in order, each once; later marks of a stage are ignored."""
        if stage in self._stages_s:
            return
        assert STAGES.index(stage) == len(self._stages_s), f"{stage} after {list(self._stages_s)}"
        now = max(now, self._last_s)
        self._stages_s[stage] = now - self._last_s
        self._last_s = now

    @property
    def complete(self) -> bool:
        return len(self._stages_s) == len(STAGES)

    @property
    def stages_s(self) -> dict[Stage, float]:
        return dict(self._stages_s)

    @property
    def latency_s(self) -> float:
        """The turn latency when complete, else the time spent up to the last mark."""
        return self._last_s - self.begun_s
