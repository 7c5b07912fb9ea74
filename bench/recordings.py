"""Real recorded speech for benches, one sentence at a time: `sentences()`.

What Debian's archive and PyPI carry is enough for some twenty speakers; `python -m bench.recordings --fetch` gets the
five packages with `apt-get download` and `pip download` and unpacks them into the cache. Nothing is installed, and
nothing of them is part of the project. Licences: asterisk-core-sounds-en CC-BY-SA 3.0, codec2-examples LGPL 2.1,
pocketsphinx-testdata BSD-2 (its books are read by LibriVox, public domain), moonshine-voice MIT, pyannote-audio MIT;
further folders of recordings can be named with `--more`.

Sentences are cut out where our own recognition (Whisper base) hears one end and the recording has a gap; borders
between their words lie where the gap between two recognised words is quietest. A sentence that Whisper hears as such
may still be half of one, so the prompts of the telephone exchange are chosen by name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import soundfile
from numpy.typing import NDArray

from load.speech.resample import resampled
from load.speech.sound import Silent, Sound, labelled
from stt.segments import cuts
from stt.whisper import Whisper
from stt.words import Word
from tests.speech import clip_paths
from wire.pcm import Pcm16, to_float, to_int16
from wire.weights import cache_dir, model_dir

HZ = 16000
DEBS = ("asterisk-core-sounds-en-g722", "codec2-examples", "pocketsphinx-testdata")
WHEELS = ("moonshine-voice==0.1.5", "pyannote-audio==4.0.7")
GAP_S = 0.15  # a sentence ends at a full stop only where the speaker pauses
AROUND_S = 0.1  # kept before and after a sentence
LOOK_S = 0.8  # before the end of a word as recognised: so early may the pause after it begin
FRAME = 80  # 5 ms: how finely the quietest spot between two words is looked for
ABOVE_NOISE, BELOW_SPEECH = 2.0, 10 ** (-26 / 20)  # what is quiet, of the 5 % softest and the 5 % loudest frames
MIN_S, MAX_S = 0.4, 11.0
CALIBRATION = ("allison", "navy", "cq", "frog", "beckett", "america", "go")


@dataclass(frozen=True)
class Source:
    """Recordings of one speaker, or of one conversation.

    `raw_hz`: of files without a header. Before `from_s` people talk at once.
    """

    speaker: str
    pattern: str
    raw_hz: int = HZ
    from_s: float = 0.0


PROMPTS = "asterisk-core-sounds-en-g722/**/{}.g722"
CODEC2 = "codec2-examples/**/raw/{}.raw"
SPHINX = "pocketsphinx-testdata/**/{}"
WHOLE_PROMPTS = """
agent-alreadyon agent-newlocation agent-pass all-circuits-busy-now cannot-complete-as-dialed conf-extended
conf-getchannel conf-getconfno conf-getpin conf-invalid conf-invalidpin conf-kicked conf-leaderhasleft
conf-locked conf-lockednow conf-muted conf-nonextended conf-now-muted conf-now-recording conf-now-unmuted
conf-onlyone conf-onlyperson conf-placeintoconf conf-roll-callcomplete conf-unlockednow conf-unmuted
conf-waitforleader confbridge-begin-glorious-a confbridge-conf-begin confbridge-conf-end confbridge-invalid
confbridge-lock-no-join confbridge-only-one confbridge-pin-bad confbridge-removed demo-echodone
demo-enterkeywords demo-nogo demo-nomatch do-not-disturb enter-num-blacklist entr-num-rmv-blklist
feature-not-avail-line no-recording options pls-hold-while-try status hello-world invalid number-not-answering
one-moment-please pbx-invalid pbx-invalidpark please-try-again please-try-call-later pm-invalid-option
priv-introsaved priv-recordintro privacy-incorrect privacy-prompt privacy-unident queue-periodic-announce
queue-thankyou queue-youarenext something-terribly-wrong speed-dial-empty ss-noservice transfer tt-allbusy
tt-monkeysintro tt-weasels vm-calldiffnum vm-delete vm-dialout vm-enter-num-to-call vm-forward
vm-forward-multiple vm-intro vm-invalid-password vm-invalidpassword vm-leavemsg vm-mailboxfull vm-mismatch
vm-msgforwarded vm-msgsaved vm-newpassword vm-newuser vm-next vm-nobodyavail vm-nobox vm-nonumber
vm-passchanged vm-prev vm-reachoper vm-rec-busy vm-rec-name vm-rec-temp vm-record-prepend vm-reenterpassword
vm-repeat vm-review-urgent vm-savefolder vm-saveoper vm-sorry vm-starmain vm-tempgreetactive vm-tempgreeting2
vm-tempremoved vm-tmpexists vm-tocallback vm-tocancelmsg vm-toenternumber vm-toforward vm-tomakecall
vm-tooshort vm-toreply vm-torerecord vm-whichbox
"""
SOURCES = (
    *(Source("allison", PROMPTS.format(name)) for name in WHOLE_PROMPTS.split()),
    Source("navy", CODEC2.format("hts"), 8000),
    Source("cq", CODEC2.format("cq_ref"), 8000),
    Source("frog", CODEC2.format("morig"), 8000),
    Source("street", CODEC2.format("forig"), 8000),
    Source("well", CODEC2.format("mmt1"), 8000),
    Source("bus", CODEC2.format("cross"), 8000),
    Source("dog", CODEC2.format("big_dog"), 8000),
    Source("victor", CODEC2.format("vk5qi"), 8000),
    Source("kristoff", CODEC2.format("kristoff"), 8000),
    Source("austen", SPHINX.format("sense_and_sensibility_*.wav")),
    Source("go", SPHINX.format("goforward.raw")),
    Source("something", SPHINX.format("something.raw")),
    Source("beckett", "moonshine-voice/**/beckett.wav"),
    Source("america", "moonshine-voice/**/clone-test.wav"),
    Source("nagg and nell", "moonshine-voice/**/endgame_nagg_nell.wav"),
    Source("two cities", "moonshine-voice/**/two_cities.wav"),
    Source("diane and sheila", "pyannote-audio/**/sample.wav", from_s=16.0),
)


@dataclass(frozen=True)
class Sentence:
    """A whole sentence; the borders of `sound` are its word gaps. 16 kHz."""

    speaker: str
    text: str
    sound: Sound

    @property
    def is_for_calibration(self) -> bool:
        return self.speaker in CALIBRATION


def folder() -> Path:
    return cache_dir() / "recordings"


def fetch(to: Path) -> None:
    """Raises: CalledProcessError, with what apt-get or pip says."""
    downloads = to / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", *DEBS], cwd=downloads, check=True)
    for deb in downloads.glob("*.deb"):
        subprocess.run(["dpkg", "-x", deb, to / deb.name.split("_")[0]], check=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(downloads)]
    subprocess.run([*pip, *WHEELS], check=True)
    for wheel in downloads.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            recordings = [name for name in packed.namelist() if name.endswith(".wav")]
            packed.extractall(to / wheel.name.split("-")[0].replace("_", "-"), recordings)


def sentences(more: Sequence[Path] = ()) -> list[Sentence]:
    """Of all recordings that are there; the same ones in the same order every time. Takes half a minute."""
    whisper = Whisper(model_dir("whisper-base"))
    found = {}
    for speaker, pcm in _recordings(more):
        for sentence in _cut(speaker, pcm, whisper):
            found.setdefault((speaker, sentence.text), sentence)
    return list(found.values())


def _recordings(more: Sequence[Path]) -> Iterator[tuple[str, Pcm16]]:
    for source in SOURCES:
        for path in sorted(folder().glob(source.pattern)):
            yield source.speaker, _read(path, source.raw_hz)[round(source.from_s * HZ) :]
    for path in [*clip_paths(), *(found for more_folder in more for found in sorted(more_folder.iterdir()))]:
        if path.suffix in (".wav", ".flac"):
            yield ("counting" if path in clip_paths() else path.stem), _read(path, HZ)


def _read(path: Path, raw_hz: int) -> Pcm16:
    """int16 at 16 kHz, the first channel."""
    if path.suffix == ".raw":
        audio, hz = to_float(np.fromfile(path, "<i2")), raw_hz
    elif path.suffix == ".g722":
        with av.open(str(path), format="g722") as packed:
            frames = [frame.to_ndarray().reshape(-1) for frame in packed.decode(audio=0)]
        audio, hz = to_float(np.concatenate(frames).astype(np.int16)), HZ
    else:
        channels, hz = soundfile.read(path, dtype="float32", always_2d=True)
        audio = channels[:, 0]
    return to_int16(resampled(audio, hz, HZ))


def _cut(speaker: str, pcm: Pcm16, whisper: Whisper) -> Iterator[Sentence]:
    words: list[Word] = []
    start = 0
    for end in cuts(pcm):
        found = whisper.transcribe(pcm[start:end], "en", with_words=True).words or ()
        words += [Word(word.text, start + word.start_sample, start + word.end_sample) for word in found]
        start = end
    levels = _levels(pcm)
    quiet = levels < max(
        ABOVE_NOISE * float(np.quantile(levels, 0.05)), BELOW_SPEECH * float(np.quantile(levels, 0.95))
    )
    gaps = [_gap(levels, quiet, a, b) for a, b in pairwise(words)]
    first, begin = 0, 0  # of the words of a sentence; where its audio may begin
    for at, word in enumerate(words):
        is_last = at + 1 == len(words)
        low, high = (pcm.size, pcm.size) if is_last else gaps[at]
        if not word.text.rstrip().endswith((".", "?", "!")) or (not is_last and high - low < GAP_S * HZ):
            continue
        around = min(round(AROUND_S * HZ), (high - low) // 2)
        piece = pcm[begin : low + around]
        borders = [(a + b) // 2 - begin for a, b in gaps[first:at]]
        text = " ".join(word.text.strip() for word in words[first : at + 1])
        first, begin = at + 1, high - around
        if MIN_S <= piece.size / HZ <= MAX_S and (sound := _labelled(piece, borders)) is not None:
            yield Sentence(speaker, text, sound)


def _labelled(pcm: Pcm16, borders: Sequence[int]) -> Sound | None:
    try:
        sound = labelled(pcm, HZ)
    except Silent:
        return None
    return replace(sound, borders=tuple(sorted({at for at in borders if sound.start < at < sound.end})))


def _levels(pcm: Pcm16) -> NDArray[np.float64]:
    """RMS of frames of 5 ms."""
    frames = pcm[: pcm.size // FRAME * FRAME].astype(np.float64).reshape(-1, FRAME)
    return np.asarray(np.sqrt((frames**2).mean(axis=1)))


def _gap(levels: NDArray[np.float64], quiet: NDArray[np.bool_], a: Word, b: Word) -> tuple[int, int]:
    """Samples between which it is quiet between two words, the longest such run; one quietest frame where none is.

    The times of recognition are 60 ms off, and a pause is counted to the word before it.
    """
    low = max(a.start_sample, min(a.end_sample, b.start_sample) - round(LOOK_S * HZ)) // FRAME
    high = min(levels.size, min(b.end_sample, b.start_sample + round(0.1 * HZ)) // FRAME)
    low = min(low, levels.size - 1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], quiet[low:high].astype(np.int8), [0]])))
    if not edges.size:
        at = low + int(np.argmin(levels[low : max(high, low + 1)]))
        return at * FRAME + FRAME // 2, at * FRAME + FRAME // 2
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(low + starts[longest]) * FRAME, int(low + ends[longest]) * FRAME


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="get the packages first")
    parser.add_argument("--more", type=Path, action="append", default=[], help="a further folder of .wav and .flac")
    arguments = parser.parse_args()
    if arguments.fetch:
        fetch(folder())
    for sentence in sentences(arguments.more):
        sound = sentence.sound
        print(f"{sentence.speaker:18}{(sound.end - sound.start) / HZ:5.1f} s {len(sound.borders):3}  {sentence.text}")


if __name__ == "__main__":
    main()
