"""What a test call shows: the words of each turn, and where its milliseconds went, against the 700 ms line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.call import Heard, Spoken
from load.told import reply_text
from voice.budget import BUDGET_S

BAR_CELLS = 42  # of a terminal line: the line of 700 ms lies at two thirds of them
BUDGET_CELLS = 28


@dataclass(frozen=True)
class Exchange:
    transcript: str
    answer: str
    heard: str


@dataclass(frozen=True)
class TurnReport:
    """`latency_ms` is measured at the caller, `server_latency_ms` and `stages_ms` are the server's.

    `earlier` holds what the server took for turns of their own before the file's last: pauses answered too early.
    """

    file: str
    outcome: str
    transcript: str
    answer: str
    heard: str
    latency_ms: float | None
    server_latency_ms: float | None
    stages_ms: Mapping[str, float]
    errors: tuple[str, ...]
    earlier: tuple[Exchange, ...]


@dataclass(frozen=True)
class CallReport:
    url: str
    call: str
    voice: str
    turns: tuple[TurnReport, ...]
    num_slips: int  # audio messages this machine sent late: above 0 the latencies are too long
    recording: str | None = None


def report(url: str, heard: Heard, recording: Path | None) -> CallReport:
    turns = tuple(_turn(spoken, heard) for spoken in heard.spoken if spoken.sent_s is not None or spoken.numbers)
    path = None if recording is None else str(recording)
    return CallReport(url, heard.ready["call"], heard.ready["voice"], turns, heard.num_slips, path)


def _turn(spoken: Spoken, heard: Heard) -> TurnReport:
    latency_ms = None
    if spoken.answered_s is not None and spoken.sent_s is not None:
        latency_ms = round(1000 * (spoken.answered_s - spoken.sent_s), 1)
    last = spoken.turn if spoken.turn is not None else max(spoken.numbers, default=0)
    exchange, turn = _exchange(last, heard), heard.turn(last)
    return TurnReport(
        file=spoken.speech.name,
        outcome=turn["outcome"] if turn is not None else "not ended",
        transcript=exchange.transcript,
        answer=exchange.answer,
        heard=exchange.heard,
        latency_ms=latency_ms,
        server_latency_ms=turn["latency_ms"] if turn is not None else None,
        stages_ms=dict(turn["stages_ms"]) if turn is not None else {},
        errors=spoken.errors,
        earlier=tuple(_exchange(number, heard) for number in spoken.numbers if number < last),
    )


def _exchange(number: int, heard: Heard) -> Exchange:
    final, turn = heard.final(number), heard.turn(number)
    understood = final or turn
    return Exchange(
        transcript=understood["text"] if understood is not None else "",
        answer=reply_text(heard.record, number).strip(),
        heard=turn["heard"].strip() if turn is not None else "",
    )


def show(call: CallReport, console: Console) -> None:
    for number, turn in enumerate(call.turns, 1):
        console.print(Text(f"\nturn {number}: {turn.file}, {turn.outcome}", style="bold"))
        lines = [line for exchange in turn.earlier for line in _lines(exchange)]
        lines += _lines(Exchange(turn.transcript, turn.answer, turn.heard))
        lines += [("error", error) for error in turn.errors]
        for label, words in lines:
            console.print(Text.assemble((f"  {label:7} ", "dim"), words or "(nothing)"))
        if turn.stages_ms:
            console.print(waterfall(turn.stages_ms))
        console.print(Text(f"  {_verdict(turn)}"))
    if call.num_slips:
        console.print(Text(f"\n{call.num_slips} audio messages left late: this machine is too busy to measure well"))
    if call.recording is not None:
        console.print(Text(f"\nrecording: {call.recording} (left caller, right agent)"))


def _lines(exchange: Exchange) -> list[tuple[str, str]]:
    lines = [("caller", exchange.transcript), ("answer", exchange.answer)]
    return lines if exchange.heard == exchange.answer else [*lines, ("heard", exchange.heard)]


def waterfall(stages_ms: Mapping[str, float]) -> Table:
    """Each stage as a bar on the turn's time axis; `|` is the budget."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("stage")
    table.add_column("ms", justify="right")
    table.add_column("until", justify="right")
    table.add_column(f"0{'700 ms':>{BUDGET_CELLS + 5}}", no_wrap=True)
    end_ms = 0.0
    for stage, stage_ms in stages_ms.items():
        start_ms, end_ms = end_ms, end_ms + stage_ms
        table.add_row(stage, f"{stage_ms:.0f}", f"{end_ms:.0f}", _bar(start_ms, end_ms))
    return table


def _bar(start_ms: float, end_ms: float) -> str:
    start, end = (min(BAR_CELLS, round(ms / (1000 * BUDGET_S) * BUDGET_CELLS)) for ms in (start_ms, end_ms))
    cells = [" "] * BAR_CELLS
    cells[start:end] = "█" * (end - start)
    cells[BUDGET_CELLS] = "|" if cells[BUDGET_CELLS] == " " else cells[BUDGET_CELLS]
    return "".join(cells).rstrip()


def _verdict(turn: TurnReport) -> str:
    if turn.latency_ms is None:
        return "no answer was audible after the last word"
    side = "within" if turn.latency_ms <= 1000 * BUDGET_S else "over"
    server = f"; the server counts {turn.server_latency_ms:.0f} ms" if turn.server_latency_ms is not None else ""
    return f"last word to answer: {turn.latency_ms:.0f} ms, {side} the budget of {1000 * BUDGET_S:.0f} ms{server}"
