from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voice.keypad import EVERY_S, PAUSE_S, Keypad, told
from wire.calls import KEYS, MAX_DIGITS


def pressed(*digits: str) -> Keypad:
    keypad = Keypad()
    for number, each in enumerate(digits):
        keypad.press(each, 10 + 0.3 * number)
    return keypad


def test_the_square_ends_a_number_at_once_and_is_no_part_of_it() -> None:
    keypad = pressed("1", "2", "3", "#")
    assert keypad.take(10.9) == ["123"]
    assert not keypad.is_open
    assert keypad.take(20) == []


def test_a_number_without_a_square_ends_some_time_after_its_last_key() -> None:
    keypad = pressed("1", "2")
    assert keypad.take(10.3 + PAUSE_S - 0.01) == []
    assert keypad.is_open
    assert keypad.take(10.3 + PAUSE_S) == ["12"]
    assert not keypad.is_open


def test_a_square_alone_is_what_was_meant() -> None:
    assert pressed("#").take(10) == ["#"]
    assert pressed("12##").take(10) == ["12", "#"]
    assert pressed("*").take(10 + PAUSE_S) == ["*"]


def test_a_number_under_way_is_waited_for_by_the_one_before() -> None:
    keypad = pressed("12#3")
    assert keypad.take(10) == []
    keypad.press("4#", 11)
    assert keypad.take(11) == ["12", "34"]


def test_what_is_too_long_keeps_its_beginning() -> None:
    keypad = pressed("1" * MAX_DIGITS + "22", "3", "#")
    assert keypad.take(11) == ["1" * MAX_DIGITS]


def test_entries_come_no_faster_than_anybody_presses_keys() -> None:
    keypad = pressed("#")
    assert keypad.take(10) == ["#"]
    keypad.press("#", 10.01)
    keypad.press("#", 10.02)
    assert keypad.take(10.02) == []
    assert keypad.is_open
    assert keypad.take(10 + EVERY_S) == ["#", "#"]


def test_digits_are_told_one_by_one() -> None:
    assert told(["123"]) == "[The caller keyed in: 1 2 3]"
    assert told(["12", "#"]) == "[The caller keyed in: 1 2, then #]"


@given(st.lists(st.tuples(st.floats(0, 3), st.text(alphabet=KEYS, max_size=6)), max_size=40))
def test_no_key_is_lost_but_those_beyond_the_bound_and_none_is_kept_for_long(presses: list[tuple[float, str]]) -> None:
    keypad, now, taken, takes = Keypad(), 0.0, "", 0
    for wait_s, digits in presses:
        now += wait_s
        entries = keypad.take(now)
        takes += bool(entries)
        taken += "".join(entries)
        assert all(0 < len(entry) <= MAX_DIGITS for entry in entries)
        keypad.press(digits, now)
    taken += "".join(keypad.take(now + PAUSE_S + EVERY_S))
    assert not keypad.is_open
    assert takes <= 1 + now / EVERY_S
    sent = "".join(digits for _, digits in presses)
    if len(sent) <= MAX_DIGITS:
        assert taken.replace("#", "") == sent.replace("#", "")
