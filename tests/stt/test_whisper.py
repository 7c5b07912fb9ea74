"""Against the real models: what was said comes out, what was not said does not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from load.alignment import word_error_rate
from stt.segments import MAX_PIECE_S
from stt.whisper import Whisper
from tests.speech import RATE_HZ, clip, clip_paths, read, silence
from tests.stt.signals import attenuated, noisy, telephone, wordless
from wire.errors import Unavailable

SHARED = Path(__file__).parents[3] / "shared/data/speech"
NAMES = [path.stem for path in clip_paths()]
CONDITIONS = {
    "clean": lambda pcm: pcm,
    "30 dB down": lambda pcm: attenuated(pcm, 30),
    "telephone": telephone,
    "telephone, 20 dB down": lambda pcm: telephone(attenuated(pcm, 20)),
    "10 dB SNR": lambda pcm: noisy(pcm, 10),
    "between silences": lambda pcm: np.concatenate([silence(3), pcm, silence(3)]),
}


def spoken(text: str) -> str:
    """Digits as words, as the clips' texts have them; Whisper writes "3-4-5" or "345"."""
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    return re.sub(r"10|\d", lambda digits: f" {names[int(digits[0])]} ", text)


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", NAMES)
def test_english_is_recognised(tiny: Whisper, name: str, condition: str) -> None:
    pcm, text = clip(name)
    transcript = tiny.transcribe(CONDITIONS[condition](pcm), "en")
    assert word_error_rate(spoken(text), spoken(transcript.text)) <= 0.2, transcript
    assert transcript.words is None


@pytest.mark.slow
@pytest.mark.parametrize(("language", "name"), [("pt", "pangrama"), ("it", "ciao_mondo"), ("fr", "bonjour_monde")])
def test_other_languages_are_recognised(base: Whisper, language: str, name: str) -> None:
    [path] = [path for path in clip_paths(language) if path.stem == name]
    transcript = base.transcribe(read(path), language)
    assert word_error_rate(path.with_suffix(".txt").read_text(), transcript.text) <= 0.25, transcript
    assert transcript.language == language


@pytest.mark.slow
def test_the_language_is_detected_when_none_is_given(base: Whisper) -> None:
    [path] = [path for path in clip_paths("pt") if path.stem == "pangrama"]
    assert base.transcribe(read(path), None).language == "pt"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [0.5, 1.5, 4])
@pytest.mark.parametrize("model", ["tiny", "base"])
def test_no_words_come_out_of_silence_noise_or_tones(
    model: str, seconds: float, request: pytest.FixtureRequest
) -> None:
    whisper: Whisper = request.getfixturevalue(model)
    heard = {name: whisper.transcribe(pcm, "en").text for name, pcm in wordless(seconds)}
    assert {name: text for name, text in heard.items() if text} == {}


@pytest.mark.slow
def test_speech_cut_off_in_mid_word_does_not_loop(tiny: Whisper) -> None:
    pcm, _ = clip("counting")
    for seconds in (0.6, 0.9):
        text = tiny.transcribe(pcm[: round(seconds * RATE_HZ)], "en").text
        assert len(text.split()) <= 4, text


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny", "base"])
def test_word_times_are_monotone_and_within_the_speech(model: str, request: pytest.FixtureRequest) -> None:
    pcm, _ = clip("quick_brown_fox")
    lead = silence(1)
    whole = np.concatenate([lead, pcm, silence(1)])
    transcript = request.getfixturevalue(model).transcribe(whole, "en", with_words=True)
    assert transcript.words is not None
    assert " ".join(word.text for word in transcript.words) == transcript.text
    edges = [edge for word in transcript.words for edge in (word.start_sample, word.end_sample)]
    assert edges == sorted(edges)
    assert edges[0] >= lead.size - 0.35 * RATE_HZ
    assert edges[-1] <= lead.size + pcm.size + 0.35 * RATE_HZ


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/speech")
def test_word_times_agree_with_a_reference(tiny: Whisper) -> None:
    reference = json.loads((SHARED / "transcripts.json").read_text())["leopard_test.wav"]["words"]
    words = tiny.transcribe(read(SHARED / "leopard_test.wav"), "en", with_words=True).words
    assert words is not None
    assert len(words) == len(reference)
    starts = [abs(w.start_sample / RATE_HZ - r["start_sec"]) for w, r in zip(words, reference, strict=True)]
    ends = [abs(w.end_sample / RATE_HZ - r["end_sec"]) for w, r in zip(words, reference, strict=True)]
    assert max(np.median(starts), np.median(ends)) < 0.2, (starts, ends)
    assert max(starts + ends) < 0.5


def test_silence_has_no_words_and_says_so_when_times_are_asked_for(tiny: Whisper) -> None:
    transcript = tiny.transcribe(silence(1), "en", with_words=True)
    assert (transcript.text, transcript.words) == ("", ())


@pytest.mark.slow
def test_the_longest_piece_is_recognised_to_its_end(tiny: Whisper) -> None:
    speech, _ = clip("quick_brown_fox")
    pause = silence(MAX_PIECE_S - speech.size / RATE_HZ)
    assert "fox" in tiny.transcribe(np.concatenate([pause, speech])[-round(MAX_PIECE_S * RATE_HZ) :], "en").text


def test_an_english_model_knows_english_only(tiny: Whisper, base: Whisper) -> None:
    assert tiny.knows("en")
    assert not tiny.knows("ko")
    assert base.knows("ko")
    assert not base.knows("xx")


def test_a_folder_without_a_model_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=str(tmp_path)):
        Whisper(tmp_path)
