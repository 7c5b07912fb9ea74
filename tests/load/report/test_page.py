from __future__ import annotations

import argparse
import io
import json
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs
from rich.console import Console

from load.errors import LoadError
from load.report import figures
from load.report import page as command
from load.report.document import RunDocument
from load.report.page import POLICY, page, require_place, write_page
from load.report.validity import judge
from tests.load.report.runs import call_run, request_run

EVIL = '</script><script src="http://evil.test/x.js"></script><img src=http://evil.test onerror=alert(1)>'


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def elements(text: str) -> Elements:
    found = Elements()
    found.feed(text.replace(get_plotlyjs(), ""))
    return found


def evil(run: RunDocument) -> RunDocument:
    """Every text of it that others choose."""
    turns = tuple(replace(turn, said=EVIL, reply=EVIL, heard=EVIL, server_stages_s={EVIL: 0.1}) for turn in run.turns)
    calls = tuple(replace(call, reason=EVIL, scenario=EVIL) for call in run.calls)
    requests = tuple(replace(r, reason=EVIL, figures={f"{EVIL}_s": 1.0}) for r in run.requests)
    head = replace(run.head, target=EVIL, command=EVIL, scenario=EVIL, transport=EVIL, notes=(EVIL,))
    stages = {f"{EVIL}_s": summary for summary in run.stages.values()}
    return replace(run, turns=turns, calls=calls, requests=requests, head=head, stages=stages)


@pytest.mark.slow
@pytest.mark.parametrize("run", [call_run(), request_run(), evil(call_run()), evil(request_run())])
def test_a_page_refers_to_nothing_outside_itself(run: RunDocument) -> None:
    found = elements(page(run))
    for tag, attributes in found.tags:
        assert not {"src", "href", "srcset", "data", "action", "onerror", "onload"} & set(attributes), tag
        assert tag not in ("link", "iframe", "object", "embed", "base", "img", "form")
    policies = [a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [POLICY]
    assert "default-src 'none'" in POLICY
    assert "url(" not in found.text
    assert "@import" not in found.text


@pytest.mark.slow
def test_text_of_others_stays_text() -> None:
    for run in (evil(call_run()), evil(request_run())):
        scripts = [tag for tag, _ in elements(page(run)).tags if tag == "script"]
        plain = call_run() if run.head.kind == "calls" else request_run()
        assert len(scripts) == len([tag for tag, _ in elements(page(plain)).tags if tag == "script"])
        assert "<img" not in page(run).replace(get_plotlyjs(), "")


def test_labels_of_plots_hold_no_markup_of_others() -> None:
    run = evil(call_run())
    for figure in (figures.distribution(run), figures.waterfall(run), figures.timeline(run)):
        assert figure is not None
        assert "<img" not in json.dumps(figure.to_plotly_json(), default=str)


def test_every_plot_shows_what_the_run_has() -> None:
    run = call_run(30)
    worst = figures.waterfall(run)
    assert worst is not None
    slowest = max((t for t in run.turns if t.outcome in ("answered", "interrupted")), key=lambda t: t.latency_s or 0)
    assert worst.data[-1].y[-1] == f"call {slowest.call}, turn {slowest.turn}"
    assert sum(bar.x[-1] for bar in worst.data[:-1]) == pytest.approx(1000 * (slowest.latency_s or 0))
    timeline = figures.timeline(run)
    assert timeline is not None
    assert timeline.data[0].y[-1] == 0
    assert {trace.name for trace in timeline.data[1:]} == {"admitted (26)", "refused (4)", "broken (2)"}
    capacity = figures.capacity(run)
    assert capacity is not None
    assert list(capacity.data[1].x) == [1, 2, 4, 6]


def test_a_long_distribution_keeps_its_ends_and_few_points() -> None:
    run = request_run(30)
    request = run.requests[0]
    many = tuple(replace(request, number=i, figures={"ttft_s": i / 1000}) for i in range(9000))
    figure = figures.distribution(replace(run, requests=many))
    assert figure is not None
    assert len(figure.data[0].x) <= figures.MAX_POINTS + 1
    assert figure.data[0].x[-1] == pytest.approx(8999)
    assert figure.data[0].y[-1] == 100


@pytest.mark.slow
def test_a_run_without_results_is_a_page_all_the_same() -> None:
    run = replace(call_run(), calls=(), turns=(), capacity=(), stages={}, n=0, is_complete=False, validity=None)
    text = elements(page(run)).text
    assert "broke off" in text
    assert "Nothing was found" in text


@pytest.mark.slow
def test_an_invalid_run_says_so_on_top() -> None:
    run = replace(call_run(), validity=judge([1.0], 0.1, 60.0, shares_cores=False, num_cores=2))
    assert "This run is not valid" in elements(page(run)).text


@pytest.mark.slow
def test_the_command_writes_the_page_beside_the_result(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(asdict(call_run())))
    parser = argparse.ArgumentParser()
    command.add_flags(parser)
    file = io.StringIO()
    assert command.run(parser.parse_args([str(path)]), Console(file=file, width=300)) == 0
    assert file.getvalue().strip() == str(tmp_path / "run.html")
    assert (tmp_path / "run.html").stat().st_size > 1_000_000


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LoadError, match="cannot write"):
        write_page(request_run(1), tmp_path / "file" / "page.html")


@pytest.mark.parametrize(("name", "says"), [("run.json", "the result itself"), ("file/page.html", "cannot write")])
def test_where_no_page_can_be_is_told_before_the_run(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LoadError, match=says):
        require_place(tmp_path / name, tmp_path / "run.json")


def test_a_page_is_not_begun_before_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "older.html").write_text("older")
    for name in ("older.html", "new.html"):
        require_place(tmp_path / name, tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["older.html"]
    assert (tmp_path / "older.html").read_text() == "older"
