from __future__ import annotations

import argparse
import asyncio
import io
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from rich.console import Console

from load.errors import LoadError
from load.hearing import audible
from load.measure import turns
from load.null_agent import ANSWER_HZ, NullAgent
from load.null_command import add_flags, hum, run
from tests.load.test_caller import call, two_turns
from tests.load.test_hearing import silence, tone


def parsed(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return parser.parse_args(flags)


def test_a_hum_is_one_stretch_that_is_audible_at_once() -> None:
    [span] = audible(hum(1.5), ANSWER_HZ)
    assert span.start <= 0.005 * ANSWER_HZ
    assert span.end >= 1.49 * ANSWER_HZ


@pytest.mark.parametrize("rate_hz", [8000, 24000, 48000])
def test_an_answer_sounds_the_same_at_every_rate(rate_hz: int) -> None:
    pcm = NullAgent(tone(0.5, ANSWER_HZ, hz=400.0)).answer_at(rate_hz)
    assert pcm.size == rate_hz // 2
    assert np.argmax(np.abs(np.fft.rfft(pcm))) / 0.5 == pytest.approx(400, abs=2)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--port", "70000"], "--port must be 0 to 65535"),
        (["--answer-after-ms", "0"], "--answer-after-ms must be 40 to 60000, got 0"),
        (["--answer-after-ms", "nan"], "--answer-after-ms must be 40 to 60000, got nan"),
        (["--answer", "nowhere.wav"], "nowhere.wav: no such file"),
    ],
)
def test_a_wrong_command_is_one_clear_line(flags: list[str], says: str) -> None:
    with pytest.raises(LoadError) as error:
        run(parsed(*flags), Console(file=io.StringIO()))
    assert says in str(error.value)


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LoadError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            run(parsed("--port", str(port)), Console(file=io.StringIO()))


@pytest.mark.slow
def test_it_says_a_recording_from_its_first_sound_on_until_it_is_stopped(tmp_path: Path) -> None:
    recording = tmp_path / "answer.wav"
    soundfile.write(recording, np.concatenate([silence(1.0, 16000), tone(0.5, 16000)]), 16000)
    flags = ["--answer", str(recording), "--answer-after-ms", "300"]
    command = [sys.executable, "-m", "load", "null-agent", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            record = asyncio.run(call(process.stdout.readline().strip(), two_turns))
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 0
        finally:
            process.kill()
    assert [turn.outcome for turn in turns(record)] == ["answered", "answered"]
    first = record.heard[0][1]
    assert audible(first, ANSWER_HZ)[0].start <= 0.005 * ANSWER_HZ
    assert sum(pcm.size for _, pcm in record.heard) == pytest.approx(2 * 0.5 * ANSWER_HZ, abs=0.01 * ANSWER_HZ)
