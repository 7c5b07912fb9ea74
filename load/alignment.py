"""Which of the words that were heard belong to the LLM's reply, and not to a filler or canned opener before it. Pure.

The reply's text is the server's word for it, the heard words are our own recognition's, so both hold errors: a heard
word begins the reply when it starts the first run that matches the head of the reply.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

MIN_RUN = 2  # words in a row; a reply of one word may match with one
ALIKE = 0.5  # share of letters that fit, from which on misheard words are taken for what they should be
MISHEARD_MORE = 2  # words that one may be misheard as, beside itself: "Olavie" as "Oh, Levi"
HEAD_WORDS = 12  # of the reply: what comes later does not begin it


@dataclass(frozen=True)
class HeardWord:
    text: str
    start_s: float
    end_s: float


def plain(text: str) -> list[str]:
    """Lower case words without punctuation, however their characters and apostrophes are written."""
    text = unicodedata.normalize("NFC", text.lower()).replace("’", "'")
    kept = "".join(char if char.isalnum() or char == "'" else " " for char in text)
    return [bare for word in kept.split() if (bare := word.strip("'"))]


def reply_begins_at(heard: Sequence[HeardWord], reply: str) -> int | None:
    """Index of the heard word that begins the reply; None when nothing of it was heard."""
    head = plain(reply)[:HEAD_WORDS]
    said = [" ".join(plain(word.text)) for word in heard]
    if not head or not said:
        return None
    matcher = difflib.SequenceMatcher(a=said, b=head, autojunk=False)
    need = min(MIN_RUN, len(head))
    for block in matcher.get_matching_blocks():
        if block.size >= need:
            return _misheard_from(said[: block.a], head[: block.b])
    return None


def _misheard_from(said: Sequence[str], head: Sequence[str]) -> int:
    """Where the head's words begin that stand before the run and were misheard: as like as letters, or as many."""
    wanted = "".join(head)
    starts = range(max(0, len(said) - len(head) - MISHEARD_MORE), len(said) + 1)
    likeness = {i: difflib.SequenceMatcher(a="".join(said[i:]), b=wanted, autojunk=False).ratio() for i in starts}
    best = max(starts, key=lambda i: likeness[i])
    return best if likeness[best] > ALIKE else max(0, len(said) - len(head))


def word_error_rate(reference: str, hypothesis: str) -> float:
    """Edits by words over the reference's length; 0 for two empty texts, 1 for words out of nothing."""
    ref, hyp = plain(reference), plain(hypothesis)
    if not ref:
        return float(bool(hyp))
    row = list(range(len(hyp) + 1))
    for i, word in enumerate(ref, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(hyp, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1] / len(ref)


def closest_run(text: str, heard: Sequence[str]) -> tuple[float, str]:
    """The words in a row of `heard` that differ least from `text`, and the share of its words that are wrong.

    Sellers, 1980: the table of edits by words, where a run may begin and end anywhere.
    """
    wanted = plain(text)
    words = [word for each in heard for word in plain(each)]
    row = [(j, 0) for j in range(len(wanted) + 1)]  # edits, and where the run begins
    best = (len(wanted), 0, 0)
    for i, word in enumerate(words, 1):
        above, row = row, [(0, i)]
        for j, other in enumerate(wanted, 1):
            fitting = (above[j - 1][0] + (word != other), above[j - 1][1])
            more, fewer = (above[j][0] + 1, above[j][1]), (row[j - 1][0] + 1, row[j - 1][1])
            row.append(min(fitting, more, fewer, key=lambda edits: edits[0]))
        edits, begins_at = row[-1]
        if edits < best[0]:
            best = (edits, begins_at, i)
    edits, begins_at, ends_at = best
    return edits / max(1, len(wanted)), " ".join(words[begins_at:ends_at])
