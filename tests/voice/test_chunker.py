from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.voice.speakable.texts import PARTS
from voice.chunker import MAX_FIRST_CHARACTERS, MAX_FIRST_WORDS, MAX_UNIT_CHARACTERS, Chunker, count_words

WORDS = [
    "Hello there",
    "and",
    "the ",
    "of ",
    "because ",
    "Mon",
    "day ",
    "longer sentence here ",
    "하고 ",
    "합니다.",
    "다. ",
]
MARKS = [
    "p.m. ",
    "p.m. Mo",
    "etc. ",
    "No. ",
    "3. ",
    "2026. ",
    "30, ",
    "Nov. ",
    "(e.g. ",
    '"',
    "「",
    "」",
    "—",
    " - ",
    "... ",
]
ENDS = ["! ", "? ", ", ", ". ", "지만 ", "です。", "、", " ", "\n"]
STREAMS = st.lists(st.sampled_from([*PARTS, *WORDS, *MARKS, *ENDS]) | st.text(max_size=3), max_size=40)


def chunks(*deltas: str) -> list[str]:
    chunker = Chunker()
    units = [unit for delta in deltas for unit in chunker.push(delta)]
    rest = chunker.finish()
    return units + ([rest] if rest else [])


@pytest.mark.parametrize(
    "units",
    [
        ["Yes, of course.", " I can help."],
        ["Your order has shipped,", " and it arrives on Monday.", " Bye."],
        ["Sure!", " Let me look."],
        ["Hello"],
        [],
        ["😀 Sure!", " I can help."],
        # Never within a number, a time, a date, an amount, an address.
        ["Dr. Smith is free at 3.50 today.", " Good?"],
        ["It costs $4.20,", " all in.", " Fine."],
        ["It is 1,234.50,", " or 2 1/2."],
        ["Yes.", " We are open from 9:30 a.m. to 5 p.m. Monday to Friday.", " Anything else?"],
        ["We close at 5 p.m.", " Then we go."],
        ["Come on November 30, 2026,", " at noon.", " Bye."],
        ["See https://example.com/a.b?c=1.", " Or mail me@example.com.", " Bye."],
        ["Call (555) 123-4567,", " please."],
        # Never within an abbreviation, initials, an ellipsis.
        ["Use No. 5 e.g. for tea.", " No.", " Not that."],
        ["The U.S. Government pays etc. for it.", " That is all."],
        ["John F. Kennedy and J. K. Rowling,", " I think.", " So do I.", " Plan B.", " Bye."],
        ["Well...", " Hmm... maybe not.", " Wait...", " What?"],
        # Never within a quotation or bracket.
        ["He said,", ' "Stop. Wait here."', " Then he left (to St. Paul. Nice place).", " OK."],
        # A line, a list item, is a unit.
        ["Here they are:", "\n\n1. **Basic** - $10 a month\n", "2. Pro\n", "\nWhich one?"],
        ["- Tea and milk\n", "- Coffee.", " With milk.", "\n"],
        ["```bash\npip install it\n", "```\nThen run it.", " Bye."],
        # Korean: a clause ending, then sentences, with or without blanks between.
        ["네, 알겠습니다.", " 내일 배송됩니다."],
        ["주문하신 상품이 출고되었지만", " 배송은 3시에 됩니다.", "감사합니다."],
        ["확인해 보겠습니다!", " 3,000원입니다.", " 맞나요?"],
        # Chinese and Japanese.
        ["はい。", "分かりました。"],
        ["您的订单已经发货，", "明天送达。", "还有吗？"],
        ["「はい。いいえ。」", "です。"],
    ],
)
def test_units_end_where_a_speaker_would_breathe(units: list[str]):
    assert chunks(*"".join(units)) == units


def test_a_long_first_clause_is_cut_between_words():
    first = chunks(*"The quick brown fox jumps over the lazy dog near the river bank every day")[0]

    assert count_words(first) == MAX_FIRST_WORDS
    assert first.endswith(" ")


def test_a_long_first_clause_leaves_no_word_hanging():
    first = chunks(*"I would be very happy to help you with the booking of a table")[0]

    assert first == "I would be very happy to help "


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Your table for four people is booked for 7 p.m. tomorrow then", "Your table for four people is booked "),
        ("Please come to us on the morning of Nov 30 or so", "Please come to us on the morning "),
        ("It takes us about one day and 2 1/2 hours to do", "It takes us about one day "),
        ("You may now ask one of us for Dr. Kim please", "You may now ask one of us "),
        (
            "내일 오후 세 시에 고객님 댁으로 담당 기사님이 직접 방문하실 예정입니다",
            "내일 오후 세 시에 고객님 댁으로 담당 기사님이 직접 방문하실 ",
        ),
    ],
)
def test_a_long_first_clause_keeps_together_what_is_said_as_one(text: str, first: str):
    assert chunks(*text)[0] == first


def test_a_long_sentence_is_cut_at_a_clause_else_before_a_conjunction():
    clause, conjunction = " word" * 12 + ",", " word" * 14
    opening = "Yes."

    assert chunks(*(opening + clause + " word" * 30))[1] == clause
    assert chunks(*(opening + conjunction + " because" + " word" * 30))[1] == conjunction + " "


def test_text_without_spaces_is_cut_between_its_words():
    first = chunks(*"-".join(map(str, range(1, 60))))[0]

    assert first.endswith("-")
    assert len(first) <= MAX_FIRST_CHARACTERS


def test_a_long_address_stays_whole():
    address = "https://example.com/" + "a-long/path-" * 6 + "end"

    assert chunks(*f"{address} is where. Bye.") == [f"{address} is where.", " Bye."]


def test_due_gives_whole_words_of_any_unit():
    chunker = Chunker()
    chunker.push("I would be hap")

    assert chunker.due() == "I would be "
    chunker.push("py to help you")
    assert chunker.due(4) is None
    assert chunker.due(3) == "happy to help "
    assert chunker.finish() == "you"


@pytest.mark.parametrize("text", ["Hel", "555-12", "😀 ", "**", "1. ", "Dr. K", "$", "한국"])
def test_due_has_nothing_to_give_before_the_first_whole_word(text: str):
    chunker = Chunker()
    chunker.push(text)

    assert chunker.due() is None


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("You can come at 3:30 p", "You can come "),
        ("You can come at 3:30 p.m. or", "You can come at 3:30 p.m. "),
        ("It opens on Nov. 3", "It opens on "),
        ("Ask for Dr. Ki", "Ask for "),
        ("It is 5 km to", "It is 5 km "),
        ("It is 5 k", "It is "),
        ("That would be the be", "That would be the "),
        ("You want the be", "You want the "),
        ("I can help you with the sec", "I can help "),
        ("주문하신 상품은 3", "주문하신 상품은 "),
    ],
)
def test_due_keeps_together_what_is_said_as_one(text: str, unit: str):
    chunker = Chunker()
    chunker.push(text)

    assert chunker.due() == unit


@given(STREAMS, st.sets(st.integers(0, 40)))
def test_units_joined_are_the_input_whenever_time_is_up(deltas: list[str], due: set[int]):
    chunker, units = Chunker(), list[str]()
    for i, delta in enumerate(deltas):
        units += chunker.push(delta)
        if i in due and (unit := chunker.due()) is not None:
            units.append(unit)
    assert "".join([*units, chunker.finish() or ""]) == "".join(deltas)
    assert all(any(map(str.isalnum, unit)) or len(unit) >= MAX_FIRST_CHARACTERS for unit in units)


@given(STREAMS)
def test_units_are_bounded_and_do_not_depend_on_where_the_stream_was_cut(deltas: list[str]):
    units = chunks(*deltas)

    assert units == chunks(*"".join(deltas))
    assert all(len(unit) <= MAX_UNIT_CHARACTERS for unit in units[:-1])


def test_a_first_unit_that_is_due_has_the_words_that_are_asked_for():
    chunker = Chunker()
    chunker.push("Sorry we")
    assert chunker.due(2) is None
    chunker.push(" are")
    assert chunker.due(2) == "Sorry we "


def test_a_unit_that_is_due_is_not_cut_shorter_than_was_asked_for():
    chunker = Chunker()
    chunker.push('The "big house on ')

    assert chunker.due(2) != "The "
