"""From aligned tokens to words with times. Pure.

Whisper's tokens are pieces of UTF-8. They join to characters, characters to words: at spaces, or one by one in
scripts that write without them. The alignment is a path of (token, encoder frame) pairs, found by dynamic time
warping over the attention of a few heads (Whisper's paper does not describe it; OpenAI's whisper/timing.py does). It
gives pauses to the words beside them; `tighten` takes them off again where the audio is quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stt.guards import FRAME_SAMPLES

UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue", "km", "bo"})
QUIET = 10 ** (-30 / 20)  # of the loudest frame: below it is a pause, or a consonant too soft to matter for times
_BROKEN = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Word:
    """Samples count from the start of the audio that was recognised."""

    text: str
    start_sample: int
    end_sample: int


def group(tokens: Sequence[int], decode: Callable[[list[int]], str], language: str) -> list[tuple[str, int]]:
    """(text, number of tokens) of each word; texts keep their leading space and join to the whole."""
    words: list[tuple[str, int]] = []
    pending: list[int] = []
    for token in tokens:
        pending.append(token)
        text = decode(pending)
        if _BROKEN in text:
            continue
        opens = language in UNSPACED or text.startswith(" ")
        is_mark = not any(character.isalnum() for character in text)
        if words and (is_mark or not opens):
            words[-1] = (words[-1][0] + text, words[-1][1] + len(pending))
        else:
            words.append((text, len(pending)))
        pending = []
    if pending and words:  # half a character at the very end belongs to the word it ends
        words[-1] = (words[-1][0] + decode(pending), words[-1][1] + len(pending))
    return words


def times(
    words: Sequence[tuple[str, int]], path: Sequence[tuple[int, int]], first_sample: int, end_sample: int
) -> tuple[Word, ...]:
    """Words with times, monotone and within `first_sample` to `end_sample`.

    `path`: (token, encoder frame) pairs, both rising, over the tokens of `words` and the end token.
    """
    first_frame: dict[int, int] = {}
    for token, frame in path:
        first_frame.setdefault(token, frame)
    result = []
    position = 0
    earliest = first_sample
    for text, num_tokens in words:
        start = _sample(first_frame, position, first_sample, earliest, end_sample)
        position += num_tokens
        end = _sample(first_frame, position, first_sample, start, end_sample)
        earliest = end
        if text.strip():
            result.append(Word(text.strip(), start, end))
    return tuple(result)


def tighten(words: Sequence[Word], level: NDArray[np.float64]) -> tuple[Word, ...]:
    """`words` without the pauses at their edges; a word that is quiet all over stays as it is.

    `level`: RMS of each 20 ms frame of the audio in which samples are counted.
    """
    loud = level > QUIET * level.max(initial=0.0)
    result = []
    for word in words:
        first = word.start_sample // FRAME_SAMPLES
        frames = np.flatnonzero(loud[first : -(-word.end_sample // FRAME_SAMPLES)])
        if frames.size:
            start = max(word.start_sample, (first + int(frames[0])) * FRAME_SAMPLES)
            end = min(word.end_sample, (first + int(frames[-1]) + 1) * FRAME_SAMPLES)
            word = Word(word.text, start, end)
        result.append(word)
    return tuple(result)


def _sample(first_frame: dict[int, int], token: int, first_sample: int, earliest: int, latest: int) -> int:
    """Where `token` starts; a token the path does not reach starts where the audio ends."""
    frame = first_frame.get(token)
    at = latest if frame is None else first_sample + frame * FRAME_SAMPLES
    return min(max(at, earliest), latest)
