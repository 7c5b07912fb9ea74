from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.media.telephone_event import MAX_DURATION, BadEvent, Presses, TelephoneEvent, parse
from wire.calls import KEYS

HZ = 8000
STEP = 400  # ticks of 50 ms


def payload(key: str, duration: int, *, ended: bool = False) -> bytes:
    return bytes([KEYS.index(key), (0x80 if ended else 0) | 10]) + duration.to_bytes(2, "big")


def press(key: str, since: int, num_steps: int = 3) -> list[tuple[bytes, int]]:
    """Every packet of one press, with its timestamp; the last of them three times."""
    told = [(payload(key, STEP * (n + 1)), since) for n in range(num_steps)]
    return told + 3 * [(payload(key, STEP * (num_steps + 1), ended=True), since)]


def heard(
    packets: list[tuple[bytes, int]], presses: Presses | None = None, *, ssrc: int = 1, clock_hz: int = HZ
) -> str:
    presses = presses or Presses()
    return "".join(presses.push(data, timestamp, ssrc, clock_hz) or "" for data, timestamp in packets)


def test_a_payload_is_read_as_the_standard_has_it() -> None:
    assert parse(bytes([11, 0x80 | 10, 0x03, 0x20])) == TelephoneEvent("#", True, -10, 800)
    assert parse(bytes([0, 0x40, 0, 160])) == TelephoneEvent("0", False, 0, 160)  # the reserved bit is ignored


@pytest.mark.parametrize("data", [b"", b"\1", b"\1\0\0", b"\1\0\0\0\0", b"\x10\0\0\0", b"\xff\xff\xff\xff"])
def test_what_is_no_key_is_counted_and_no_more(data: bytes) -> None:
    with pytest.raises(BadEvent):
        parse(data)
    presses = Presses()
    assert presses.push(data, 0, 1, HZ) is None
    assert (presses.take_num_bad(), presses.take_num_bad()) == (1, 0)
    assert heard(press("7", 100), presses) == "7"


def test_a_bad_payload_does_not_tell_what_it_holds() -> None:
    with pytest.raises(BadEvent) as caught:
        parse(b"\x10\x11\x12\x13")
    assert not any(digit in str(caught.value) for digit in ("16", "17", "18", "19", "10"))


def test_all_sixteen_keys_are_heard() -> None:
    assert heard([packet for n, key in enumerate(KEYS) for packet in press(key, 4000 * n)]) == KEYS


def test_the_same_key_twice_is_two_presses() -> None:
    assert heard(press("5", 0) + press("5", 2400)) == "55"


def test_a_late_end_of_the_press_before_is_no_press() -> None:
    first, second = press("1", 0), press("2", 2400)
    assert heard([*first[:3], second[0], *first[3:], *second[1:], second[0]]) == "12"


def test_a_press_that_comes_behind_a_later_one_is_left_out() -> None:
    assert heard([press("2", 2400)[0], *press("1", 0)]) == "2"


@pytest.mark.parametrize("late", [0, 2000])
def test_a_key_held_for_long_is_one_press(late: int) -> None:
    """At 48 kHz a segment ends after 1.4 s; some senders begin the next with the packet after that."""
    since, packets = 7, []
    for _ in range(4):
        packets += [(payload("9", duration), since) for duration in range(2400, MAX_DURATION, 2400)]
        packets.append((payload("9", MAX_DURATION), since))
        since += MAX_DURATION + late
    packets += 3 * [(payload("9", 4800, ended=True), since)]
    assert heard(packets, clock_hz=48000) == "9"


def test_a_press_as_long_behind_one_that_has_ended_is_another() -> None:
    assert heard(press("9", 0) + press("9", MAX_DURATION + 10)) == "99"


def test_a_sender_whose_clock_begins_anew_is_heard_again() -> None:
    presses = Presses()
    assert heard(press("1", 1_000_000), presses) == "1"
    assert heard(press("2", 5), presses) == "2"
    assert heard(press("3", 5), presses, ssrc=2) == "3"


@given(
    st.text(alphabet=KEYS, min_size=1, max_size=12),
    st.integers(0, (1 << 32) - 1),
    st.lists(st.integers(1, 4), min_size=12, max_size=12),
    st.integers(0, 2**32),
)
def test_each_press_is_told_once_however_its_packets_come(keys: str, since: int, steps: list[int], seed: int) -> None:
    """Lost but for one of each press, repeated, and swapped within the press and with the end of the one before."""
    rng, packets, at = random.Random(seed), [], since
    for key, num_steps in zip(keys, steps, strict=False):
        told = press(key, at % (1 << 32), num_steps)
        kept = rng.sample(told, rng.randint(1, len(told)))
        packets += kept + rng.choices(kept, k=rng.randint(0, 3))
        if rng.random() < 0.5:
            packets.append(rng.choice(packets))  # of any press so far
        at += STEP * (num_steps + 2)
    assert heard(packets) == keys


@given(st.lists(st.tuples(st.binary(max_size=9), st.integers(0, (1 << 32) - 1), st.integers(0, 3)), max_size=60))
def test_whatever_comes_is_a_key_or_nothing(packets: list[tuple[bytes, int, int]]) -> None:
    presses = Presses()
    told = [presses.push(data, timestamp, ssrc, HZ) for data, timestamp, ssrc in packets]
    assert all(key is None or (len(key) == 1 and key in KEYS) for key in told)
    assert presses.take_num_bad() + sum(key is not None for key in told) <= len(packets)
