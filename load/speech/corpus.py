"""What synthetic callers say: utterances by name, alone or in dialogues. Pure; `packaged` and `recorded` read files.

A packaged utterance is text that a voice speaks (`load.speech.synthesis`); a recorded one comes with its audio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import soundfile

from load.errors import LoadError
from load.speech.borders import with_borders
from load.speech.sound import Silent, Sound, labelled
from wire.config import ConfigError, Document, read
from wire.pcm import to_int16
from wire.strict import nearest

FILLERS = ("uh", "um")  # what "num_fillers" of a delivery draws from
AUDIO_SUFFIXES = (".wav", ".flac")


@dataclass(frozen=True)
class Utterance:
    name: str
    text: str


@dataclass(frozen=True)
class Dialogue:
    name: str
    turns: tuple[Utterance, ...]


@dataclass(frozen=True)
class Corpus:
    language: str
    dialogues: tuple[Dialogue, ...]
    singles: tuple[Utterance, ...]

    @property
    def utterances(self) -> dict[str, Utterance]:
        """Of dialogues and singles, by name."""
        every = [*(turn for dialogue in self.dialogues for turn in dialogue.turns), *self.singles]
        return {utterance.name: utterance for utterance in every}

    def utterance(self, name: str) -> Utterance:
        """Raises: LoadError."""
        known = self.utterances
        if name not in known:
            raise unknown_utterance(name, known)
        return known[name]

    def dialogue(self, name: str) -> Dialogue:
        """Raises: LoadError."""
        known = {dialogue.name: dialogue for dialogue in self.dialogues}
        if name not in known:
            close = nearest(name, known)
            raise LoadError(f"no dialogue '{name}'", f"did you mean '{close}'?" if close else _known(known))
        return known[name]


@dataclass(frozen=True)
class CorpusFile:
    """One YAML file of texts; a dialogue's turns are named after it and counted from 1."""

    language: str
    dialogues: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    singles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, turns in self.dialogues.items():
            if not 3 <= len(turns) <= 8:
                raise ValueError(f"dialogue '{name}' has {len(turns)} turns; 3 to 8 are wanted")
        texts = [text for turns in self.dialogues.values() for text in turns] + list(self.singles.values())
        if not all(text.strip() for text in texts):
            raise ValueError("an utterance without text")
        if wrong := [name for name in (*self.dialogues, *self.singles) if "/" in name or not name.strip()]:
            raise ValueError(f"'{wrong[0]}' is no name: a turn's is DIALOGUE/NUMBER")


def corpus_of(documents: Sequence[Document]) -> Corpus:
    """Raises: ConfigError, with file and line."""
    dialogues: list[Dialogue] = []
    singles: list[Utterance] = []
    language = ""
    for document in documents:
        parsed = document.parse(CorpusFile)
        language = language or parsed.language
        taken = {dialogue.name for dialogue in dialogues} | {single.name for single in singles}
        if twice := taken.intersection((*parsed.dialogues, *parsed.singles)):
            raise ConfigError(f"{document.path}: '{min(twice)}' is in another file as well")
        if parsed.language != language:
            raise ConfigError(f"{document.path}: language {parsed.language}, but the others have {language}")
        for name, turns in parsed.dialogues.items():
            dialogues.append(
                Dialogue(name, tuple(Utterance(f"{name}/{i}", text.strip()) for i, text in enumerate(turns, 1)))
            )
        singles += [Utterance(name, text.strip()) for name, text in parsed.singles.items()]
    return Corpus(language, tuple(dialogues), tuple(singles))


def packaged() -> Corpus:
    """The corpus that comes with the program. Raises: ConfigError."""
    with as_file(files("load") / "corpus") as folder:
        return read_corpus(sorted(folder.glob("*.yaml")))


def read_corpus(paths: Sequence[Path]) -> Corpus:
    """Raises: ConfigError."""
    return corpus_of([read(path) for path in paths])


def recorded(folder: Path) -> dict[str, tuple[Utterance, Sound]]:
    """Recordings with transcripts, NAME.wav or NAME.flac beside NAME.txt; each at the rate it was recorded with.

    Raises: LoadError for the first that cannot be used.
    """
    if not folder.is_dir():
        raise LoadError(f"{folder}: no such folder", "it should hold NAME.wav and NAME.txt")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in AUDIO_SUFFIXES)
    if not paths:
        raise LoadError(f"{folder}: no recordings in it", "it should hold NAME.wav and NAME.txt")
    return {path.stem: (utterance := _transcribed(path), read_sound(path, utterance.text)) for path in paths}


def read_sound(path: Path, text: str) -> Sound:
    """Raises: LoadError for a file that is missing, no audio, or silent."""
    try:
        audio, rate_hz = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError) as error:
        problem = "no such file" if not path.is_file() else f"cannot read it as audio: {error}"
        raise LoadError(f"{path}: {problem}", "wav and flac files work") from None
    if not np.isfinite(audio).all():
        raise LoadError(f"{path}: holds samples that are no numbers")
    try:
        return with_borders(labelled(to_int16(audio.mean(axis=1)), rate_hz), text)
    except Silent as error:
        raise LoadError(f"{path}: {error}", "give a recording of somebody who speaks") from None


def fillers_of(corpus: Corpus) -> list[Utterance]:
    """Those there are. Raises: LoadError when there is none."""
    found = [corpus.utterances[name] for name in FILLERS if name in corpus.utterances]
    if not found:
        raise LoadError("no fillers among the recordings", f"record one of: {', '.join(FILLERS)}")
    return found


def unknown_utterance(name: str, known: Iterable[str]) -> LoadError:
    close = nearest(name, known)
    return LoadError(f"no utterance '{name}'", f"did you mean '{close}'?" if close else _known(known))


def _transcribed(path: Path) -> Utterance:
    transcript = path.with_suffix(".txt")
    try:
        text = " ".join(transcript.read_text(encoding="utf-8").split())
    except OSError:
        raise LoadError(f"{path}: has no transcript", f"write what is said to {transcript.name} beside it") from None
    except UnicodeDecodeError:
        raise LoadError(f"{transcript}: is no UTF-8") from None
    if not text:
        raise LoadError(f"{transcript}: is empty", "write what is said there")
    return Utterance(path.stem, text)


def _known(names: Iterable[str]) -> str:
    listed = sorted(names)
    return f"known: {', '.join(listed[:12])}{' ...' if len(listed) > 12 else ''}"
