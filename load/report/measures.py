"""Which figures a run yields: values by call or session, and rates. Whatever shows figures takes them here. Pure.

Latencies are those of turns that were answered, interrupted answers included: a turn that was missed has none, and one
in which the agent spoke first has none that means anything. Both count in `on_time`, which is a share of all turns that
asked for an answer, so that a server cannot gain by answering less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from load.harmless import harmless
from load.record import TurnRecord
from load.report.document import RequestRecord, RunDocument
from load.report.statistics import Groups, Summary, summarise

BUDGET_S = 0.7  # the project's promise: last speech sample to first audible word of the answer
MAX_LOST_S = 0.05  # of an answer that goes on after a pause: a short syllable
MAX_REPEATED_S = 0.05
MAX_HEARD_WORD_ERRORS = 0.5  # of what the server says was heard; recognition of short answers errs by a word or two
MAX_UNDERSTOOD_WORD_ERRORS = 0.5  # more, and the answer is one to something else
STAGE = "server."  # before the name of a stage of the server's waterfall
ABBREVIATIONS = ("ttft", "tpot", "ttfa", "rtf", "llm", "tts", "stt")
STATISTICS_SEED = 0  # bootstrap intervals of a report: the same run always has the same

T = TypeVar("T")
Better: TypeAlias = Literal["lower", "higher"]


@dataclass(frozen=True)
class Rate:
    num_hits: int
    num_trials: int
    better: Better


def samples(run: RunDocument) -> dict[str, Groups]:
    """Values of each figure, grouped by call or session; the unit ends the figure's name. Figures without any miss."""
    found = _of_turns(run.turns) if run.head.kind == "calls" else _of_requests(run.requests)
    return {name: groups for name, groups in found.items() if any(len(group) for group in groups)}


def rates(run: RunDocument) -> dict[str, Rate]:
    return _turn_rates(run) if run.head.kind == "calls" else _request_rates(run.requests)


def stages(run: RunDocument) -> dict[str, Summary]:
    """Statistics of every figure."""
    rng = np.random.default_rng(STATISTICS_SEED)
    summaries = ((name, summarise(groups, rng)) for name, groups in samples(run).items())
    return {name: summary for name, summary in summaries if summary is not None}


def asked(turns: Iterable[TurnRecord]) -> list[TurnRecord]:
    """Turns that ask for an answer: a backchannel does not."""
    return [turn for turn in turns if turn.outcome != "unasked"]


def is_late(turn: TurnRecord) -> bool:
    return turn.latency_s is not None and turn.latency_s > BUDGET_S


def lost_audio(turn: TurnRecord) -> bool:
    return turn.lost_s is not None and turn.lost_s > MAX_LOST_S


def repeated_audio(turn: TurnRecord) -> bool:
    return turn.repeated_s is not None and turn.repeated_s > MAX_REPEATED_S


def is_heard_wrong(turn: TurnRecord) -> bool:
    """What the server remembers as heard is not what was."""
    return turn.heard_word_errors is not None and turn.heard_word_errors > MAX_HEARD_WORD_ERRORS


def is_misunderstood(turn: TurnRecord) -> bool:
    errors = turn.understood_word_errors
    return errors is not None and errors > MAX_UNDERSTOOD_WORD_ERRORS


def label(name: str) -> str:
    """The name of a figure or rate for people, without its unit."""
    if name == "on_time":
        return f"answered within {1000 * BUDGET_S:.0f} ms"
    words = harmless(name).removeprefix(STAGE).removesuffix("_s").replace("_", " ")
    words = " ".join(word.upper() if word in ABBREVIATIONS else word for word in words.split())
    return f"server: {words}" if name.startswith(STAGE) else words


def is_time(name: str) -> bool:
    return name.endswith("_s")


def is_lower_better(name: str) -> bool:
    return name not in ("cached_tokens", "output_tokens", "audio_s", "prompt_tokens")


def _of_turns(turns: Sequence[TurnRecord]) -> dict[str, Groups]:
    answered = [turn for turn in turns if turn.outcome in ("answered", "interrupted")]
    by_call = _grouped(answered, lambda turn: turn.call)
    every = _grouped(turns, lambda turn: turn.call)
    found: dict[str, Groups] = {
        "latency_s": _known(by_call, lambda turn: turn.latency_s),
        "first_audible_s": _known(by_call, lambda turn: turn.first_audible_s),
        "first_packet_s": _known(by_call, lambda turn: turn.first_packet_s),
        "barge_in_stop_s": _known(every, lambda turn: turn.barge_in_stop_s),
        "duck_s": _known(every, lambda turn: turn.duck_s),
        "gap_s": [[gap for t in call for gap in t.gaps_s] for call in by_call],
        "lost_s": _known(by_call, lambda turn: turn.lost_s),
        "repeated_s": _known(by_call, lambda turn: turn.repeated_s),
        "lead_s": _known(by_call, lambda turn: turn.lead_s),
        "understood_word_errors": _known(by_call, lambda turn: turn.understood_word_errors),
        "heard_word_errors": _known(by_call, lambda turn: turn.heard_word_errors),
        f"{STAGE}latency_s": _known(by_call, lambda turn: turn.server_latency_s),
    }
    for stage in dict.fromkeys(name for turn in answered for name in turn.server_stages_s):
        found[f"{STAGE}{stage}_s"] = [
            [t.server_stages_s[stage] for t in call if stage in t.server_stages_s] for call in by_call
        ]
    return found


def _of_requests(requests: Sequence[RequestRecord]) -> dict[str, Groups]:
    served = [request for request in requests if request.outcome in ("completed", "aborted")]
    by_session = _grouped(served, lambda request: request.session)
    names = dict.fromkeys(name for request in served for name in request.figures)
    return {name: [[r.figures[name] for r in group if name in r.figures] for group in by_session] for name in names}


def _turn_rates(run: RunDocument) -> dict[str, Rate]:
    wanted = asked(run.turns)
    answered = [t for t in wanted if t.outcome in ("answered", "interrupted")]
    compared = [t for t in answered if t.latency_s is not None and t.server_latency_s is not None]
    transcribed = [t for t in answered if t.understood is not None]
    recognised = [t for t in answered if t.heard_word_errors is not None]
    on_time = [t for t in answered if t.latency_s is not None and not is_late(t)]
    return {
        "on_time": Rate(len(on_time), len(wanted), "higher"),
        "missed": Rate(_count(wanted, lambda t: t.outcome == "missed"), len(wanted), "lower"),
        "cut_in": Rate(_count(wanted, lambda t: t.outcome == "cut_in"), len(wanted), "lower"),
        "with_gaps": Rate(_count(answered, lambda t: bool(t.gaps_s)), len(answered), "lower"),
        "with_clicks": Rate(_count(answered, lambda t: t.num_clicks > 0), len(answered), "lower"),
        "broken_off": Rate(_count(answered, lambda t: t.is_broken_off), len(answered), "lower"),
        "with_losses": Rate(_count(answered, lost_audio), len(answered), "lower"),
        "with_repeats": Rate(_count(answered, repeated_audio), len(answered), "lower"),
        "misunderstood": Rate(_count(transcribed, is_misunderstood), len(transcribed), "lower"),
        "heard_wrong": Rate(_count(recognised, is_heard_wrong), len(recognised), "lower"),
        "misreported": Rate(_count(compared, lambda t: t.is_misreported), len(compared), "lower"),
        "calls_refused": Rate(_count(run.calls, lambda c: c.outcome == "refused"), len(run.calls), "lower"),
        "calls_lost": Rate(_count(run.calls, lambda c: c.outcome in ("failed", "broken")), len(run.calls), "lower"),
    }


def _request_rates(requests: Sequence[RequestRecord]) -> dict[str, Rate]:
    found = {
        "refused": Rate(_count(requests, lambda r: r.outcome == "refused"), len(requests), "lower"),
        "failed": Rate(_count(requests, lambda r: r.outcome == "failed"), len(requests), "lower"),
    }
    played = [request for request in requests if "num_underruns" in request.figures]
    if played:
        found["with_underruns"] = Rate(_count(played, lambda r: r.figures["num_underruns"] > 0), len(played), "lower")
    return found


def _known(calls: Iterable[Iterable[TurnRecord]], value: Callable[[TurnRecord], float | None]) -> Groups:
    return [[found for turn in call if (found := value(turn)) is not None] for call in calls]


def _count(items: Iterable[T], is_hit: Callable[[T], bool]) -> int:
    return sum(1 for item in items if is_hit(item))


def _grouped(items: Iterable[T], key: Callable[[T], int]) -> list[list[T]]:
    groups: dict[int, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return [groups[number] for number in sorted(groups)]
