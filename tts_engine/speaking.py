"""From one unit of text to audio with word times, step by step: what the engine's thread runs.

A step is one pass of the encoder, which gives no audio yet, or one chunk of the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tts_engine.segmenter import Unit
from tts_engine.text.lexicon import Lexicon
from tts_engine.text.phonemes import Phrase, phrases
from tts_engine.vits.silence import SilenceTrimmer
from tts_engine.vits.voice import Encoded, VitsVoice, chunk_bounds
from wire.pcm import Pcm16, to_int16
from wire.speak import Word

_MAX_PHRASES = 1 << 16  # of one unit: separates their noise from that of the next unit


@dataclass(frozen=True)
class Chunk:
    """`words`: of this audio and what follows. `pcm` is empty while there is nothing to hear yet."""

    words: tuple[Word, ...]
    pcm: Pcm16


@dataclass(frozen=True)
class Speaker:
    voice: VitsVoice
    lexicon: Lexicon

    @property
    def sample_rate_hz(self) -> int:
        return self.voice.sample_rate_hz

    def speak(self, unit: Unit, *, index: int, first_sample: int, seed: int, speed: float) -> Iterator[Chunk]:
        """A chunk per step. `index` counts the utterance's units; `first_sample` is where its audio goes on.

        The audio depends on the unit's text, `index`, `seed` and `speed` alone.
        """
        for k, phrase in enumerate(phrases(unit.text, self.lexicon)):
            encoded = self.voice.encode(phrase.symbols, seed=seed, index=index * _MAX_PHRASES + k, speed=speed)
            yield _NOTHING
            for chunk in self._sound(unit, phrase, encoded, first_sample):
                first_sample += chunk.pcm.size
                yield chunk

    def _sound(self, unit: Unit, phrase: Phrase, encoded: Encoded, first_sample: int) -> Iterator[Chunk]:
        trimmer = SilenceTrimmer(self.sample_rate_hz)
        told = False
        speech_end = self._end_sample(encoded, phrase.words[-1].last - 1)
        for start, end in chunk_bounds(encoded.num_frames):
            audio = trimmer.push(self.voice.decode(encoded, start, end))
            if end == encoded.num_frames:
                audio = np.concatenate([audio, trimmer.finish(speech_end - trimmer.num_trimmed)])
            words: tuple[Word, ...] = ()
            if audio.size and not told:
                words, told = self._word_times(unit, phrase, encoded, first_sample, trimmer.num_trimmed), True
            yield Chunk(words, to_int16(audio))

    def _word_times(
        self, unit: Unit, phrase: Phrase, encoded: Encoded, first_sample: int, num_trimmed: int
    ) -> tuple[Word, ...]:
        """From the durations the model gave its symbols, exact to a frame."""
        return tuple(
            Word(
                text=unit.text[word.start : word.end],
                start_sample=first_sample + max(0, self._end_sample(encoded, word.first - 1) - num_trimmed),
                end_sample=first_sample + max(0, self._end_sample(encoded, word.last - 1) - num_trimmed),
                start_char=unit.start + word.start,
                end_char=unit.start + word.end,
            )
            for word in phrase.words
        )

    def _end_sample(self, encoded: Encoded, symbol: int) -> int:
        """Where a symbol ends; -1 is what comes before the first one."""
        frame = encoded.start_frame if symbol < 0 else int(encoded.frame_ends[symbol])
        return frame * self.voice.hop_samples


_NOTHING = Chunk((), np.zeros(0, np.int16))
