from __future__ import annotations

import os
import socket
import sys

import pytest

from deploy.errors import StartError
from deploy.ports import owner_of, require_free


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_taken_port_is_named_with_its_owner() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            StartError, match=rf"port {port}, which stt needs, is taken by process {os.getpid()} \(.*py"
        ):
            require_free([("stt", "127.0.0.1", port)])


def test_free_ports_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    require_free([("stt", "127.0.0.1", port)])
    assert owner_of(port) is None


def test_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(StartError, match=r"voice cannot listen on 192.0.2.1:8080"):
        require_free([("voice", "192.0.2.1", 8080)])
