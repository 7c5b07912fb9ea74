from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from rich.console import Console

from load.errors import LoadError
from load.faults.command import add_flags, run

MAIN = """
import argparse, sys
from rich.console import Console
from load.faults.command import add_flags, run
parser = argparse.ArgumentParser()
add_flags(parser)
run(parser.parse_args(sys.argv[1:]), Console())
"""


def parsed(*flags: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return parser.parse_args(flags)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["ws://x", "--fault", "{kind: los}"], "--fault {kind: los}: kind: unknown kind 'los'; did you mean 'loss'?"),
        (["ws://x", "--fault", "{"], "not YAML"),
        (["ws://x", "--fault", "{kind: stt_empty}"], "stt_empty is no fault of a call's path"),
        (["http://x", "--stage", "tts", "--fault", "{kind: stt_empty}"], "stt_empty is no fault of tts"),
        (["nowhere"], "nowhere is no address"),
        (["ws://x", "--port", "70000"], "--port must be"),
        (["ws://x", "--seed", "-1"], "--seed must"),
    ],
)
def test_a_wrong_command_is_one_clear_line(flags: list[str], says: str) -> None:
    with pytest.raises(LoadError) as error:
        run(parsed(*flags), Console())
    assert says in str(error.value)


@pytest.mark.slow
def test_a_relay_says_where_it_is_and_at_the_end_what_passed() -> None:
    command = [sys.executable, "-c", MAIN, "http://127.0.0.1:9", "--stage", "llm", "--fault", "{kind: llm_refusal}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            with pytest.raises(urllib.error.HTTPError, match="503") as refusal:
                urllib.request.urlopen(f"{url}/v1/chat/completions", data=b"{}", timeout=5)
            refusal.value.close()
            process.send_signal(signal.SIGINT)
            counts = json.loads(process.stdout.readline())
            assert process.wait(5) == 0
        finally:
            process.kill()
    assert counts == {"num_requests": 1, "num_faults": {"llm_refusal": 1}}
