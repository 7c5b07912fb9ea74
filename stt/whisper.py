"""Whisper on CTranslate2: one instance, one thread, audio in, words out.

Whisper was trained on windows of 30 s, and nearly all of its time goes into encoding their padding. Here the encoder
sees the speech and at least 2 s of silence, 8 s at least; the decoder's view is then filled to 15 s with encoder output
of silence, computed once. Without that fill the decoder tends to start over after the speech. bench/stt_cpu.py compares
time and word errors with the full window.

Not thread-safe: the thread of an instance owns it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import tokenizers
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.typing import NDArray

from stt import guards, words
from stt.segments import MAX_PIECE_S
from stt.words import Word
from wire.errors import Unavailable
from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16, Pcm32f, to_float

VIEW_S = 30  # what Whisper was trained on
MIN_WINDOW_S = 8  # shorter windows save nothing: below it decoding dominates
TRAILING_SILENCE_S = 2  # with 1 s tiny.en loops or loses words
DECODER_VIEW_S = 15
HOP_SAMPLES = 160  # a mel frame is 10 ms, an encoder frame two of them
FRAMES_PER_S = SAMPLE_RATE_HZ // guards.FRAME_SAMPLES

# Budget of tokens. English takes up to 6.7 per second (digits), Hindi and Korean more.
TOKENS_FREE = 12
TOKENS_PER_S = 10
MAX_TOKENS = 224  # CTranslate2 and OpenAI's decoder: half of the 448 positions

Features = NDArray[np.float32]


@dataclass(frozen=True)
class Transcript:
    """`text` is empty when there was no speech. `words` is None when times were not asked for or cannot be had."""

    text: str
    language: str
    words: tuple[Word, ...] | None = None
    mean_logprob: float = 0.0
    no_speech_prob: float = 1.0


class Whisper:
    """`min_window_s` 30 is the stock window, for comparison.

    Raises: Unavailable when `folder` holds no readable model.
    """

    def __init__(self, folder: Path, *, min_window_s: int = MIN_WINDOW_S) -> None:
        self._min_window_s = min_window_s
        try:
            self._model = ctranslate2.models.Whisper(str(folder), device="cpu", compute_type="int8", intra_threads=1)
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            properties = json.loads((folder / "config.json").read_text())
        except Exception as error:  # noqa: BLE001 -- tokenizers raises bare Exception, CTranslate2 RuntimeError
            raise Unavailable(f"cannot load Whisper from {folder}: {error}") from None
        # CTranslate2 guesses heads where the file names none; guessed times are no times.
        self.can_align = bool(properties.get("alignment_heads"))
        self._language_ids = frozenset(properties.get("lang_ids", ()))
        self._mel = FeatureExtractor(feature_size=self._model.n_mels)
        self.is_multilingual = bool(self._model.is_multilingual)
        self._end_of_text = self._token("<|endoftext|>")
        self._silence = self._encode(np.zeros(0, np.float32), VIEW_S)

    def knows(self, language: str) -> bool:
        if not self.is_multilingual:
            return language == "en"
        return self._tokenizer.token_to_id(f"<|{language}|>") in self._language_ids

    def transcribe(self, pcm: Pcm16, language: str | None, *, with_words: bool = False) -> Transcript:
        """int16, 16 kHz, at most `MAX_PIECE_S`. `language` None: detected, or English for an English model."""
        assert pcm.size <= MAX_PIECE_S * SAMPLE_RATE_HZ
        span = guards.audible_span(pcm)
        if span is None:
            return Transcript("", language or "en", () if with_words and self.can_align else None)
        start, end = span
        audio = to_float(pcm[start:end])
        view = self._view(audio)
        if language is None:
            language = self._detect(view)
        result, tokens, looped = self._decode(view, audio.size / SAMPLE_RATE_HZ, self._prompt(language))
        text = self._text(tokens)
        mean_logprob, no_speech_prob = float(result.scores[0]), float(result.no_speech_prob)
        if not guards.has_words(text) or not guards.is_speech(no_speech_prob, mean_logprob, looped=looped):
            text, tokens = "", []
        times = None
        if with_words and self.can_align:
            times = words.tighten(self._align(view, tokens, language, start, end), guards.frame_rms(pcm))
        return Transcript(text.strip(), language, times, mean_logprob, no_speech_prob)

    def _view(self, audio: Pcm32f) -> Any:
        """What the decoder attends to: encoder output of the audio, filled up with that of silence."""
        seconds = audio.size / SAMPLE_RATE_HZ
        window_s = min(VIEW_S, max(self._min_window_s, math.ceil(seconds) + TRAILING_SILENCE_S))
        encoded = self._encode(audio, window_s)
        wanted = DECODER_VIEW_S * FRAMES_PER_S
        if encoded.shape[1] < wanted:
            encoded = np.concatenate([encoded, self._silence[:, encoded.shape[1] : wanted]], axis=1)
        return ctranslate2.StorageView.from_array(np.ascontiguousarray(encoded))

    def _encode(self, audio: Pcm32f, window_s: int) -> Features:
        """float32, 16 kHz -> [1, 50 * window_s, width]."""
        padded = np.zeros(window_s * SAMPLE_RATE_HZ, np.float32)
        padded[: audio.size] = audio
        mel = self._mel(padded, padding=0)[np.newaxis, :, : padded.size // HOP_SAMPLES]
        features = ctranslate2.StorageView.from_array(np.ascontiguousarray(mel, dtype=np.float32))
        return np.array(self._model.encode(features, to_cpu=True))

    def _detect(self, view: Any) -> str:
        if not self.is_multilingual:
            return "en"
        token: str = self._model.detect_language(view)[0][0][0]
        return token.strip("<|>")

    def _prompt(self, language: str) -> list[int]:
        names = ["<|startoftranscript|>"]
        if self.is_multilingual:
            names += [f"<|{language}|>", "<|transcribe|>"]
        return [self._token(name) for name in names]

    def _token(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        assert token is not None, f"no token {name}"
        return token

    def _decode(self, view: Any, seconds: float, prompt: list[int]) -> tuple[Any, list[int], bool]:
        """(result, tokens without a loop, whether there was one)."""
        budget = min(MAX_TOKENS, TOKENS_FREE + math.ceil(TOKENS_PER_S * seconds))
        [result] = self._model.generate(
            view,
            [[*prompt, self._token("<|notimestamps|>")]],
            beam_size=1,
            max_length=2 * budget,  # CTranslate2 generates at most half of it: the other half is for a prompt
            return_scores=True,
            return_no_speech_prob=True,
        )
        tokens = [token for token in result.sequences_ids[0] if token < self._end_of_text]
        kept = guards.cut_loop(tokens, seconds, ran_out=len(tokens) >= budget)
        return result, kept, len(kept) < len(tokens)

    def _align(self, view: Any, tokens: list[int], language: str, start: int, end: int) -> tuple[Word, ...]:
        if not tokens:
            return ()
        num_mel_frames = (end - start) // HOP_SAMPLES
        [alignment] = self._model.align(view, self._prompt(language), [tokens], [num_mel_frames])
        return words.times(words.group(tokens, self._text, language), alignment.alignments, start, end)

    def _text(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text


def load(folder: Path) -> Whisper:
    """An instance whose first request is as fast as its later ones."""
    whisper = Whisper(folder)
    warm_up = np.random.default_rng(0).normal(0, 1000, SAMPLE_RATE_HZ).astype(np.int16)
    whisper.transcribe(warm_up, "en", with_words=True)
    return whisper
