from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.alignment import HeardWord, closest_run, plain, reply_begins_at, word_error_rate

SORRY = "I'm sorry for your loss, but I can help."


def heard(text: str) -> list[HeardWord]:
    return [HeardWord(word, float(i), i + 0.5) for i, word in enumerate(text.split())]


@pytest.mark.parametrize(
    ("spoken", "reply", "begins_at"),
    [
        ("We open at nine tomorrow", "We open at nine tomorrow.", 0),
        ("One moment please. We open at nine", "We open at nine tomorrow.", 3),
        ("One moment please. The open at nine", "We open at nine tomorrow.", 3),  # its first word was misheard
        ("One moment. Oh, Levi Bennett, that's a", "Olavie Bennett. That's a wonderful name", 2),  # a word heard as two
        ("One moment. Thats ahyd good idea", "That's a hid good idea.", 2),  # two heard as one, and one otherwise
        ("L'Alma, Peru.", "Lima, Peru.", 0),  # a short answer, half of it misheard
        ("open at nine", "We open at nine tomorrow.", 0),  # its first word was not heard
        ("One moment please, it takes a little longer. I", "I am sorry to hear that.", None),  # cut off after a letter
        ("It's Team flight. You're experiencing a bit", "That's unfortunate. It seems you're experiencing a bit", 0),
        ("Being turned. Welcome to Paris. I'm here", "Bien s\u00fbr, welcome to Paris! I'm here to help", 0),
        ("Vileman Paris. Waff France, voila! I am your", "L'Alma: Paris, la France... (l\u00e0-l\u00e0) I am your", 0),
        ("One moment. Being turned. Welcome to Paris", "Bien s\u00fbr, welcome to Paris! I'm here to help", 2),
        ("Hm. Welcome to Paris. I'm here", "Welcome to Paris! I'm here to help", 1),
        ("And Sorry for your laws. But I can help. I'm sorry for your loss. But", f"{SORRY} {SORRY}", 0),  # said twice
        ("One moment. And Sorry for your laws. But I can help. I'm sorry for your loss.", f"{SORRY} {SORRY}", 2),
        ("I'm", "I'm happy to assist you.", 0),  # interrupted after a word
        ("Oh", "I'm happy to assist you.", None),
        ("Hm. Yes.", "Yes.", 1),
        ("I'm sorry. Sorry. Sounds like. No. No.", "No", 5),
        ("One moment please.", "We open at nine tomorrow.", None),
        ("", "We open at nine.", None),
        ("We open", "", None),
    ],
)
def test_a_filler_is_no_part_of_the_reply(spoken: str, reply: str, begins_at: int | None) -> None:
    assert reply_begins_at(heard(spoken), reply) == begins_at


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=8))
def test_a_reply_that_was_heard_as_it_is_begins_at_once(words: list[str]) -> None:
    text = " ".join(words)
    assert reply_begins_at(heard(text), text) == 0


@pytest.mark.parametrize(
    ("reference", "hypothesis", "rate"),
    [
        ("One two three.", "one two three", 0.0),
        ("one two", "one", 0.5),
        ("I don't know", "i don’t know", 0.0),
        ("he said yes", "he said 'yes'", 0.0),
        ("caf\u00e9 \uac00", "cafe\u0301 \u1100\u1161", 0.0),
        ("", "", 0.0),
        ("", "one", 1.0),
        ("a", "", 1.0),
    ],
)
def test_word_errors_count_edits(reference: str, hypothesis: str, rate: float) -> None:
    assert word_error_rate(reference, hypothesis) == rate


@pytest.mark.parametrize(
    ("text", "heard", "errors", "run"),
    [
        ("Thank you, goodbye.", "well thank you goodbye then", 0.0, "thank you goodbye"),
        ("are you still there", "Are you steel there?", 0.25, "are you steel there"),
        ("one two three", "one three", 1 / 3, "one three"),
        ("one two", "one uh two", 0.5, "one"),
        ("one two", "three four", 1.0, ""),
        ("one two", "", 1.0, ""),
    ],
)
def test_the_closest_run_of_words_is_found_wherever_it_stands(text: str, heard: str, errors: float, run: str) -> None:
    assert closest_run(text, heard.split()) == (pytest.approx(errors), run)


words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6)


@given(words.filter(bool), words)
def test_the_closest_run_has_the_fewest_edits_of_all_runs(text: list[str], heard: list[str]) -> None:
    runs = [heard[i:j] for i in range(len(heard) + 1) for j in range(i, len(heard) + 1)]
    least = min(word_error_rate(" ".join(text), " ".join(run)) for run in runs)
    errors, found = closest_run(" ".join(text), heard)
    assert errors == pytest.approx(least)
    assert word_error_rate(" ".join(text), found) == pytest.approx(least)
    assert plain(found) == [] or any(run == plain(found) for run in runs)
