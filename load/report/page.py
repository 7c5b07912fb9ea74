"""A run as one HTML page that a person looks at: plots, the table of what is bad, and what the figures rest on.

The page is one file and asks nobody for anything: the plotting library is inside it, and its content security policy
lets the browser fetch nothing. All text of callers, servers and files is escaped.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go
import plotly.io
from plotly.offline import get_plotlyjs
from rich.console import Console
from rich.text import Text

from load.errors import LoadError
from load.report import figures
from load.report.bad import Bad, bad
from load.report.document import RunDocument, read_run
from load.report.live import shown_value
from load.report.measures import label, rates
from load.report.statistics import Estimate, wilson

MAX_ROWS = 300  # of the table of what is bad; the JSON has them all
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1b1f24;max-width:1180px;margin:0 auto;padding:24px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:36px 0 4px}p{margin:4px 0;color:#57606a}
.cards{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0}
.card{border:1px solid #d8dee4;border-radius:8px;padding:10px 16px;min-width:150px}
.card b{display:block;font-size:24px}.card span{color:#57606a;font-size:13px}
.flag{border-radius:8px;padding:10px 16px;margin:12px 0;background:#ffe8e6;color:#82071e}
table{border-collapse:collapse;width:100%;font-size:14px;margin:8px 0}
th,td{text-align:left;padding:5px 10px;border-bottom:1px solid #eaeef2;vertical-align:top;overflow-wrap:anywhere}
th{color:#57606a;font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
"""


def page(run: RunDocument) -> str:
    """The whole document."""
    title = f"{run.head.scenario or run.head.kind} over {run.head.transport or run.head.kind}"
    plots = (
        (
            "How long it took",
            "Share of values up to each time. Click a name to hide it, twice to see it alone.",
            figures.distribution(run),
        ),
        (
            "The slowest turns",
            "The server's own stages end to end; grey is what they do not cover; the mark is when the caller heard it.",
            figures.waterfall(run),
        ),
        ("What ran at once", "From the caller's side; marks stand at the scheduled time.", figures.timeline(run)),
        ("Capacity", "Each point is one repeat.", figures.capacity(run)),
    )
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(run.head.target)} · {escape(run.head.started_at)} · n = {run.n}</p>",
        *_flags(run),
        _cards(run),
        *(_plot(heading, remark, figure) for heading, remark, figure in plots if figure is not None),
        "<h2>All figures</h2>",
        _figures(run),
        _rates(run),
        _bad(bad(run)),
        "<h2>What this rests on</h2>",
        _facts(run),
    ]
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head>\n"
        f"<body>{chr(10).join(body)}</body></html>\n"
    )


def write_page(run: RunDocument, path: Path) -> None:
    """Raises: LoadError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(run), encoding="utf-8")
    except OSError as error:
        raise LoadError(f"{path}: cannot write: {error.strerror}", "choose another file with --html") from None


def require_place(path: Path, result: Path) -> None:
    """Raises: LoadError where the page cannot be written, or would be written over the result."""
    is_new = not path.exists()
    try:
        if path.resolve() == result.resolve():
            raise LoadError(f"{path} is the result itself", "name another file with --html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise LoadError(f"{path}: cannot write: {error.strerror}", "choose another file with --html") from None


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN.json", help="result of a run")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="where the page goes (default: RUN.html beside the result)"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Raises: LoadError."""
    path = arguments.html if arguments.html is not None else arguments.run.with_suffix(".html")
    found = read_run(arguments.run)
    require_place(path, arguments.run)
    write_page(found, path)
    console.print(Text(str(path)))
    return 0


def _flags(run: RunDocument) -> list[str]:
    found = []
    if not run.is_complete:
        found.append("This run broke off. What had ended by then is shown.")
    if run.validity is not None and not run.validity.is_valid:
        found.append(f"This run is not valid: {run.validity.reason}.")
    return [f'<div class="flag">{escape(text)}</div>' for text in found]


def _cards(run: RunDocument) -> str:
    cards = []
    for name in ("latency_s", "ttft_s", "tpot_s", "ttfa_s", "rtf"):
        if (summary := run.stages.get(name)) is not None:
            p50 = Estimate(summary.p50, summary.p50_low, summary.p50_high, summary.n)
            p95 = Estimate(summary.p95, summary.p95_low, summary.p95_high, summary.n)
            cards += [
                (f"{label(name)} {kind}", shown_value(name, e.value), _range(name, e))
                for kind, e in (("p50", p50), ("p95", p95))
            ]
    for name, rate in rates(run).items():
        if rate.num_trials and name in ("on_time", "missed", "cut_in", "calls_refused", "refused", "failed"):
            share = wilson(rate.num_hits, rate.num_trials)
            cards.append((label(name), f"{share.value:.1%}", f"{rate.num_hits} of {rate.num_trials}"))
    inner = (
        f'<div class="card"><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(note)}</span></div>'
        for name, value, note in cards
    )
    return f'<div class="cards">{"".join(inner)}</div>'


def _plot(heading: str, remark: str, figure: go.Figure) -> str:
    inner = plotly.io.to_html(
        figure,
        full_html=False,
        include_plotlyjs=False,
        div_id=heading.lower().replace(" ", "-"),
        config={"displaylogo": False, "responsive": True},
    )
    return f"<h2>{escape(heading)}</h2><p>{escape(remark)}</p>{inner}"


def _figures(run: RunDocument) -> str:
    rows = []
    for name, s in run.stages.items():
        p50 = _range(name, Estimate(s.p50, s.p50_low, s.p50_high, s.n))
        p95 = _range(name, Estimate(s.p95, s.p95_low, s.p95_high, s.n))
        first, *rest = (shown_value(name, value) for value in (s.p50, s.p90, s.p95, s.p99, s.maximum))
        rows.append((label(name), str(s.n), first, p50, *rest[:2], p95, *rest[2:]))
    return _table(("", "n", "p50", "95 % interval", "p90", "p95", "95 % interval", "p99", "max"), rows, num_text=1)


def _rates(run: RunDocument) -> str:
    rows = []
    for name, rate in rates(run).items():
        if rate.num_trials:
            share = wilson(rate.num_hits, rate.num_trials)
            interval = f"{share.low:.1%} to {share.high:.1%}"
            rows.append((label(name), f"{rate.num_hits} of {rate.num_trials}", f"{share.value:.1%}", interval))
    return _table(("", "n", "share", "95 % interval"), rows, num_text=1)


def _bad(rows: Sequence[Bad]) -> str:
    if not rows:
        return "<h2>What is bad</h2><p>Nothing was found.</p>"
    counts = ", ".join(f"{count} {kind}" for kind, count in Counter(row.kind for row in rows).items())
    rest = f" The first {MAX_ROWS} are shown; the JSON has all." if len(rows) > MAX_ROWS else ""
    cells = [(row.kind, row.where, row.detail, row.said, row.reply) for row in rows[:MAX_ROWS]]
    table = _table(("", "where", "what", "the caller said", "the answer"), cells, num_text=5)
    return f"<h2>What is bad</h2><p>{escape(counts)}.{rest}</p>{table}"


def _facts(run: RunDocument) -> str:
    head, host, validity = run.head, run.head.host, run.validity
    parameters = ", ".join(f"{name} {value:g}" for name, value in head.plan.parameters.items())
    rows = [
        ("command", head.command),
        ("commit", head.commit),
        ("seed", str(head.seed)),
        ("arrivals", f"{head.plan.arrivals} {parameters}, {head.plan.num_planned} planned"),
        (
            "host",
            f"{host.processor}, {host.num_cores} cores, {host.memory_gb:g} GB, {host.system}, Python {host.python}",
        ),
    ]
    if validity is not None:
        p50, p99, worst = (
            "-" if value is None else f"{1000 * value:.2f} ms"
            for value in (
                validity.scheduling_error_p50_s,
                validity.scheduling_error_p99_s,
                validity.scheduling_error_max_s,
            )
        )
        rows += [
            ("generator's lateness", f"p50 {p50}, p99 {p99}, max {worst}, n = {validity.num_timed}"),
            ("generator's CPU", f"{validity.cpu_share:.0%} of one core. {validity.reason}".strip()),
        ]
    rows += [("note", note) for note in head.notes]
    rows.append(
        (
            "intervals",
            "95 %, bootstrap over whole calls or sessions; shares by Wilson's score; p by linear interpolation",
        )
    )
    return _table(("", ""), rows, num_text=2)


def _range(name: str, estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "too few"
    return f"{shown_value(name, estimate.low).removesuffix(' ms')} to {shown_value(name, estimate.high)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], num_text: int) -> str:
    """The first `num_text` columns are text, the others numbers."""

    def line(tag: str, cells: Sequence[str]) -> str:
        classes = ("" if i < num_text else ' class="n"' for i in range(len(cells)))
        return "".join(f"<{tag}{cls}>{escape(cell)}</{tag}>" for cls, cell in zip(classes, cells, strict=True))

    head = f"<tr>{line('th', heads)}</tr>" if any(heads) else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table>{head}{body}</table>"
