"""From text to the symbols of the voice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tts_engine.text.test_tokens import ANY_TEXT
from tts_engine.text import letters
from tts_engine.text.lexicon import Lexicon
from tts_engine.text.phonemes import MAX_PHRASE_SYMBOLS, phrases
from tts_engine.text.tokens import MAX_TOKEN_CHARACTERS
from tts_engine.vits.voice import VitsVoice

TABLE = """
hello|həlˈoʊ
Hello, world!|həlˈoʊ, wˈɜːld!
the car|ðə kˈɑːɹ
the apple|ði ˈæpəl
the hour|ði ˈaʊɚ
to eat|tʊ ˈiːt
to me|tə mˌiː
a man|ɐ mˈæn
an egg|ɐn ˈɛɡ
of course|ʌv kˈɔːɹs
I am|ˌaɪ æm
FBI|ˈɛf bˈiː ˈaɪ
NASA|nˈæsə
PCs|pˈiː sˈiːz
CEO's|sˈiː ˈiː ˈoʊz
HELLO|həlˈoʊ
cats|kˈæts
dogs|dˈɔːɡz
buses|bˈʌsᵻz
cities|sˈɪɾiz
John's|dʒˈɑːnz
the boys' toys|ðə bˈɔɪz tˈɔɪz
stopped|stˈɑːpt
waited|wˈeɪtᵻd
called|kˈɔːld
making|mˈeɪkɪŋ
running|ɹˈʌnɪŋ
unbooked|ʌnbˈʊkt
rebooked|ɹibˈʊkt
offhook|ˌɔːfhˈʊk
Wi-Fi|wˈaɪfˌaɪ
don’t|dˈoʊnt
we've|wiːv
3:30|θɹˈiː θˈɜːɾi
555-1234|fˈaɪv fˈaɪv fˈaɪv, wˈʌn tˈuː θɹˈiː fˈɔːɹ
$5|fˈaɪv dˈɑːlɚz
bird|bˈɜːd
water|wˈɔːɾɚ
good|ɡˈʊd
boy|bˈɔɪ
church|tʃˈɜːtʃ
judge|dʒˈʌdʒ
vision|vˈɪʒən
think|θˈɪŋk
happy|hˈæpi
idea|aɪdˈiːə
we|wiː
café|kæfˈeɪ
Monday|mˈʌndˌeɪ
Polish|pˈoʊlɪʃ
polish|pˈɑːlɪʃ
twenty-one|twˌɛntiwˈʌn
qwrtp|kjˈuː dˈʌbəljuː ˈɑːɹ tˈiː pˈiː
한국어|
😀|
"""


def spoken(text: str, lexicon: Lexicon) -> str:
    return " / ".join(phrase.symbols for phrase in phrases(text, lexicon))


@pytest.mark.parametrize(("text", "expected"), [row.split("|") for row in TABLE.strip().splitlines()])
def test_pronounced_as(lexicon: Lexicon, text: str, expected: str):
    assert spoken(text, lexicon) == expected


@settings(deadline=None)
@given(text=ANY_TEXT)
def test_any_text_gives_words_in_order_and_symbols_in_bounds(lexicon: Lexicon, text: str):
    at = 0
    for phrase in phrases(text, lexicon):
        assert phrase.words
        assert len(phrase.symbols) <= 2 * MAX_PHRASE_SYMBOLS
        symbol = 0
        for word in phrase.words:
            assert at <= word.start < word.end <= len(text)
            assert symbol <= word.first < word.last <= len(phrase.symbols)
            at, symbol = word.end, word.last


@pytest.mark.slow
@settings(deadline=None)
@given(text=ANY_TEXT)
def test_only_symbols_that_the_voice_has_come_out(lexicon: Lexicon, voice: VitsVoice, text: str):
    assert set(spoken(text, lexicon)) <= set(voice.symbols) | {"/"}


@pytest.mark.parametrize("text", ["W" * 300, "9" * 300, "http://" + "a-" * 200, "%" * 300, "wordy " * 200, "é" * 200])
def test_long_text_is_cut_into_phrases_that_a_voice_can_take(lexicon: Lexicon, text: str):
    found = phrases(text, lexicon)

    assert len(found) > 0
    assert all(len(phrase.symbols) <= MAX_PHRASE_SYMBOLS + 10 * MAX_TOKEN_CHARACTERS for phrase in found)


def test_marks_that_meet_are_one_the_stronger(lexicon: Lexicon):
    assert spoken("Really...?! Yes", lexicon) == "ɹˈiːəli? jˈɛs"
    assert spoken(", . hello", lexicon) == "həlˈoʊ"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("blorp", "blˈɔɹp"),
        ("zate", "zˈAt"),
        ("phlox", "flˈɑks"),
        ("knig", "nˈɪɡ"),
        ("thrunching", "θɹˈʌnʧɪŋ"),
        ("vation", "vˈAʃən"),
        ("", ""),
    ],
)
def test_unknown_words_are_read_by_rule(word: str, expected: str):
    assert letters.pronounce(word) == expected


@given(st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=30))
def test_any_word_can_be_read(word: str):
    sounds = letters.pronounce(word)

    assert sounds.count("ˈ") <= 1
