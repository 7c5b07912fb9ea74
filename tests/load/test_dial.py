from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from load.dial import RATES, SCHEMES, Dial, add_dial_flags, dial_of
from load.errors import LoadError


def dialled(*flags: str) -> Dial:
    parser = argparse.ArgumentParser()
    add_dial_flags(parser)
    return dial_of(parser.parse_args(flags))


def test_a_server_of_ours_on_this_machine_is_called_when_nothing_is_said() -> None:
    assert dialled() == Dial("ws://127.0.0.1:8080/v1/calls", "websocket")
    assert dialled("--transport", "webrtc").url == "http://127.0.0.1:8080/v1/calls/rtc"


def test_every_transport_has_rates_and_a_kind_of_address() -> None:
    assert RATES.keys() == SCHEMES.keys()
    for transport, scheme in SCHEMES.items():
        url = f"{scheme}s://host/path"
        assert dialled("--transport", transport, "--url", url).rates_hz == RATES[transport]


def test_the_key_comes_from_a_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret-key-of-the-server\n")
    key.chmod(0o600)
    assert dialled("--key-file", str(key)).key == "secret-key-of-the-server"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--transport", "twilio"], "--transport twilio needs --url"),
        (["--url", "http://x/"], "calls over websocket go to an address with ws:// or wss://"),
        (["--url", "ftp://x/"], "calls over websocket go to an address with ws:// or wss://"),
        (["--url", "ws://[x/"], "--url ws://[x/"),
        (["--key-file", "/nowhere/key"], "/nowhere/key"),
    ],
)
def test_a_wrong_address_is_one_clear_line(flags: list[str], says: str) -> None:
    with pytest.raises(LoadError) as error:
        dialled(*flags)
    assert says in str(error.value)
