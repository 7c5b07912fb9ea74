"""What was heard, recognised by the real service with the real small model."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI, Response
from hypothesis import given
from hypothesis import strategies as st

from load.alignment import HeardWord, plain, word_error_rate
from load.errors import LoadError
from load.hearing import audible
from load.measure import BEFORE_ALL
from load.recognition import (
    LATE_S,
    MARGIN_S,
    SILENCE_S,
    Piece,
    Recogniser,
    add_recognition_flags,
    pieces_of,
    placed,
    recognise,
    recogniser_of,
)
from load.record import CallRecord, Said
from load.track import Track
from stt.config import ModelConfig, SttConfig
from stt.recognition import Models
from stt.service import build, load_models
from tests.fakes import FakeLlm
from tests.load.test_hearing import silence, tone
from tests.serving import free_ports, serving
from tests.speech import clip
from wire.config import EdgeConfig
from wire.service import Lifecycle

RATE_HZ = 24000
MODELS = (ModelConfig("whisper-tiny.en", ("en",), num_instances=1),)
KEY = "a key of sixteen characters"


def spoken(name: str) -> np.ndarray:
    """A clip from its first audible sample to its last."""
    pcm, _ = clip(name, RATE_HZ)
    spans = audible(pcm, RATE_HZ)
    return pcm[spans[0].start : spans[-1].end]


def call_of(*heard: tuple[float, np.ndarray], said: tuple[tuple[float, float], ...] = ((1.0, 2.0),)) -> CallRecord:
    record = CallRecord(7, "test", "websocket", 0, 16000, RATE_HZ, scheduled_s=0.0, placed_s=0.0, ended_s=60.0)
    record.said += [Said("one", "text", start_s, end_s) for start_s, end_s in said]
    record.heard += heard
    return record


@pytest.fixture(scope="module")
def models() -> Models:
    return load_models(SttConfig(EdgeConfig(port=0), MODELS))


@pytest.fixture
async def url(models: Models) -> AsyncIterator[str]:
    config, lifecycle = SttConfig(EdgeConfig(port=0), MODELS), Lifecycle("stt")
    async with serving(build(config, models, lifecycle), lifecycle, config.edge) as base:
        yield base


@pytest.mark.slow
@pytest.mark.parametrize("pause_s", [0.3, 1.0, 4.0])
async def test_words_after_a_filler_have_the_times_at_which_they_were_heard(url: str, pause_s: float) -> None:
    fox, (_, text) = spoken("quick_brown_fox"), clip("quick_brown_fox")
    filler = tone(0.6, RATE_HZ)
    begins_s = 5.0 + filler.size / RATE_HZ + pause_s
    words = (await recognise(call_of((5.0, filler), (begins_s, fox)), Recogniser(url)))[0]
    assert word_error_rate(text, " ".join(word.text for word in words)) <= 0.2
    assert words[0].start_s == pytest.approx(begins_s, abs=0.1)
    assert words[-1].end_s == pytest.approx(begins_s + fox.size / RATE_HZ, abs=0.1)


@pytest.mark.slow
async def test_words_after_spoken_filler_and_pause_begin_where_they_were_heard(url: str) -> None:
    filler, fox = spoken("hello_world"), spoken("quick_brown_fox")
    begins_s = 5.0 + filler.size / RATE_HZ + 0.4
    words = (await recognise(call_of((5.0, filler), (begins_s, fox)), Recogniser(url)))[0]
    assert [plain(word.text) for word in words[:3]] == [["hello"], ["world"], ["the"]]
    assert words[2].start_s == pytest.approx(begins_s, abs=0.1)


@pytest.mark.slow
async def test_each_word_belongs_to_the_utterance_before_it_and_a_greeting_to_none(url: str) -> None:
    hello = spoken("hello_world")
    call = call_of((1.0, hello), (6.0, hello), (20.0, hello), said=((4.0, 5.0), (10.0, 11.0), (15.0, 16.0)))
    found = await recognise(call, Recogniser(url, model="whisper-tiny.en"))
    assert {index: words[0].start_s for index, words in found.items()} == {
        BEFORE_ALL: pytest.approx(1.0, abs=0.1),
        0: pytest.approx(6.0, abs=0.1),
        2: pytest.approx(20.0, abs=0.1),
    }


@pytest.mark.slow
async def test_an_answer_longer_than_the_models_view_keeps_its_times(url: str) -> None:
    fox = np.concatenate([spoken("quick_brown_fox"), silence(0.3, RATE_HZ)])
    whole = np.concatenate([fox] * 16)
    assert whole.size / RATE_HZ > 30
    words = (await recognise(call_of((3.0, whole)), Recogniser(url)))[0]
    last = [word for word in words if word.text.lower().startswith("quick")][-1]
    assert last.start_s == pytest.approx(3.0 + (whole.size - fox.size) / RATE_HZ, abs=0.4)


@pytest.mark.slow
async def test_a_model_that_is_not_there_is_named_with_those_that_are(url: str) -> None:
    await Recogniser(url).check()
    with pytest.raises(LoadError, match="no model 'whisper-9'") as caught:
        await Recogniser(url, model="whisper-9").check()
    assert caught.value.hint == "it has: whisper-tiny.en"


@pytest.mark.slow
async def test_a_key_is_asked_for_and_taken(models: Models, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    config, lifecycle = SttConfig(EdgeConfig(port=0, api_key_file=path), MODELS), Lifecycle("stt")
    async with serving(build(config, models, lifecycle), lifecycle, config.edge) as base:
        with pytest.raises(LoadError, match="wants an API key") as caught:
            await Recogniser(base).check()
        assert "--stt-key-file" in caught.value.hint
        arguments = flags("--stt-url", base, "--stt-key-file", str(path))
        recogniser = recogniser_of(arguments)
        assert recogniser is not None
        await recogniser.check()


async def test_nobody_there_is_one_line_and_what_to_do() -> None:
    recogniser = Recogniser(f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(LoadError, match="no recognition at http") as caught:
        await recogniser.check()
    assert "offhook up" in caught.value.hint
    assert "--no-recognition" in caught.value.hint


@pytest.mark.slow
async def test_a_service_that_is_being_started_again_is_waited_for(models: Models) -> None:
    [port] = free_ports(1)
    config, lifecycle = SttConfig(EdgeConfig(port=port), MODELS), Lifecycle("stt")
    recognising = asyncio.create_task(
        recognise(call_of((5.0, spoken("hello_world"))), Recogniser(f"http://127.0.0.1:{port}"))
    )
    done, _ = await asyncio.wait([recognising], timeout=0.3)
    assert not done
    async with serving(build(config, models, lifecycle), lifecycle, config.edge):
        assert 0 in await recognising


async def test_a_service_that_does_not_recognise_fails_the_call_by_its_number() -> None:
    async with serving(FakeLlm().app(), Lifecycle("fake"), EdgeConfig(port=0)) as base:
        with pytest.raises(LoadError, match=r"call 7, heard at 5\.0 s: .* does not recognise: HTTP 404"):
            await recognise(call_of((5.0, tone(0.3, RATE_HZ))), Recogniser(base))


@pytest.mark.parametrize("url", ["no address", "ftp://127.0.0.1", "http://[", ""])
async def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    with pytest.raises(LoadError, match=r"no address|no recognition"):
        await Recogniser(url).check()


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        '{"words": [{"word": "a", "start": NaN, "end": 1}]}',
        '{"words": [{"word": "a", "start": 0, "end": 1' + "0" * 400 + "}]}",
        '{"words": [{"word": "\\ud800", "start": 0, "end": 1}]}',
    ],
)
async def test_an_answer_without_words_and_their_times_is_one_line(answer: str) -> None:
    app = FastAPI()
    app.post("/v1/audio/transcriptions")(lambda: Response(answer, media_type="application/json"))
    async with serving(app, Lifecycle("stt"), EdgeConfig(port=0)) as url:
        with pytest.raises(LoadError, match="gave no times of words"):
            await Recogniser(url).words(tone(0.5, RATE_HZ), RATE_HZ)


async def test_a_silent_call_asks_nobody() -> None:
    call = call_of((5.0, silence(1.0, RATE_HZ)))
    assert await recognise(call, Recogniser("http://127.0.0.1:9")) == {}


def flags(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_recognition_flags(parser)
    return parser.parse_args(argv)


def test_recognition_is_there_by_default_and_can_be_left_out() -> None:
    assert recogniser_of(flags()) is not None
    assert recogniser_of(flags("--no-recognition")) is None


def test_a_key_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot read the API key"):
        recogniser_of(flags("--stt-key-file", str(tmp_path / "none")))


def test_pieces_are_the_audible_stretches_and_know_when_they_began() -> None:
    track = Track([(1.0, tone(0.5, RATE_HZ)), (2.0, tone(0.5, RATE_HZ)), (6.0, silence(0.5, RATE_HZ))], RATE_HZ)
    pieces = pieces_of(track, 0.0, 10.0)
    assert [piece.begins_s for piece in pieces] == pytest.approx([1.0, 2.0], abs=0.01)
    assert [piece.begins_s - piece.start_s for piece in pieces] == pytest.approx([MARGIN_S + SILENCE_S] * 2, abs=0.001)
    assert pieces[1].pcm.size / RATE_HZ == pytest.approx(0.5 + 2 * (MARGIN_S + SILENCE_S), abs=0.02)


def test_a_piece_does_not_reach_beyond_its_window() -> None:
    [piece] = pieces_of(Track([(1.0, tone(2.0, RATE_HZ))], RATE_HZ), 1.5, 2.0)
    assert piece.start_s == pytest.approx(1.5 - SILENCE_S)
    assert piece.pcm.size / RATE_HZ == pytest.approx(0.5 + 2 * SILENCE_S)


def test_the_first_word_begins_with_the_stretch_and_the_others_are_not_late() -> None:
    piece = Piece(start_s=4.6, begins_s=5.0, pcm=silence(1.0, RATE_HZ))
    words = [HeardWord("Well,", 0.0, 0.6), HeardWord("then", 0.6, 0.9), HeardWord("go", 1.1, 1.2)]
    found = placed(words, piece)
    assert [word.start_s for word in found] == pytest.approx([5.0, 5.2 - LATE_S, 5.7 - LATE_S])
    assert [word.end_s for word in found] == pytest.approx([5.2 - LATE_S, 5.5, 5.8])
    assert placed([], piece) == []


edges = st.lists(st.floats(0, 60), max_size=20).map(sorted)


@given(edges, st.floats(0, 60), st.floats(0, 1))
def test_placed_words_are_all_there_and_in_order(word_edges: list[float], start_s: float, lead_s: float) -> None:
    words = [HeardWord(str(edge), *edge) for edge in zip(word_edges[::2], word_edges[1::2], strict=False)]
    found = placed(words, Piece(start_s, start_s + lead_s, silence(0.1, RATE_HZ)))
    assert [word.text for word in found] == [word.text for word in words]
    assert all(word.start_s <= word.end_s for word in found)
    assert all(a.end_s <= b.start_s for a, b in pairwise(found))
