"""Text of a wanted number of tokens, the same for the same name and seed. Pure.

The words are common and short, so that nearly every vocabulary has each as one token with the space before it; what a
server makes of them is measured with three requests (`fit`), or taken to be one token a word when it does not tell.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load.traces.trace import Part, Role

_COMMON = """
the of and to in is that it for was on are as with his they be at one have this from or had by hot but some what there
we can out other were all your when up use word how said an each she which do their time if will way about many then
them would write like so these her long make thing see him two has look more day could go come did my sound no most
number who over know water than call first people may down side been now find any new work part take get place made
live where after back little only round man year came show every good me give our under name very through just form
great think say help low line before turn cause same mean differ move right boy old too does tell set three want air
well also play small end put home read hand port large add even land here must big high such follow act why ask men
change went light kind off need house picture try again animal point mother world near build self earth father head
"""
WORDS = tuple(_COMMON.split())
PROBES = ((32, 32), (128, 128), (32, 32, 32, 32))  # words of each message: system, user, assistant, user


@dataclass(frozen=True)
class Calibration:
    """A prompt of m messages and n words is `request_tokens` + m * `message_tokens` + n * `tokens_per_word` long."""

    tokens_per_word: float = 1.0
    message_tokens: float = 0.0
    request_tokens: float = 0.0
    is_measured: bool = False

    def __str__(self) -> str:
        if not self.is_measured:
            return "prompt lengths are an estimate: one token a word, the server reports no usage"
        return (
            f"prompt lengths by the server's own count: {self.tokens_per_word:.3f} tokens a word,"
            f" {self.message_tokens:.0f} a message, {self.request_tokens:.0f} a request"
        )


def fit(counts: Sequence[int]) -> Calibration:
    """From the tokens that the prompts of `PROBES` were counted as; an estimate where that makes no sense."""
    short, long, many = counts
    tokens_per_word = (long - short) / (sum(PROBES[1]) - sum(PROBES[0]))
    if tokens_per_word <= 0:
        return Calibration()
    more_words = sum(PROBES[2]) - sum(PROBES[0])
    message_tokens = (many - short - tokens_per_word * more_words) / (len(PROBES[2]) - len(PROBES[0]))
    message_tokens = max(0.0, message_tokens)
    rest = short - tokens_per_word * sum(PROBES[0]) - message_tokens * len(PROBES[0])
    return Calibration(tokens_per_word, message_tokens, max(0.0, rest), is_measured=True)


def probe(lengths: Sequence[int], seed: int) -> list[dict[str, str]]:
    """Messages of so many words."""
    roles: tuple[Role, ...] = ("system", "user", "assistant", "user")
    return [
        {"role": role, "content": text(f"probe {i}", length, seed)}
        for i, (role, length) in enumerate(zip(roles, lengths, strict=False))
    ]


def text(name: str, num_words: int, seed: int) -> str:
    """More words of the same name begin with the fewer."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return " ".join(WORDS[i] for i in (rng.random(num_words) * len(WORDS)).astype(int))


def messages(parts: Sequence[Part], calibration: Calibration, seed: int) -> list[dict[str, str]]:
    """OpenAI's messages: neighbouring parts of one role are one message."""
    found: list[tuple[Role, list[str]]] = []
    for part in parts:
        is_first = not found or found[-1][0] != part.role
        tokens = part.num_tokens - (calibration.message_tokens if is_first else 0)
        tokens -= 0 if found else calibration.request_tokens
        words = text(part.name, max(1, round(tokens / calibration.tokens_per_word)), seed)
        if is_first:
            found.append((part.role, []))
        found[-1][1].append(words)
    return [{"role": role, "content": " ".join(texts)} for role, texts in found]
