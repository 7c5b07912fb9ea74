from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.clients.tts import Audio, TtsClient
from voice.mouth import Mouth, _with_marks
from voice.playout import Playout
from wire import calls, speak

RATE_HZ = 8000


def as_written(text: str) -> list[str]:
    return [text[slice(*_with_marks(text, *match.span()))] for match in re.finditer(r"[^\W_]+(?:'\w+)*", text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, you there!", ["Hello,", "you", "there!"]),
        ('He said: "Don\'t (ever)."', ["He", "said:", "\"Don't", '(ever)."']),
        ("a well-known plan", ["a", "well-", "known", "plan"]),
        ("At 3:30 it costs $5 - or so...", ["At", "3:", "30", "it", "costs", "$5", "or", "so..."]),
        ("", []),
    ],
)
def test_words_keep_the_punctuation_that_touches_them(text: str, words: list[str]) -> None:
    assert as_written(text) == words


def test_offsets_beyond_the_text_do_no_harm() -> None:
    assert _with_marks("Hello.", 90, 95) == (6, 6)
    assert _with_marks("Hello.", 0, 95) == (0, 6)


@given(st.text(alphabet="ab1 .,'\"-(é", max_size=30))
def test_no_character_of_a_text_is_told_twice(text: str) -> None:
    joined = "".join(as_written(text)).replace(" ", "")
    rest = iter(text.replace(" ", ""))
    assert all(char in rest for char in joined)  # a subsequence


class Told:
    """A mouth without a voice, and what it says of the words that a voice would report."""

    def __init__(self, language: str = "en") -> None:
        async def ignore(_: object) -> None:
            pass

        tts = TtsClient("http://127.0.0.1:1", key=None, call="c", voice=None, on_event=ignore, on_lost=lambda: None)
        tts.sample_rate_hz = RATE_HZ
        self.words: list[calls.Word] = []
        self.samples: list[speak.Word] = []  # all that the voice reported
        self.playout = Playout(RATE_HZ, 0.1)
        self.mouth = Mouth(
            tts,
            self.playout,
            post=lambda payload, _: self.words.extend(payload.words) if isinstance(payload, calls.Words) else None,
            on_audio=lambda _: None,
            on_audible=lambda *_: None,
            on_said=lambda *_: None,
            language=language,
        )
        self.utterance = self.mouth.begin("answer", 1)

    async def speak(self, *units: str, at_once: bool) -> None:
        """Every word sounds for a second; a voice reports the words of a unit at once, or one by one."""
        for unit in units:
            begin = len(self.utterance.script.spoken)
            spoken = self.utterance.script.add(unit)
            words = [
                speak.Word(match[0], 0, 0, begin + match.start(), begin + match.end())
                for match in re.finditer(r"[\w']+", spoken)
            ]
            for reported in [words] if at_once else [[word] for word in words]:
                second = len(self.samples)
                timed = [
                    speak.Word(w.text, (second + i) * RATE_HZ, (second + i + 1) * RATE_HZ, w.start_char, w.end_char)
                    for i, w in enumerate(reported)
                ]
                self.samples += timed
                await self.mouth.on_event(speak.Words(self.utterance.number, tuple(timed)))
                await self.mouth.on_event(Audio(self.utterance.number, np.ones(len(timed) * RATE_HZ, np.int16)))


@pytest.mark.parametrize("at_once", [True, False])
async def test_words_are_told_as_written_however_they_are_spoken(*, at_once: bool) -> None:
    told = Told()
    await told.speak("It costs **$3.50**,", " [here](http://x.com/a) at 9:30.", at_once=at_once)

    assert [word.text for word in told.words] == ["It", "costs", "**$3.50**,", "[here](http://x.com/a)", "at", "9:30."]
    assert told.utterance.text == "It costs **$3.50**, [here](http://x.com/a) at 9:30."
    assert told.utterance.script.spoken == "It costs three dollars and fifty cents, here at nine thirty."


async def test_what_was_written_is_told_once() -> None:
    told = Told()
    await told.speak("It's ~20 minutes, from 9 a.m.–5 p.m., well-known.", at_once=True)

    assert "".join(word.text for word in told.words).replace(" ", "") == told.utterance.text.replace(" ", "")


async def test_a_written_word_sounds_from_the_first_to_the_last_of_its_spoken_ones() -> None:
    told = Told()
    await told.speak("It costs $3.50 now.", at_once=True)

    assert [(w.start_sample // RATE_HZ, w.end_sample // RATE_HZ) for w in told.words] == [
        (0, 1),
        (1, 2),
        (2, 7),
        (7, 8),
    ]


async def test_nothing_is_owed_once_all_that_is_spoken_has_come() -> None:
    told = Told()
    await told.speak("See [us](https://example.com).", " 😀", at_once=True)

    assert not told.utterance.is_owed


async def test_what_was_heard_is_what_was_written() -> None:
    told, now = Told("ko"), 100.0
    await told.speak("가격은 3,000원입니다.", " 내일 오세요.", at_once=True)

    heard = [""]
    for tick in range(400):
        while told.playout.take(now + tick / 50, more_comes=True) is not None:
            pass
        if (so_far := told.mouth.heard(now + tick / 50)) != heard[-1]:
            heard.append(so_far)
    assert heard == ["", "가격은", "가격은 3,000원입니다", "가격은 3,000원입니다. 내일", told.utterance.text[:-1]]
