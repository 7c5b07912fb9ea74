"""Whether what a scenario expects was so, from the record of the call. Pure.

Each `expect` is judged by what had been heard and told when the step was over, with the measures of `load.measure`.
What cannot be judged has failed, and says why: nothing passes for want of evidence, but the absence of something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from load.checks import FINDERS, Known, unfounded
from load.measure import Recognised
from load.record import CallRecord
from load.steps import Expect


@dataclass(frozen=True)
class Checkpoint:
    """An `expect` step as it was met; times of the run's clock."""

    step: str  # where it stands in the scenario, such as "steps[3].expect"
    expect: Expect
    num_said: int  # utterances the caller had made (or begun) in this call by then; the last is what it is about
    from_s: float  # the step began
    at_s: float  # it was over: nothing that was heard later counts


@dataclass(frozen=True)
class Verdict:
    step: str
    check: str  # for people: "answer within 700 ms"
    passed: bool
    found: str  # for people: "812 ms", "nothing was heard"


def judge(call: CallRecord, checkpoints: Sequence[Checkpoint], recognised: Recognised | None = None) -> list[Verdict]:
    """One verdict for each key that an expectation gives.

    `recognised` is that of `load.measure.turns`, and holds under `BEFORE_ALL` what was heard before the first
    utterance. Without it `contains` and `heard_word_errors` fail.
    """
    return [verdict for checkpoint in checkpoints for verdict in _judge(call, checkpoint, recognised)]


def _judge(call: CallRecord, checkpoint: Checkpoint, recognised: Recognised | None) -> list[Verdict]:
    expect = checkpoint.expect
    known = Known(call, expect, checkpoint.num_said, checkpoint.from_s, checkpoint.at_s, recognised)
    verdicts = []
    for name, find in FINDERS.items():
        if getattr(expect, name) is not None:
            passed, found = unfounded(name, known) or find(known)
            verdicts.append(Verdict(checkpoint.step, _title(name, expect), passed, found))
    return verdicts


def _title(name: str, expect: Expect) -> str:
    what = expect.what.replace("_", " ")
    value = getattr(expect, name)
    limit = f"{value:g}" if isinstance(value, int | float) else str(value)
    share = f"{value:.0%}" if isinstance(value, int | float) else ""
    return {
        "within_ms": f"no {what} for {limit} ms" if expect.absent else f"{what} within {limit} ms",
        "outcome": f"outcome {value}",
        "contains": f"'{value}' heard, at most {expect.word_errors:.0%} of the words wrong",
        "num_answers": "1 answer" if value == 1 else f"{limit} answers",
        "state": f"the server's state is {value}",
        "understood_word_errors": f"understood, at most {share} of the words wrong",
        "heard_word_errors": f"known what was heard, at most {share} of the words wrong",
        "max_gap_ms": f"no gap above {limit} ms",
        "max_stale_ms": f"at most {limit} ms of the old answer after its end was told",
        "max_lost_ms": f"at most {limit} ms lost",
        "max_repeated_ms": f"at most {limit} ms heard twice",
        "max_lead_ms": f"at most {limit} ms received ahead",
        "max_clicks": f"at most {limit} clicks",
        "max_misreport_ms": f"the server's latency at most {limit} ms off",
    }[name]
