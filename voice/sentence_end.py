"""Whether words end a sentence, for a language model: how likely it takes a full stop to come next. Pure.

Recognition writes a full stop where the audio ends; so the marks at the end are taken off, and the model, which has
heard nothing, is asked what follows. It reads the words as the beginning of a text, not as a message of a conversation:
that told ends from pauses best, and the prompt is short (docs/measurements.md, "When a turn is over").
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from voice.endings import STOPS, TRAILING

START = "<|endoftext|>"  # where a text begins for SmolLM, Qwen and OpenAI's models; to others it is some text
NUM_TOKENS = 5  # likely ones, among which the stops are looked for; OpenAI's bound
FLOOR = -4.0  # log P, for a stop that is not among them
MAX_CHARACTERS = 200  # of the end of what was said: 40 tokens, 45 ms on two cores
_MARKS = STOPS + "".join(TRAILING) + " "


def prompt(text: str) -> str | None:
    """To be continued by one token. None where nothing was said."""
    words = text.strip().rstrip(_MARKS)
    if len(words) > MAX_CHARACTERS:
        words = words[-MAX_CHARACTERS:].partition(" ")[2]
    return START + words if words else None


def log_probability(likely: Mapping[str, float]) -> float:
    """Of a full stop, from log P of the likeliest tokens; at least `FLOOR`."""
    total = sum(math.exp(min(0.0, logprob)) for token, logprob in likely.items() if token and token[0] in STOPS)
    return min(0.0, math.log(total)) if total > math.exp(FLOOR) else FLOOR
