from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from rich.console import Console
from websockets.asyncio.server import ServerConnection, serve

from deploy.call import PATIENCE_S, CallBroken, Heard, call, transport_of
from deploy.call_report import CallReport, report, show, waterfall
from deploy.errors import CallError
from deploy.recording import read_speech
from load.recording_wav import write_stereo
from load.track import Track
from tests.deploy.answering import Answering, tone
from wire import calls
from wire.pcm import Pcm16

pytestmark = pytest.mark.slow  # a call takes as long as it takes


def write_speech(folder: Path, rate_hz: int = 16000, name: str = "caller.wav") -> Path:
    """0.2 s of tone, 0.1 s of silence."""
    path = folder / name
    soundfile.write(path, np.concatenate([tone(0.2, rate_hz), np.zeros(rate_hz // 10, np.int16)]), rate_hz)
    return path


async def make_call(
    server: Answering,
    paths: list[Path],
    *,
    greeting: bool = False,
    barge_in_s: float | None = None,
    patience_s: float = PATIENCE_S,
) -> Heard:
    speeches, rate_hz = read_speech(paths)
    hello = calls.Hello(1, rate_hz, 24000, greeting=greeting)
    return await call(server.url, speeches, hello, barge_in_s=barge_in_s, patience_s=patience_s)


def _summary(heard: Heard) -> CallReport:
    return report("ws://x", heard, None)


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("wss://x/v1/calls", "websocket"),
        ("http://x:8080/v1/calls/rtc", "webrtc"),
        ("https://x/api/offer", "pipecat"),
    ],
)
def test_address_tells_the_transport(url: str, transport: str) -> None:
    assert transport_of(url) == transport


async def test_call_reports_words_stages_and_latency(tmp_path: Path) -> None:
    async with Answering().running() as server:
        heard = await make_call(server, [write_speech(tmp_path)])
    (turn,) = _summary(heard).turns
    assert (turn.outcome, turn.transcript, turn.answer, turn.heard) == (
        "answered",
        "question 1",
        "answer 1",
        "answer 1",
    )
    assert turn.server_latency_ms == sum(turn.stages_ms.values()) == 400
    assert turn.latency_ms is not None
    assert turn.latency_ms > 0
    assert server.hung_up


async def test_audio_goes_out_in_messages_of_20_ms_and_silence_follows(tmp_path: Path) -> None:
    async with Answering().running() as server:
        await make_call(server, [write_speech(tmp_path, 8000)])
    assert server.hellos[0].sample_rate_hz == 8000
    assert set(server.audio_bytes) == {320}
    assert len(server.audio_bytes) > 15 + 5


async def test_greeting_is_heard_out_before_the_caller_speaks(tmp_path: Path) -> None:
    async with Answering().running() as server:
        heard = await make_call(server, [write_speech(tmp_path)], greeting=True)
    greeting = sum(pcm.size for _, pcm in heard.record.heard[: round(0.35 / 0.02)])
    greeting_ends_s = heard.record.heard[0][0] + greeting / 24000
    assert heard.record.sent[0][0] >= greeting_ends_s
    assert heard.spoken[0].answered_s is not None
    assert heard.spoken[0].answered_s > greeting_ends_s


async def test_played_is_acknowledged_and_only_grows(tmp_path: Path) -> None:
    async with Answering().running() as server:
        heard = await make_call(server, [write_speech(tmp_path)], greeting=True)
    assert len(server.played) >= 2
    assert server.played == sorted(set(server.played))
    assert server.played[-1] <= sum(pcm.size for _, pcm in heard.record.heard)


async def test_several_files_are_several_turns_of_one_call(tmp_path: Path) -> None:
    paths = [write_speech(tmp_path, name="a.wav"), write_speech(tmp_path, name="b.wav")]
    async with Answering().running() as server:
        heard = await make_call(server, paths)
    assert [(turn.file, turn.transcript) for turn in _summary(heard).turns] == [
        ("a.wav", "question 1"),
        ("b.wav", "question 2"),
    ]
    assert len(server.hellos) == 1


async def test_barge_in_clears_what_was_not_heard(tmp_path: Path) -> None:
    paths = [write_speech(tmp_path, name="a.wav"), write_speech(tmp_path, name="b.wav")]
    async with Answering(answer_s=2.0).running() as server:
        heard = await make_call(server, paths, barge_in_s=0.1)
    first, second = _summary(heard).turns
    assert (first.outcome, first.heard) == ("interrupted", "answer")
    assert (second.outcome, second.transcript) == ("answered", "question 2")
    assert sum(pcm.size for _, pcm in heard.record.heard) < 24000 * 4


async def test_pause_that_was_answered_too_early_is_reported_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "pause.wav"
    silence = np.zeros(16000 * 3 // 10, np.int16)
    soundfile.write(path, np.concatenate([tone(0.2, 16000), silence, tone(0.2, 16000)]), 16000)
    async with Answering(answer_s=1.0).running() as server:
        heard = await make_call(server, [path])
    (turn,) = _summary(heard).turns
    assert (turn.transcript, turn.outcome) == ("question 2", "answered")
    assert [(e.transcript, e.heard) for e in turn.earlier] == [("question 1", "answer")]


async def test_recording_has_both_sides_where_they_sounded(tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    async with Answering().running() as server:
        heard = await make_call(server, [write_speech(tmp_path)])
    record = heard.record
    write_stereo(path, Track(record.sent, 16000), Track(record.heard, 24000), record.placed_s, record.placed_s)
    stereo, rate_hz = soundfile.read(path, dtype="int16")
    assert rate_hz == 24000
    caller, agent = (np.flatnonzero(np.abs(stereo[:, side].astype(int)) > 1000) for side in (0, 1))
    assert caller[0] < agent[0]
    expected_gap = record.heard[0][0] + 0.05 - record.sent[0][0]
    assert (agent[0] - caller[0]) / rate_hz == pytest.approx(expected_gap, abs=0.005)


async def test_refused_call_says_when_to_try_again(tmp_path: Path) -> None:
    async with Answering(refuse=True).running() as server:
        with pytest.raises(CallError, match="all 2 lines are busy") as caught:
            await make_call(server, [write_speech(tmp_path)])
    assert caught.value.hint == "try again in 7 s"


async def test_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    async with Answering().running() as gone:
        pass
    with pytest.raises(CallError, match=r"no call server at ws://127.0.0.1") as caught:
        await make_call(gone, [write_speech(tmp_path)])
    assert "offhook up" in caught.value.hint
    assert "\n" not in str(caught.value)


async def test_server_that_ends_the_call_is_one_line(tmp_path: Path) -> None:
    async with Answering(vanish=True).running() as server:
        with pytest.raises(CallError, match="closed the call: the server failed, code 1011 failed"):
            await make_call(server, [write_speech(tmp_path)])
    async with Answering(hang_up=True).running() as server:
        with pytest.raises(CallError, match=r"ended the call \(idle\)"):
            await make_call(server, [write_speech(tmp_path)])


DELAYED = calls.Error("delayed", "the answer takes longer")
GONE = calls.Error("unavailable", "stt is gone")


@pytest.mark.parametrize(
    ("complaints", "reason"),
    [
        ((GONE,), "stt is gone"),
        ((GONE, DELAYED), "stt is gone"),
        ((DELAYED, calls.Error("speech_failed", "broke off")), "the server failed, code 1011 failed"),
        ((GONE, calls.State("speaking", 1)), "the server failed, code 1011 failed"),
    ],
)
async def test_only_an_error_that_the_call_did_not_outlive_is_why_it_was_closed(
    tmp_path: Path, complaints: tuple[calls.ServerMessage, ...], reason: str
) -> None:
    async with Answering(vanish=True, complaints=complaints).running() as server:
        with pytest.raises(CallError) as caught:
            await make_call(server, [write_speech(tmp_path)])
    assert str(caught.value) == f"the server closed the call: {reason}"


async def test_of_a_call_that_breaks_off_what_there_was_is_kept(tmp_path: Path) -> None:
    paths = [write_speech(tmp_path, name="a.wav"), write_speech(tmp_path, name="b.wav")]
    async with Answering(vanish=True, vanish_after=1).running() as server:
        with pytest.raises(CallBroken, match="closed the call") as caught:
            await make_call(server, paths)
    first, second = _summary(caught.value.heard).turns
    assert (first.file, first.transcript, first.outcome) == ("a.wav", "question 1", "answered")
    assert (second.file, second.outcome) == ("b.wav", "not ended")


async def test_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async with Answering(mute=True).running() as server:
        with pytest.raises(CallError, match=r"no answer to caller.wav within"):
            await make_call(server, [write_speech(tmp_path)], patience_s=0.1)


async def test_server_of_another_kind_is_a_protocol_error(tmp_path: Path) -> None:
    async def welcome(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send("welcome")

    async with serve(welcome, "127.0.0.1", 0) as other:
        port = next(iter(other.sockets)).getsockname()[1]
        with pytest.raises(CallError, match="does not speak this protocol"):
            await make_call(Answering(url=f"ws://127.0.0.1:{port}/"), [write_speech(tmp_path)])


@pytest.mark.parametrize(("url", "problem"), [("ftp://127.0.0.1/", "no WebSocket address"), ("ws://", "WebSocket")])
async def test_bad_url_is_one_line(tmp_path: Path, url: str, problem: str) -> None:
    with pytest.raises(CallError, match=problem):
        await make_call(Answering(url=url), [write_speech(tmp_path)])


async def test_report_is_shown_with_its_waterfall(tmp_path: Path) -> None:
    async with Answering().running() as server:
        heard = await make_call(server, [write_speech(tmp_path)])
    console = Console(file=io.StringIO(), width=120)
    show(_summary(heard), console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "caller  question 1" in text
    assert "llm_first_token" in text
    assert "budget of 700 ms; the server counts 400 ms" in text


def test_waterfall_marks_the_budget_and_never_overflows() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(waterfall({"endpointing": 200.0, "llm": 5000.0}))
    assert isinstance(console.file, io.StringIO)
    assert max(map(len, console.file.getvalue().splitlines())) <= 80


@pytest.mark.parametrize(("rates", "expected"), [((8000,), 8000), ((11025,), 16000), ((8000, 16000), 16000)])
def test_files_keep_their_rate_where_the_protocol_has_it(tmp_path: Path, rates: tuple[int, ...], expected: int) -> None:
    speeches, rate_hz = read_speech([write_speech(tmp_path, rate, f"{rate}.wav") for rate in rates])
    assert rate_hz == expected
    for speech in speeches:
        assert speech.end / rate_hz == pytest.approx(0.2, abs=0.015)


def test_stereo_file_is_mixed_to_mono(tmp_path: Path) -> None:
    one = tone(0.2, 16000)
    both: Pcm16 = np.stack([one, np.zeros_like(one)], axis=1)
    soundfile.write(tmp_path / "stereo.wav", both, 16000)
    (speech,), _ = read_speech([tmp_path / "stereo.wav"])
    assert np.abs(speech.pcm).max() == pytest.approx(np.abs(one).max() / 2, abs=2)


def test_unreadable_or_silent_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("no audio")
    soundfile.write(tmp_path / "silent.wav", np.zeros(16000, np.int16), 16000)
    for name, problem in (("none.wav", "no such file"), ("text.wav", "cannot read"), ("silent.wav", "only silence")):
        with pytest.raises(CallError, match=problem) as caught:
            read_speech([tmp_path / name])
        assert "\n" not in str(caught.value)
