import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.endings import Ending, ending

ENGLISH = [
    ("I'd like to book a table for two.", "stop", "open"),
    ("I'd like to book a table for", "none", "hanging"),
    ("I want to.", "stop", "hanging"),
    ("My name is.", "stop", "hanging"),
    ("Can you send it to my", "none", "hanging"),
    ("Because I was, um,", "more", "hanging"),
    ("So I called and...", "more", "hanging"),
    ("It costs too much, because", "none", "hanging"),
    ("We'd", "none", "hanging"),
    ("There is no.", "stop", "hanging"),
    ("Well, let me see--", "more", "open"),
    ("Where is it from?", "stop", "open"),
    ("What time is it?", "stop", "open"),
    ("Yes.", "stop", "closing"),
    ("No.", "stop", "closing"),
    ("no thank you", "none", "closing"),
    ("That\N{RIGHT SINGLE QUOTATION MARK}s right.", "stop", "closing"),
    ("Four five one", "none", "open"),
]
KOREAN = [
    ("예약하고 싶어요.", "stop", "closing"),
    ("내일 가겠습니다", "none", "closing"),
    ("몇 시에 문을 여나요?", "stop", "closing"),
    ("언제 도착합니까", "none", "closing"),
    ("제가 갈까", "none", "closing"),
    ("그렇죠", "none", "closing"),
    ("날씨가 좋네", "none", "closing"),
    ("네", "none", "closing"),
    ("내일 예약하고", "none", "hanging"),
    ("제가 전화했는데", "none", "hanging"),
    ("시간이 없어서.", "stop", "hanging"),
    ("괜찮으면,", "more", "hanging"),
    ("주문했지만", "none", "hanging"),
    ("비가 오니까", "none", "hanging"),
    ("저는", "none", "hanging"),
    ("비밀번호가", "none", "hanging"),
    ("계좌를", "none", "hanging"),
    ("서울에", "none", "hanging"),
    ("음", "none", "hanging"),
    ("그러니까 그", "none", "hanging"),
    ("서울", "none", "open"),
]


@pytest.mark.parametrize(("text", "mark", "last_word"), ENGLISH)
def test_english(text: str, mark: str, last_word: str):
    found = ending(text, "en-US")

    assert (found.mark, found.last_word) == (mark, last_word)


@pytest.mark.parametrize(("text", "mark", "last_word"), KOREAN)
def test_korean(text: str, mark: str, last_word: str):
    found = ending(text, "ko")

    assert (found.mark, found.last_word) == (mark, last_word)


@pytest.mark.parametrize("text", ["The big dog", "Two tickets to Boston.", "Your account number"])
def test_few_words_without_a_verb_are_a_fragment(text: str):
    assert ending(text, "en").is_fragment


@pytest.mark.parametrize(
    "text", ["Hello there.", "Good morning.", "I lost my card.", "Yes, tomorrow.", "My", "Where to?"]
)
def test_these_are_none(text: str):
    assert not ending(text, "en").is_fragment


def test_a_language_without_word_lists_has_marks_only():
    assert ending("Ich möchte und", "de") == Ending("none", "open", 3)


def test_nothing_recognised_says_nothing():
    assert ending(" ... ", "en") == Ending("none", "open", 0)


@given(st.text(max_size=60), st.sampled_from(["en", "ko", "fr", "xx"]))
def test_any_text_has_an_ending(text: str, language: str):
    assert ending(text, language).num_words >= 0
