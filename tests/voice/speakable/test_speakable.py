from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.voice.speakable.texts import TEXTS
from voice.speakable import speakable

SIGNS = re.compile(r"[*_`#|<>\[\]{}\\@/=~^→]|https?://|www\.\S|[0-9]")
LANGUAGES = st.sampled_from(["en", "ko", "de"])


@given(TEXTS, LANGUAGES)
def test_the_pieces_are_the_whole_of_what_was_written_and_is_spoken(written: str, language: str):
    made = speakable(written, language)

    assert "".join(piece.written for piece in made.pieces) == written
    assert "".join(piece.spoken for piece in made.pieces) == made.text


@given(TEXTS, LANGUAGES)
def test_what_is_spoken_is_spoken_as_it_is(written: str, language: str):
    spoken = speakable(written, language).text

    assert speakable(spoken, language).text == spoken


@given(TEXTS, st.sampled_from(["en", "ko"]))
def test_nothing_for_the_eye_is_left(written: str, language: str):
    spoken = speakable(written, language).text

    assert not SIGNS.search(spoken)
    assert not re.search("[\U0001f000-\U0001faff☀-➿\ufe0f\u200d]", spoken)


@given(st.text(st.sampled_from(list("abc éß,.!? \n'")), max_size=60))
def test_plain_words_stay_as_they_are(text: str):
    """Letters never get lost: of what has neither signs nor digits nothing is dropped but blanks and marks."""
    assert re.sub(r"\W", "", speakable(text, "de").text) == re.sub(r"\W", "", text)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("**Es kostet** 3,50 €. 😀", "Es kostet 3,50 €. "),
        ("Um 9:30 am 3.11.2026", "Um 9:30 am 3.11.2026"),
        ("- [Seite](https://x.de)\n", "Seite. "),
        ("Siehe https://www.x.de/a.", "Siehe x.de/a."),
        ("はい、**3時**です。", "はい、3時です。"),
    ],
)
def test_numbers_of_other_languages_are_left_to_the_voice(written: str, spoken: str):
    assert speakable(written, "de").text == spoken


@pytest.mark.parametrize(
    ("written", "language", "spoken"),
    [
        ("가격은 3,000원입니다.", "en", "가격은 삼천 원입니다."),
        ("It costs $3.50.", "ko", "It costs three dollars and fifty cents."),
        ("3, 4", "ko", "삼, 사"),
        ("3, 4", "en", "three, four"),
        ("iPhone 15 가격", "ko", "iPhone 십오 가격"),
    ],
)
def test_a_unit_in_another_language_than_the_call_is_said_in_its_own(written: str, language: str, spoken: str):
    assert speakable(written, language).text == spoken
