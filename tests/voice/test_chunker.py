import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.chunker import MAX_FIRST_CHARACTERS, MAX_FIRST_WORDS, MAX_UNIT_CHARACTERS, Chunker, count_words


def chunks(*deltas: str) -> list[str]:
    chunker = Chunker()
    units = [unit for delta in deltas for unit in chunker.push(delta)]
    rest = chunker.finish()
    return units + ([rest] if rest else [])


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Yes, of course. I can help.", ["Yes, of course.", " I can help."]),
        ("Your order has shipped, and it arrives on Monday. Bye.",
         ["Your order has shipped,", " and it arrives on Monday.", " Bye."]),
        ("Dr. Smith is free at 3.50 today. Good?", ["Dr. Smith is free at 3.50 today.", " Good?"]),
        ("It costs $4.20, all in. Fine.", ["It costs $4.20,", " all in.", " Fine."]),
        ("Sure! Let me look.", ["Sure!", " Let me look."]),
        ("Hello", ["Hello"]),
        ("", []),
        ("네, 알겠습니다. 내일 배송됩니다.", ["네, 알겠습니다.", " 내일 배송됩니다."]),
        ("はい。分かりました。", ["はい。", "分かりました。"]),
    ],
)  # fmt: skip
def test_units_end_where_a_speaker_would_breathe(text: str, units: list[str]):
    assert chunks(*text) == units


def test_a_long_first_clause_is_cut_between_words():
    first = chunks(*"The quick brown fox jumps over the lazy dog near the river bank every day")[0]

    assert count_words(first) == MAX_FIRST_WORDS
    assert first.endswith(" ")


def test_text_without_spaces_is_cut_between_its_words():
    first = chunks(*"-".join(map(str, range(1, 60))))[0]

    assert first.endswith("-")
    assert len(first) <= MAX_FIRST_CHARACTERS


def test_due_gives_whole_words_of_the_first_unit_only():
    chunker = Chunker()
    chunker.push("I would be hap")

    assert chunker.due() == "I would be "
    chunker.push("py to help you")
    assert chunker.due() is None
    assert chunker.finish() == "happy to help you"


def test_due_has_nothing_to_give_before_the_first_whole_word():
    chunker = Chunker()
    chunker.push("Hel")

    assert chunker.due() is None


def test_due_waits_for_the_end_of_a_number():
    chunker = Chunker()
    chunker.push("555-12")

    assert chunker.due() is None


@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from([". ", ", ", "!", "\n", " ", "Dr.", "1.5", "。"]))))
def test_units_joined_are_the_input(deltas: list[str]):
    assert "".join(chunks(*deltas)) == "".join(deltas)


@given(st.text(alphabet=st.sampled_from("abc .,"), max_size=2000), st.integers(1, 50))
def test_units_are_bounded_and_do_not_depend_on_where_the_stream_was_cut(text: str, step: int):
    pieces = [text[i : i + step] for i in range(0, len(text), step)]

    assert all(len(unit) <= MAX_UNIT_CHARACTERS + step for unit in chunks(*pieces))
    assert chunks(*text) == chunks(*list(text))
