from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.admission import Load
from voice.spread import SILENT_S, Spread, State, Wish, read_wish, shares

CALL, OTHER = Wish("call"), Wish()
UPGRADE = b"GET /v1/calls HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "wish"),
    [
        (UPGRADE, CALL),
        (UPGRADE.replace(b"Upgrade: websocket", b"UPGRADE:WebSocket"), CALL),
        (UPGRADE.replace(b"/v1/calls", b"/v1/%63alls?x=1"), CALL),
        (UPGRADE.replace(b"/v1/calls", b"http://a:80/v1/calls"), CALL),
        (b"\r\n" + UPGRADE, CALL),
        (b"GET /v1/calls HTTP/1.1\r\nHost: a\r\n\r\n", OTHER),
        (b"GET /v1/calls HTTP/1.1\r\nX-Upgrade: websocket\r\n\r\n", OTHER),
        (b"POST /v1/calls/rtc?greeting=true HTTP/1.1\r\n\r\n", CALL),
        (b"OPTIONS /v1/calls/rtc HTTP/1.1\r\n\r\n", OTHER),
        (b"DELETE /v1/calls/rtc/2-x7_-Q HTTP/1.1\r\n\r\n", Wish("of_call", 2)),
        (b"PATCH /v1/calls/rtc/12-x7 HTTP/1.1\r\n\r\n", Wish("of_call", 12)),
        (b"PATCH /v1/calls/rtc/x7-2 HTTP/1.1\r\n\r\n", OTHER),
        (b"PATCH /v1/calls/rtc/0-x7 HTTP/1.1\r\n\r\n", OTHER),
        (b"PATCH /v1/calls/rtc/99999999999-x7 HTTP/1.1\r\n\r\n", OTHER),
        (b"GET /health HTTP/1.1\r\n\r\n", OTHER),
        (b"\x16\x03\x01\x02\x00\x01\x00", OTHER),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", OTHER),
    ],
)
def test_what_a_request_is_after(head: bytes, wish: Wish) -> None:
    assert read_wish(head) == wish


@given(
    st.binary() | st.binary().map(lambda rest: b"POST /v1/calls/rtc" + rest) | st.binary().map(lambda t: UPGRADE + t)
)
def test_whatever_comes_is_some_wish(head: bytes) -> None:
    wish = read_wish(head)

    assert (wish.worker is not None) == (wish.kind == "of_call")


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(n, 1000), st.just(n))))
def test_lines_are_shared_evenly_and_none_is_lost(numbers: tuple[int, int]) -> None:
    max_calls, num_processes = numbers
    each = shares(max_calls, num_processes)

    assert (len(each), sum(each)) == (num_processes, max_calls)
    assert max(each) - min(each) <= 1
    assert min(each) >= 1


def spread_of(*lines: int) -> Spread:
    spread = Spread(lines)
    for number in range(1, len(lines) + 1):
        spread.up(number, 0.0)
    return spread


def hand(spread: Spread, wish: Wish, now: float = 0.0) -> int:
    number = spread.choose(wish, now)
    assert number is not None
    spread.handed(number, wish)
    return number


def test_a_burst_spreads_before_any_word_comes_back() -> None:
    spread = spread_of(4, 4, 4)

    assert sorted(hand(spread, CALL) for _ in range(9)) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_of_equals_the_one_that_got_none_longest() -> None:
    spread = spread_of(2, 2)
    assert (hand(spread, CALL), hand(spread, CALL)) == (1, 2)
    spread.heard(1, State(num_settled=1), 0.0)  # both calls are over
    spread.heard(2, State(num_settled=1), 0.0)

    assert (hand(spread, CALL), hand(spread, OTHER), hand(spread, OTHER), hand(spread, CALL)) == (1, 2, 1, 2)


def test_a_call_goes_where_a_line_is_free() -> None:
    spread = spread_of(2, 1)
    spread.heard(1, State(num_taken=1), 0.0)
    spread.heard(2, State(num_taken=1), 0.0)

    assert spread.choose(CALL, 0.0) == 1


def test_a_line_that_is_promised_is_given_only_when_no_other_is_free() -> None:
    spread = spread_of(1, 2)
    assert [hand(spread, CALL) for _ in range(4)] == [1, 2, 2, 1]


def test_when_all_are_full_somebody_refuses() -> None:
    spread = spread_of(1, 1)
    for number in (1, 2):
        spread.heard(number, State(num_taken=1), 0.0)

    assert spread.choose(CALL, 0.0) in (1, 2)
    assert spread.load == Load(num_taken=2, num_free=0, num_active=0, num_processes=2)


def test_what_belongs_to_a_call_goes_to_its_process() -> None:
    spread = spread_of(1, 1, 1)

    assert [spread.choose(Wish("of_call", 3), 0.0) for _ in range(3)] == [3, 3, 3]
    assert spread.choose(Wish("of_call", 9), 0.0) in (1, 2, 3)
    spread.down(3)
    assert spread.choose(Wish("of_call", 3), 0.0) in (1, 2)


def test_nothing_goes_to_a_process_that_is_down_and_its_calls_are_gone() -> None:
    spread = spread_of(2, 2)
    spread.heard(1, State(num_taken=2, num_active=2), 0.0)
    spread.down(1)

    assert {hand(spread, wish) for wish in (CALL, OTHER, CALL, OTHER)} == {2}
    assert spread.load == Load(num_taken=0, num_free=2, num_active=0, num_processes=1)
    spread.up(1, 0.0)
    assert spread.load.num_free == 4
    spread.down(1)
    spread.down(2)
    assert spread.choose(CALL, 0.0) is None


def test_a_silent_process_is_asked_last() -> None:
    spread = spread_of(4, 1)
    spread.heard(2, State(num_taken=1), SILENT_S + 1)

    assert spread.choose(CALL, SILENT_S + 1) == 2
    assert spread.choose(OTHER, SILENT_S + 1) == 2
    assert spread.choose(OTHER, SILENT_S + 1, without={2}) == 1


def test_a_draining_process_is_asked_only_when_no_other_can() -> None:
    spread = spread_of(4, 2)
    spread.heard(1, State(draining=True), 0.0)
    spread.heard(2, State(num_taken=1), 0.0)

    assert [hand(spread, OTHER), hand(spread, OTHER)] == [2, 2]
    assert spread.choose(CALL, 0.0) == 2
    assert spread.load.num_free == 1


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.sampled_from(["call", "settle", "end", "crash"]), max_size=60),
    st.data(),
)
def test_a_call_is_refused_only_when_every_line_is_taken_or_promised(
    lines: list[int], events: list[str], data: st.DataObject
) -> None:
    """Processes that follow the rules: a call that was handed over takes a line when there is one."""
    spread = spread_of(*lines)
    waiting, taken, settled = (dict.fromkeys(range(1, len(lines) + 1), 0) for _ in range(3))
    for event in events:
        number = data.draw(st.sampled_from(sorted(waiting)))
        if event == "call":
            all_promised = all(waiting[n] + taken[n] >= lines[n - 1] for n in waiting)
            number = hand(spread, CALL)
            assert all_promised or waiting[number] + taken[number] < lines[number - 1]
            waiting[number] += 1
        elif event == "settle" and waiting[number]:
            waiting[number] -= 1
            settled[number] += 1
            taken[number] = min(lines[number - 1], taken[number] + 1)
            spread.heard(number, State(taken[number], taken[number], settled[number]), 0.0)
        elif event == "end" and taken[number]:
            taken[number] -= 1
            spread.heard(number, State(taken[number], taken[number], settled[number]), 0.0)
        elif event == "crash":
            spread.down(number)
            spread.up(number, 0.0)
            waiting[number] = taken[number] = settled[number] = 0
        assert spread.load.num_taken == sum(taken.values())
        assert spread.load.num_taken + spread.load.num_free == sum(lines)
