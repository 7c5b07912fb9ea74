"""What keeps words that nobody said out of a transcript. Pure.

Whisper answers silence, noise and tones with words it learned from subtitles ("Thank you.", "you you you"), and
sometimes repeats itself until its token budget is spent. Three guards: audio below a floor never reaches the model
(`audible_span`); a result whose no-speech probability and likelihood speak against it has no words (`is_speech`);
a loop is cut after its first round (`cut_loop`).

Deliberately unknown here: voice activity. The caller of the service has a VAD; this is the second line.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wire.listen import SAMPLE_RATE_HZ
from wire.pcm import Pcm16

FRAME_SAMPLES = SAMPLE_RATE_HZ // 50  # 20 ms: an encoder frame of Whisper
# RMS of -66 dBFS. Clips at -26 dBFS that were attenuated by 40 dB keep frames above it and are still recognised.
FLOOR_RMS = 32768 * 10 ** (-66 / 20)
MARGIN_SAMPLES = round(0.3 * SAMPLE_RATE_HZ)  # kept around audible audio: soft onsets and releases lie below the floor

# bench/stt_cpu.py, tiny.en and base: clips, also 40 dB down, through a telephone or at 0 dB SNR, have at most 0.43,
# noises and tones at least 0.58. Speech after 3 s of silence had up to 0.84, at a likelihood of -0.14. Nearly every
# noise and tone decodes to something; what OpenAI's own rule (above 0.6 and below -1.0) let through had 0.90 or more,
# but for one at 0.58 and -1.97.
NO_SPEECH = 0.88
NO_SPEECH_IF_UNLIKELY = 0.5
UNLIKELY = -1.0  # mean log-probability per token; OpenAI's whisper/transcribe.py uses the same threshold

FASTEST_TOKENS_PER_S = 8.0  # digits read fast take 6.7 Whisper tokens per second
FREE_TOKENS = 4  # of rounding: a short "one, two" may be 4 tokens in half a second
LONG_LOOP_TOKENS = 30  # in a row of one to four tokens repeated: "oh, oh, oh", however slowly
LONG_LOOP_PERIOD = 4  # whole sentences are repeated by recordings and by people who are not understood


def audible_span(pcm: Pcm16) -> tuple[int, int] | None:
    """(start, end) in samples of what lies above the floor, with a margin; None when nothing does."""
    if not pcm.size:
        return None
    level = frame_rms(pcm)
    loud = np.flatnonzero(level > FLOOR_RMS)
    if not loud.size:
        return None
    start = int(loud[0]) * FRAME_SAMPLES - MARGIN_SAMPLES
    end = int(loud[-1] + 1) * FRAME_SAMPLES + MARGIN_SAMPLES
    return max(0, start), min(pcm.size, end)


def frame_rms(pcm: Pcm16) -> NDArray[np.float64]:
    """RMS of each 20 ms frame, a constant offset removed; a last short frame counts as one."""
    centred = pcm.astype(np.float64) - np.mean(pcm)
    num_frames = -(-pcm.size // FRAME_SAMPLES)
    energy = np.zeros(num_frames * FRAME_SAMPLES)
    energy[: pcm.size] = centred**2
    total = energy.reshape(num_frames, FRAME_SAMPLES).sum(axis=1)
    samples = np.full(num_frames, FRAME_SAMPLES)
    samples[-1] = pcm.size - (num_frames - 1) * FRAME_SAMPLES
    rms: NDArray[np.float64] = np.sqrt(total / samples)
    return rms


def is_speech(no_speech_prob: float, mean_logprob: float, *, looped: bool) -> bool:
    """Whether the decoder's own figures allow its words. `looped`: `cut_loop` had to cut them."""
    doubtful = looped or mean_logprob < UNLIKELY
    return no_speech_prob <= (NO_SPEECH_IF_UNLIKELY if doubtful else NO_SPEECH)


def has_words(text: str) -> bool:
    """Punctuation alone is not a word."""
    return any(character.isalnum() for character in text)


def cut_loop(tokens: Sequence[int], audible_s: float, *, ran_out: bool) -> list[int]:
    """`tokens` up to the end of the first round of a loop; all of them when there is none.

    People repeat themselves ("no, no, no", "five five five"), so a repetition alone is no loop. It is one when the
    decoder spent its whole budget on it (`ran_out`), when so many tokens cannot be said in `audible_s`, or when one
    to four tokens fill a line or more.
    """
    too_fast = len(tokens) > FREE_TOKENS + FASTEST_TOKENS_PER_S * audible_s
    ids = np.asarray(tokens)
    cut = len(tokens)
    longest = 0
    for period in range(1, len(tokens) // 2 + 1):
        for start, length in _runs(ids[:-period] == ids[period:]):
            repeated = length + period
            if length < period:
                continue  # less than two whole rounds
            at_end = start + repeated == len(tokens)
            is_loop = (
                (ran_out and at_end)
                or (too_fast and repeated > FREE_TOKENS)
                or (repeated >= LONG_LOOP_TOKENS and period <= LONG_LOOP_PERIOD)
            )
            if is_loop and repeated > longest:
                longest, cut = repeated, start + period
    return list(tokens[:cut])


def _runs(equal: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(start, length) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    return [(int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
