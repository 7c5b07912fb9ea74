"""A unit of text to audio with word times, and whether a recogniser understands it."""

from __future__ import annotations

import numpy as np
import pytest

from load.alignment import word_error_rate
from stt.whisper import Whisper
from tests.speech import RATE_HZ
from tts_engine.segmenter import Unit
from tts_engine.speaking import Chunk, Speaker
from tts_engine.vits.silence import LEAD_S, TAIL_S
from voice.media.resample import Resampler
from wire.pcm import to_float
from wire.speak import Word

pytestmark = pytest.mark.slow

# Said by call centres. Written as Whisper writes, so that numbers do not count as errors.
SENTENCES = (
    "Thank you for calling. How can I help you today?",
    "Your appointment is on Monday morning.",
    "I would like to change my delivery address, please.",
    "The total comes to $42.50, including tax.",
    "Can you hold the line for a moment?",
    "Could you please spell your last name for me?",
    "I'm sorry to hear that. Let me check your account.",
    "Your package will arrive tomorrow morning.",
    "Is there anything else I can do for you?",
    "The technician will call you back within an hour.",
    "Which credit card would you like to use?",
    "He said the machine was broken before it arrived.",
)
MAX_MEAN_WER = 0.05  # measured: 0.00; the seeds are fixed, so only the code can change it
MAX_MEDIAN_APART_S = 0.08  # measured: 0.04; the recogniser's own times are good to about that


def speak(speaker: Speaker, text: str) -> list[Chunk]:
    return list(speaker.speak(Unit(text, 0), index=0, first_sample=0, seed=1, speed=1.0))


def words_of(chunks: list[Chunk]) -> list[Word]:
    return [word for chunk in chunks for word in chunk.words]


def audio_of(chunks: list[Chunk]) -> np.ndarray:
    return np.concatenate([chunk.pcm for chunk in chunks])


@pytest.mark.parametrize("text", SENTENCES)
def test_word_times_are_in_order_inside_the_audio_and_plausible(speaker: Speaker, text: str):
    chunks = speak(speaker, text)
    words, rate_hz = words_of(chunks), speaker.sample_rate_hz

    assert [word.text for word in words] == [w.strip(".,?") for w in text.split()]
    for word, following in zip(words, [*words[1:], None], strict=True):
        seconds = (word.end_sample - word.start_sample) / rate_hz
        assert 0.04 < seconds < 0.5 + 0.25 * len(word.text)
        assert word.end_sample <= (following.start_sample if following else audio_of(chunks).size)


def test_word_times_are_where_the_sound_is(speaker: Speaker):
    """Between two sentences there is a pause, and it lies between their words."""
    chunks = speak(speaker, "Hello. Goodbye.")
    [hello, goodbye], audio = words_of(chunks), to_float(audio_of(chunks))

    def level(start: int, end: int) -> float:
        return float(np.sqrt(np.mean(np.square(audio[start:end]))))

    middle = (hello.end_sample + goodbye.start_sample) // 2
    quiet = level(middle - 400, middle + 400)
    assert level(hello.start_sample, hello.end_sample) > 5 * quiet
    assert level(goodbye.start_sample, goodbye.end_sample) > 5 * quiet


def test_silence_at_the_ends_is_bounded(speaker: Speaker):
    for text in SENTENCES:
        audio = to_float(audio_of(speak(speaker, text)))
        audible = np.flatnonzero(np.abs(audio) >= 0.02)
        assert audible[0] / speaker.sample_rate_hz <= LEAD_S + 0.001
        assert (audio.size - audible[-1]) / speaker.sample_rate_hz <= TAIL_S + 0.05  # more only where a word lasts


def test_times_and_characters_go_on_from_where_the_unit_begins(speaker: Speaker):
    here = words_of(speak(speaker, "Good morning."))
    there = words_of(list(speaker.speak(Unit("Good morning.", 50), index=0, first_sample=7000, seed=1, speed=1.0)))

    assert [(w.start_sample + 7000, w.start_char + 50) for w in here] == [(w.start_sample, w.start_char) for w in there]


def test_an_expansion_is_one_word(speaker: Speaker):
    words = words_of(speak(speaker, "At 3:30 p.m. sharp."))

    assert [(w.text, w.start_char, w.end_char) for w in words] == [
        ("At", 0, 2),
        ("3:30 p.m.", 3, 12),
        ("sharp", 13, 18),
    ]


def test_the_voice_is_loud_enough_and_does_not_clip(speaker: Speaker):
    audio = to_float(audio_of(speak(speaker, SENTENCES[0])))
    peak, level = np.abs(audio).max(), np.sqrt(np.mean(np.square(audio)))

    assert 0.1 < peak < 0.99
    assert 0.02 < level < 0.3


def test_a_text_of_one_endless_word_is_spoken(speaker: Speaker):
    words = words_of(speak(speaker, "ha" * 100))

    assert words[0].start_char == 0
    assert words[-1].end_char == 200


def test_a_recogniser_understands_it_and_hears_the_words_when_they_are_said(speaker: Speaker, recogniser: Whisper):
    rates, apart_s = [], []
    for text in SENTENCES:
        chunks = speak(speaker, text)
        heard = recogniser.transcribe(to_16_khz(speaker, audio_of(chunks)), "en", with_words=True)
        said = words_of(chunks)
        rates.append(word_error_rate(text, heard.text))
        if heard.words is not None and len(heard.words) == len(said):
            starts = [
                (a.start_sample / speaker.sample_rate_hz, b.start_sample / RATE_HZ)
                for a, b in zip(said, heard.words, strict=True)
            ]
            apart_s += [abs(ours - theirs) for ours, theirs in starts]

    assert len(apart_s) > 50
    assert np.median(apart_s) < MAX_MEDIAN_APART_S
    assert np.mean(rates) <= MAX_MEAN_WER, dict(zip(SENTENCES, rates, strict=True))


def to_16_khz(speaker: Speaker, pcm: np.ndarray) -> np.ndarray:
    resampler = Resampler(speaker.sample_rate_hz, RATE_HZ)
    return np.concatenate([resampler.push(pcm), resampler.flush()])
