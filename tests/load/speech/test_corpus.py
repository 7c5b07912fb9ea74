from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from load.errors import LoadError
from load.speech.corpus import FILLERS, packaged, read_corpus, recorded
from tests.load.speech.waves import words
from tests.speech import clip_paths
from wire.config import ConfigError


def test_packaged_corpus_is_large_and_made_of_dialogues() -> None:
    corpus = packaged()
    assert sum(len(dialogue.turns) for dialogue in corpus.dialogues) >= 60
    assert all(3 <= len(dialogue.turns) <= 8 for dialogue in corpus.dialogues)
    assert len(corpus.utterances) == sum(len(d.turns) for d in corpus.dialogues) + len(corpus.singles)
    assert set(FILLERS) <= set(corpus.utterances)


def test_packaged_corpus_has_short_and_long_turns_and_says_nothing_twice_in_dialogues() -> None:
    texts = [turn.text for dialogue in packaged().dialogues for turn in dialogue.turns]
    lengths = [len(text.split()) for text in texts]
    assert sum(length == 1 for length in lengths) >= 4
    assert max(lengths) >= 20
    assert len(set(texts)) == len(texts)
    assert not any(char.isdigit() for text in texts for char in text), "numbers are words, as they are spoken"


def test_an_utterance_that_is_not_there_is_told_with_the_nearest() -> None:
    corpus = packaged()
    assert corpus.utterance("late-parcel/1").text.startswith("Hello, I'm calling")
    with pytest.raises(LoadError, match="no utterance 'late-parcle/1'") as caught:
        corpus.utterance("late-parcle/1")
    assert caught.value.hint == "did you mean 'late-parcel/1'?"
    with pytest.raises(LoadError, match="no dialogue 'docter'") as caught:
        corpus.dialogue("docter")
    assert caught.value.hint == "did you mean 'doctor'?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("language: en\nsingle: {a: A.}\n", r"c.yaml:2: single: unknown key; did you mean 'singles'\?"),
        ("language: en\ndialogues:\n  d: [A., B.]\n", "c.yaml:1: dialogue 'd' has 2 turns"),
        ("language: en\nsingles: {a: ' '}\n", "an utterance without text"),
        ("language: en\nsingles: {a/1: A.}\n", "'a/1' is no name"),
        ("language: en\nsingles: {yes: Yes.}\nsingles: {no: No.}\n", "c.yaml:3: not YAML: 'singles' is given twice"),
        ("singles: {a: 4}\nlanguage: en\n", "c.yaml:1: singles.a: expected str, got int 4"),
    ],
)
def test_a_mistake_in_a_corpus_is_one_line_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        read_corpus([path])
    assert "\n" not in str(caught.value)


def test_files_of_a_corpus_do_not_share_names_and_have_one_language(tmp_path: Path) -> None:
    paths = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    paths[0].write_text("language: en\nsingles: {hello: Hello.}\n")
    paths[1].write_text("language: en\nsingles: {hello: Hi.}\n")
    with pytest.raises(ConfigError, match=r"b.yaml: 'hello' is in another file"):
        read_corpus(paths)
    paths[1].write_text("language: de\nsingles: {hallo: Hallo.}\n")
    with pytest.raises(ConfigError, match=r"b.yaml: language de, but the others have en"):
        read_corpus(paths)


def recording(folder: Path, name: str = "a.wav", text: str | None = "one two three") -> Path:
    path = folder / name
    soundfile.write(path, words([0.3, 0.4, 0.3], 22050).pcm, 22050)
    if text is not None:
        path.with_suffix(".txt").write_text(text)
    return path


def test_a_folder_of_recordings_and_transcripts_is_a_corpus_too(tmp_path: Path) -> None:
    recording(tmp_path, "first.wav", "one two\n three \n")
    recording(tmp_path, "second.flac")
    found = recorded(tmp_path)
    assert list(found) == ["first", "second"]
    utterance, sound = found["first"]
    assert (utterance.name, utterance.text) == ("first", "one two three")
    assert sound.rate_hz == 22050
    assert sound.end_s == pytest.approx(0.3 + 0.3 + 0.05 + 0.4 + 0.05 + 0.3, abs=0.01)
    assert len(sound.borders) == 2


def test_stereo_is_mixed_down(tmp_path: Path) -> None:
    path = recording(tmp_path)
    mono = words([0.3, 0.4, 0.3], 22050).audio
    soundfile.write(path, np.stack([mono, np.zeros_like(mono)], axis=1), 22050)
    [(_, sound)] = recorded(tmp_path).values()
    assert np.abs(sound.audio).max() == pytest.approx(np.abs(mono).max() / 2, rel=0.01)


def test_what_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such folder"):
        recorded(tmp_path / "nothing")
    with pytest.raises(LoadError, match="no recordings in it"):
        recorded(tmp_path)
    path = recording(tmp_path, text=None)
    with pytest.raises(LoadError, match=r"a\.wav: has no transcript"):
        recorded(tmp_path)
    path.with_suffix(".txt").write_text(" \n")
    with pytest.raises(LoadError, match=r"a\.txt: is empty"):
        recorded(tmp_path)
    path.with_suffix(".txt").write_text("hello")
    soundfile.write(path, np.zeros(16000, np.int16), 16000)
    with pytest.raises(LoadError, match=r"a\.wav: no speech in it, only silence"):
        recorded(tmp_path)
    soundfile.write(path, np.ones(16000, np.int16) * 9000, 1)
    with pytest.raises(LoadError, match=r"a\.wav: no speech can be heard at 1 Hz"):
        recorded(tmp_path)
    soundfile.write(path, np.array([0.5, np.nan, np.inf] * 4000), 16000, subtype="FLOAT")
    with pytest.raises(LoadError, match=r"a\.wav: holds samples that are no numbers"):
        recorded(tmp_path)
    path.with_suffix(".txt").write_bytes(b"caf\xe9")
    with pytest.raises(LoadError, match=r"a\.txt: is no UTF-8"):
        recorded(tmp_path)
    path.with_suffix(".txt").write_text("hello")
    path.write_bytes(b"no audio at all")
    with pytest.raises(LoadError, match=r"a\.wav: cannot read it as audio") as caught:
        recorded(tmp_path)
    assert "\n" not in str(caught.value)


def test_real_clips_are_labelled_inside_their_files() -> None:
    found = recorded(clip_paths()[0].parent)
    assert len(found) == len(clip_paths())
    for utterance, sound in found.values():
        assert 0 <= sound.start < sound.end <= sound.audio.size
        assert len(sound.borders) == len(utterance.text.split()) - 1
