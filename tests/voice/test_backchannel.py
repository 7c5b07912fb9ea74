import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.backchannel import MAX_WORDS, PHRASES, Backchannels, asks
from voice.config import VoiceConfig
from wire.config import EdgeConfig
from wire.strict import Invalid


@pytest.mark.parametrize(
    ("language", "text", "is_one"),
    [
        ("en", "Mm-hm.", True),
        ("en", "Uh-huh, right.", True),
        ("en", "Yeah.", True),
        ("en", "I see.", True),
        ("en", "Okay, got it", True),
        ("en-GB", "All right!", True),
        ("en", "", True),
        ("en", "...", True),
        ("en", "Stop.", False),
        ("en", "No.", False),
        ("en", "Wait", False),
        ("en", "Yeah, but how much is it?", False),
        ("en", "I see you have a garden", False),
        ("en", "yeah yeah yeah yeah", False),
        ("en", "네", False),
        ("ko", "네.", True),
        ("ko", "네, 네.", True),
        ("ko", "아 네", True),
        ("ko", "그렇군요.", True),
        ("ko", "음...", True),
        ("ko", "아니요.", False),
        ("ko", "잠깐만요", False),
        ("ko", "네 그런데 얼마예요?", False),
        ("de", "Mhm.", True),
        ("de", "Ja.", False),
    ],
)
def test_words_that_only_tell_that_somebody_listens(language: str, text: str, is_one: bool):
    assert Backchannels(language).match(text) == is_one


def test_a_profile_adds_phrases_of_its_own():
    assert Backchannels("de", ("Ja", "genau so")).match("Ja. Genau so!")


@given(st.sampled_from(sorted(PHRASES)), st.data())
def test_every_phrase_is_one_however_it_is_written(language: str, data: st.DataObject):
    phrase = data.draw(st.sampled_from(PHRASES[language]))
    written = data.draw(st.sampled_from([phrase, phrase.upper(), f" {phrase}. ", f"{phrase}!", f'"{phrase}"']))
    assert Backchannels(language).match(written)


@given(st.text(max_size=40))
def test_more_words_than_a_few_are_none(text: str):
    assert not Backchannels("en").match(f"yeah {'word ' * MAX_WORDS}{text}")


@pytest.mark.parametrize(
    ("text", "is_question"),
    [("Is that right?", True), ('He asked: "Who?"', True), ("맞으세요？ ", True), ("Yes. It is.", False), ("", False)],
)
def test_a_question_is_told_by_its_mark(text: str, is_question: bool):
    assert asks(text) == is_question


@pytest.mark.parametrize("phrase", ["", "...", "one two three four"])
def test_what_can_be_no_backchannel_is_refused_in_a_profile(phrase: str):
    with pytest.raises(Invalid, match="backchannels"):
        VoiceConfig(EdgeConfig(port=0), *["http://127.0.0.1:1"] * 3, llm_model="m", backchannels=("roger that", phrase))
