from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np
import pytest

from load.alignment import plain, word_error_rate
from stt.recognition import Model, Models, join
from stt.schedule import Priority
from stt.whisper import Transcript
from stt.words import Word
from tests.speech import RATE_HZ, clip, silence
from wire.errors import DeadlineExceeded, PeerError


@pytest.fixture
async def model(models: Models) -> AsyncIterator[Model]:
    [tiny] = [model for model in models.all if model.id == "whisper-tiny.en"]
    async with tiny.pool.running():
        yield tiny


def soon(left_s: float = 30) -> float:
    return time.monotonic() + left_s


def test_pieces_join_with_their_words_moved() -> None:
    first = Transcript("Hello", "en", (Word("Hello", 10, 20),), -0.1, 0.2)
    second = Transcript("world.", "en", (Word("world.", 5, 9),), -0.4, 0.1)
    whole = join([(0, first), (1000, second)], "en")
    assert whole.text == "Hello world."
    assert whole.words == (Word("Hello", 10, 20), Word("world.", 1005, 1009))
    assert (whole.mean_logprob, whole.no_speech_prob) == (-0.4, 0.2)


def test_scripts_without_spaces_join_without_spaces() -> None:
    assert join([(0, Transcript("世", "ja")), (9, Transcript("界", "ja"))], "ja").text == "世界"


def test_silence_at_the_start_does_not_decide_the_language() -> None:
    whole = join([(0, Transcript("", "en", ())), (5, Transcript("世", "ja")), (9, Transcript("界", "ja"))], "en")
    assert (whole.text, whole.language) == ("世界", "ja")


def test_words_of_one_piece_that_are_unknown_make_all_unknown() -> None:
    assert join([(0, Transcript("a", "en", ())), (9, Transcript("b", "en", None))], "en").words is None


def test_no_audio_is_an_empty_transcript() -> None:
    assert join([], "de") == Transcript("", "de", ())


@pytest.mark.slow
async def test_speech_longer_than_the_models_view_loses_nothing(model: Model) -> None:
    names = ("quick_brown_fox", "counting", "hello_world")
    rounds = 5
    parts = [part for name in names for part in (clip(name)[0], silence(0.6))]
    pcm = np.concatenate(parts * rounds)
    assert pcm.size > 40 * RATE_HZ
    transcript = await model.submit(pcm, "en", Priority.FINAL, soon(), with_words=True).result(soon())
    heard = plain(transcript.text)
    assert [heard.count(word) for word in ("fox", "dog", "hello", "world", "10")] == [rounds] * 5
    assert transcript.words is not None
    foxes = [word.start_sample for word in transcript.words if "fox" in word.text.lower()]
    assert np.allclose(np.diff(foxes), pcm.size / rounds, atol=0.5 * RATE_HZ)
    assert transcript.words[-1].end_sample <= pcm.size


@pytest.mark.slow
async def test_two_waiters_share_one_computation(model: Model) -> None:
    pcm, text = clip("hello_world")
    recognition = model.submit(pcm, "en", Priority.SPECULATE, soon())
    recognition.share(Priority.FINAL, soon())
    first, second = await asyncio.gather(recognition.result(soon()), recognition.result(soon()))
    assert word_error_rate(text, first.text) == 0
    assert first == second


@pytest.mark.slow
async def test_an_impatient_waiter_does_not_take_the_result_from_one_who_has_yet_to_wait(model: Model) -> None:
    pcm, text = clip("quick_brown_fox")
    recognition = model.submit(pcm, "en", Priority.SPECULATE, soon())
    recognition.share(Priority.FINAL, soon())
    with pytest.raises(DeadlineExceeded):
        await recognition.result(soon(0.001))
    assert word_error_rate(text, (await recognition.result(soon())).text) == 0


@pytest.mark.slow
async def test_when_the_last_waiter_leaves_it_is_dropped(model: Model) -> None:
    pcm, _ = clip("quick_brown_fox")
    recognition = model.submit(pcm, "en", Priority.SPECULATE, soon())
    with pytest.raises(DeadlineExceeded):
        await recognition.result(soon(0.001))
    assert recognition.failed


def test_a_language_goes_to_the_model_that_names_it_and_others_to_the_multilingual_one(models: Models) -> None:
    assert models.for_language("en").id == "whisper-tiny.en"
    assert models.for_language("ko").id == "whisper-base"


@pytest.mark.parametrize("language", ["xx", "", "en-US", "*", "<|en|>", "transcribe", "0.00"])
def test_an_unknown_language_is_refused(models: Models, language: str) -> None:
    with pytest.raises(PeerError) as caught:
        models.for_language(language)
    assert caught.value.code == "unknown_language"
