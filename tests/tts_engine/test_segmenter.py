"""Text deltas to units: nothing lost, nothing reordered, the same units however the text arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.segmenter import MAX_UNIT_CHARACTERS, Segmenter, Unit

# Text with many marks, so that ends are found often.
TEXT = st.text(st.sampled_from(list("abN no.Dr.!?,;:\n\"')…。 3 5")) | st.characters(), max_size=900)


def units(*deltas: str) -> list[Unit]:
    segmenter = Segmenter()
    found = [unit for delta in deltas for unit in segmenter.push(delta)]
    last = segmenter.flush()
    return [*found, *([last] if last else [])]


@given(st.lists(TEXT, max_size=8))
def test_units_joined_are_the_text_and_know_their_place(deltas: list[str]):
    found = units(*deltas)

    assert "".join(unit.text for unit in found) == "".join(deltas)
    at = 0
    for unit in found:
        assert unit.start == at
        at += len(unit.text)


@given(st.lists(TEXT, max_size=8))
def test_no_unit_is_empty_or_too_long(deltas: list[str]):
    assert all(0 < len(unit.text) <= MAX_UNIT_CHARACTERS for unit in units(*deltas))


@given(TEXT, st.integers(1, 40))
def test_units_do_not_depend_on_how_the_text_was_cut(text: str, size: int):
    assert units(*(text[i : i + size] for i in range(0, len(text), size))) == units(text)


@given(TEXT, TEXT)
def test_flush_leaves_nothing_behind(before: str, after: str):
    segmenter = Segmenter()
    segmenter.push(before)
    segmenter.flush()

    assert segmenter.flush() is None
    assert units(after) == [Unit(u.text, u.start - len(before)) for u in _then(segmenter, after)]


def _then(segmenter: Segmenter, text: str) -> list[Unit]:
    found, last = segmenter.push(text), segmenter.flush()
    return [*found, *([last] if last else [])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs 3.50 now. Good.", ["It costs 3.50 now.", " Good."]),
        ("Dr. Smith is in. Yes.", ["Dr. Smith is in.", " Yes."]),
        ("Bring fruit, e.g. apples. Or not.", ["Bring fruit, e.g. apples.", " Or not."]),
        ("Flights to the U.S. are full. Sorry.", ["Flights to the U.S. are full.", " Sorry."]),
        ("J. Smith called. Twice.", ["J. Smith called.", " Twice."]),
        ("See No. 5 there. No. Not that.", ["See No. 5 there.", " No.", " Not that."]),
        ("Really?! Yes!", ["Really?!", " Yes!"]),
        ('He said "no." Then he left.', ['He said "no."', " Then he left."]),
        ("one\ntwo", ["one\n", "two"]),
        ("At 3 p.m. we close", ["At 3 p.m. we close"]),
        ("visit example.com today", ["visit example.com today"]),
        ("Wait... what?", ["Wait...", " what?"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]):
    assert [unit.text for unit in units(text)] == expected


def test_a_sentence_end_waits_for_the_blank_behind_it():
    segmenter = Segmenter()

    assert segmenter.push("It costs 3.") == []
    assert segmenter.push("50 today.") == []
    assert [u.text for u in segmenter.push(" Yes")] == ["It costs 3.50 today."]


def test_a_long_sentence_is_cut_at_a_clause_then_at_a_blank_then_anywhere():
    clause = "word " * 30 + "here, "
    found = units(clause + "more " * 40)
    assert found[0].text == clause.rstrip()
    assert units("word " * 60)[0].text == "word " * 40
    assert units("x" * 500)[0].text == "x" * MAX_UNIT_CHARACTERS
