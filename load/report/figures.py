"""The plots of a run's page, each from the run's result alone. Pure; text of servers and callers is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import accumulate

import plotly.graph_objects as go

from load.record import TurnRecord
from load.report.document import CallFacts, RequestRecord, RunDocument
from load.report.measures import BUDGET_S, STAGE, is_time, label, samples
from load.report.statistics import cumulative, percentile

NUM_WORST = 20
MAX_TEXT = 60  # characters of what was said, in a label
MAX_POINTS = 2000  # of one line of a distribution: more is not seen and makes the page heavy
BUDGET_COLOUR = "#c1121f"
# Okabe and Ito, 2008: told apart by the colour-blind too
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#b8a800")
OUTCOME_COLOURS = {"refused": "#e69f00", "failed": "#c1121f", "broken": "#7a0010", "aborted": "#999999"}
MARGIN = {"l": 60, "r": 20, "t": 30, "b": 50}  # around the axes, in pixels
_ASIDE = ("gap_s", "lost_s", "repeated_s", "lead_s", "audio_s", "underrun_s")  # lengths, not waits: a click away
_FIRST = ("latency_s", "first_audible_s", "first_packet_s", f"{STAGE}latency_s")


def distribution(run: RunDocument) -> go.Figure | None:
    """Cumulative distribution of every time figure. The total begins shown, the server's stages a click away."""
    figure = go.Figure()
    found = {name: groups for name, groups in samples(run).items() if is_time(name)}
    names = sorted(found, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    for number, name in enumerate(names):
        values = [value for group in found[name] for value in group]
        xs, shares = _thinned(*cumulative(values))
        is_total = name in ("latency_s", "ttft_s", "ttfa_s")
        figure.add_scatter(
            x=[1000 * x for x in xs],
            y=[100 * share for share in shares],
            mode="lines",
            name=f"{escape(label(name))} (n {len(values)})",
            line={
                "shape": "hv",
                "width": 3 if is_total else 1.5,
                "color": COLOURS[number % len(COLOURS)],
                "dash": "solid" if number < len(COLOURS) else "dot",
            },
            visible="legendonly" if name in _ASIDE else True,
            hovertemplate="%{x:.0f} ms: %{y:.1f} %<extra>%{fullData.name}</extra>",
        )
    if not names:
        return None
    if run.head.kind == "calls":
        _mark_budget(figure)
    shown = [name for name in names if name not in _ASIDE] or names
    farthest = max(percentile([v for group in found[name] for v in group], 99) for name in shown)
    figure.update_xaxes(
        title="ms", range=[0, max(1.5 * 1000 * BUDGET_S if run.head.kind == "calls" else 0, 1100 * farthest)]
    )
    figure.update_yaxes(title="% of values up to", range=[0, 101])
    return _styled(figure, 460)


def waterfall(run: RunDocument) -> go.Figure | None:
    """The slowest answered turns: the server's stages end to end, what it did not see, and when the caller heard it."""
    answered = [t for t in run.turns if t.outcome in ("answered", "interrupted") and t.latency_s is not None]
    worst = sorted(answered, key=lambda turn: turn.latency_s or 0.0)[-NUM_WORST:]
    if not worst:
        return None
    figure = go.Figure()
    names = [f"call {turn.call}, turn {turn.turn}" for turn in worst]
    hover = [_said(turn) for turn in worst]
    stages = list(dict.fromkeys(name for turn in worst for name in turn.server_stages_s))
    for number, stage in enumerate(stages):
        _bar(
            figure,
            names,
            [turn.server_stages_s.get(stage, 0.0) for turn in worst],
            escape(label(f"{stage}_s")),
            COLOURS[number % len(COLOURS)],
            hover,
        )
    unseen = [max(0.0, (turn.latency_s or 0.0) - sum(turn.server_stages_s.values())) for turn in worst]
    _bar(figure, names, unseen, "outside the server's stages", "#d9d9d9", hover)
    figure.add_scatter(
        x=[1000 * (turn.latency_s or 0.0) for turn in worst],
        y=names,
        mode="markers",
        name="heard by the caller",
        marker={"symbol": "line-ns-open", "size": 16, "color": "#111", "line": {"width": 3}},
        hovertemplate="heard after %{x:.0f} ms<extra></extra>",
    )
    _mark_budget(figure)
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(title="ms after the caller's last word", rangemode="tozero")
    return _styled(figure, 160 + 24 * len(worst))


def timeline(run: RunDocument) -> go.Figure | None:
    """How many calls or requests ran at each moment, and those that were turned away or lost."""
    records: Sequence[CallFacts | RequestRecord] = run.calls or run.requests
    if not records:
        return None
    steps = sorted(change for record in records for change in _changes(record))
    times = [at_s for at_s, _ in steps]
    running = list(accumulate(change for _, change in steps))
    what = "calls" if run.calls else "requests"
    figure = go.Figure()
    figure.add_scatter(
        x=[0.0, *times],
        y=[0, *running],
        mode="lines",
        name=f"{what} in progress",
        line={"shape": "hv", "color": COLOURS[0]},
        fill="tozeroy",
        hovertemplate=f"%{{x:.1f}} s: %{{y}} {what}<extra></extra>",
    )
    below = -0.06 * max([1, *running])
    admitted = [record for record in records if record.outcome != "refused"]
    _marks(figure, admitted, below, "admitted", COLOURS[2], "line-ns-open")
    for outcome, colour in OUTCOME_COLOURS.items():
        _marks(figure, [record for record in records if record.outcome == outcome], below, outcome, colour, "x")
    figure.update_xaxes(title="s from the start of the run", rangemode="tozero")
    figure.update_yaxes(title=f"{what} at once", range=[2 * below, -18 * below])
    return _styled(figure, 380)


def capacity(run: RunDocument) -> go.Figure | None:
    """p95 turn latency and lost turns against the number of concurrent calls, a point for each repeat."""
    steps = [step for step in run.capacity if step.p95_s is not None]
    if not steps:
        return None
    figure = go.Figure()
    figure.add_scatter(
        x=[step.num_concurrent for step in steps],
        y=[1000 * (step.p95_s or 0.0) for step in steps],
        mode="markers",
        name="p95 of one repeat, 95 % interval",
        marker={"size": 9, "color": [OUTCOME_COLOURS["failed"] if step.num_lost else COLOURS[0] for step in steps]},
        error_y={
            "symmetric": False,
            "array": [1000 * max(0.0, (step.p95_high_s or step.p95_s or 0) - (step.p95_s or 0)) for step in steps],
            "arrayminus": [1000 * max(0.0, (step.p95_s or 0) - (step.p95_low_s or step.p95_s or 0)) for step in steps],
            "color": "#999",
        },
        customdata=[[step.num_lost, step.num_turns, step.repeat] for step in steps],
        hovertemplate="%{x} calls: %{y:.0f} ms, %{customdata[0]} of %{customdata[1]} turns lost<extra></extra>",
    )
    numbers = sorted({step.num_concurrent for step in steps})
    medians = [percentile([s.p95_s or 0.0 for s in steps if s.num_concurrent == number], 50) for number in numbers]
    figure.add_scatter(
        x=numbers,
        y=[1000 * median for median in medians],
        mode="lines",
        name="median of the repeats",
        line={"color": COLOURS[0], "width": 2},
    )
    figure.add_hline(y=1000 * BUDGET_S, line={"color": BUDGET_COLOUR, "dash": "dash"}, annotation_text="700 ms")
    figure.update_xaxes(title="concurrent calls (red: turns were lost)", rangemode="tozero")
    figure.update_yaxes(title="p95 turn latency, ms", rangemode="tozero")
    return _styled(figure, 380)


def short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"


def _said(turn: TurnRecord) -> str:
    return f"“{escape(short(turn.said))}”<br>“{escape(short(turn.reply))}”"


def _bar(
    figure: go.Figure, names: Sequence[str], values_s: Sequence[float], name: str, colour: str, hover: Sequence[str]
) -> None:
    figure.add_bar(
        y=names,
        x=[1000 * value for value in values_s],
        name=name,
        orientation="h",
        marker={"color": colour},
        customdata=hover,
        hovertemplate="%{fullData.name}: %{x:.0f} ms<br>%{customdata}<extra></extra>",
    )


def _marks(
    figure: go.Figure,
    records: Sequence[CallFacts | RequestRecord],
    y: float,
    name: str,
    colour: str,
    symbol: str,
) -> None:
    if not records:
        return
    figure.add_scatter(
        x=[record.scheduled_s for record in records],
        y=[y] * len(records),
        mode="markers",
        name=f"{name} ({len(records)})",
        marker={"color": colour, "symbol": symbol, "size": 9},
        customdata=[f"{record.number}: {escape(short(record.reason))}" for record in records],
        hovertemplate=f"{name} at %{{x:.1f}} s<br>%{{customdata}}<extra></extra>",
    )


def _changes(record: CallFacts | RequestRecord) -> list[tuple[float, int]]:
    if record.outcome == "refused":
        return []
    begun_s = record.sent_s if isinstance(record, RequestRecord) else record.ready_s
    if begun_s is None:
        return []
    return [(begun_s, 1), *([(record.ended_s, -1)] if record.ended_s is not None else [])]


def _mark_budget(figure: go.Figure) -> None:
    figure.add_vline(
        x=1000 * BUDGET_S,
        line={"color": BUDGET_COLOUR, "dash": "dash"},
        annotation_text=f"{1000 * BUDGET_S:.0f} ms",
        annotation_font_color=BUDGET_COLOUR,
    )


def _thinned(xs: list[float], shares: list[float]) -> tuple[list[float], list[float]]:
    step = -(-len(xs) // MAX_POINTS)
    kept = sorted({*range(0, len(xs), step), len(xs) - 1})
    return [xs[i] for i in kept], [shares[i] for i in kept]


def _styled(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin=MARGIN,
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "y": -60 / (height - MARGIN["t"] - MARGIN["b"]), "yanchor": "top"},
        hoverlabel={"align": "left"},
    )
    return figure
