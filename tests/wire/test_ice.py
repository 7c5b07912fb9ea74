from __future__ import annotations

import aioice
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.ice import addresses_for, admits, admitted_lines, use_addresses

LOOPBACK = ("127.0.0.1",)
HOST = "a=candidate:1 1 udp 2130706431 127.0.0.1 5000 typ host"


@pytest.mark.parametrize(
    ("host", "named", "expected"),
    [
        ("127.0.0.1", (), LOOPBACK),
        ("localhost", (), LOOPBACK),
        ("0.0.0.0", (), ()),
        ("::", (), ()),
        ("192.0.2.7", (), ("192.0.2.7",)),
        ("calls.example.com", (), ()),
        ("0.0.0.0", ("192.0.2.7",), ("192.0.2.7",)),
    ],
)
def test_host_candidates_are_those_of_the_address_that_is_bound(
    host: str, named: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert addresses_for(host, named) == expected


@pytest.mark.parametrize(
    ("host", "addresses", "expected"),
    [
        ("127.0.0.1", LOOPBACK, True),
        ("192.0.2.7", LOOPBACK, False),
        ("192.0.2.7", ("192.0.2.1",), True),
        ("192.0.2.7", (), True),
        ("3f1c.local", (), False),
        ("calls.example.com", (), False),
    ],
)
def test_a_server_open_to_this_machine_looks_at_no_candidate_elsewhere(
    host: str, addresses: tuple[str, ...], expected: bool
) -> None:
    assert admits(host, addresses) is expected


def test_barred_candidates_and_the_end_of_candidates_leave_the_offer() -> None:
    lines = [
        "v=0",
        HOST,
        "a=candidate:2 1 udp 2130706431 192.0.2.7 5000 typ host",
        "a=candidate:3 1 udp 2130706431 3f1c.local 5000 typ host",
        "a=candidate:4 1 tcp 1518280447 127.0.0.1 9 typ host tcptype active",
        "a=candidate:5 2 udp 2130706431 127.0.0.1 5000 typ host",
        "a=candidate:6 1 udp 2130706431 127.0.0.1 99999999 typ host",
        "a=candidate:7 1 udp 2130706431 127.0.0.1 port typ host",
        "a=candidate:broken",
        "a=end-of-candidates",
        "a=sendrecv",
    ]
    assert admitted_lines(lines, LOOPBACK) == ["v=0", HOST, "a=sendrecv"]


@given(st.lists(st.text(max_size=40)))
def test_what_is_no_candidate_is_left_alone(lines: list[str]) -> None:
    others = [line for line in lines if not line.startswith(("a=candidate:", "a=end-of-candidates"))]
    assert admitted_lines(others, LOOPBACK) == others


async def test_aioice_gathers_the_addresses_that_were_named() -> None:
    use_addresses(LOOPBACK)
    connection = aioice.Connection(ice_controlling=True)
    await connection.gather_candidates()
    try:
        assert {candidate.host for candidate in connection.local_candidates} == {"127.0.0.1"}
    finally:
        await connection.close()
