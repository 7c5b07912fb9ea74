"""Which of the words that were heard belong to the LLM's reply, and not to a filler or canned opener before it. Pure.

The reply's text is the server's word for it, the heard words are our own recognition's, so both hold errors.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEAD_LETTERS = 40  # of the reply: what comes later does not begin it
HEAD_WORDS = 12
MIN_RUN = 3  # words in a row
MIN_LETTERS = 6  # heard, of a longer reply: fewer fit by chance
ALIKE = 0.55  # share of letters in common (twice the common by all), from which on words count as heard
AS_GOOD = 1.2  # times the edits of the best beginning, and one more of a longer reply: as few are as good, and earlier


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
    """Index of the heard word that begins the reply; None when nothing of it was heard.

    It is the word from which on the letters are most like the reply's first: letters, because one word may be heard as
    two, and a name as another ("Olavie" as "Oh, Levi"). Leaving out first words that were misheard ("Being turned" for
    "Bien sûr") must take clearly fewer edits than keeping them; and of a reply that says the same twice, what comes
    before the better copy is alike as well. Where its beginning was misheard beyond that, the first words in a row that
    were heard rightly tell where it stood.
    """
    head = "".join(plain(reply))[:HEAD_LETTERS]
    said = ["".join(plain(word.text)) for word in heard]
    if not head or not any(said):
        return None
    if len("".join(said)) < min(MIN_LETTERS, len(head)):
        return 0 if head.startswith("".join(said)) else None
    rests = ["".join(said[i:])[: len(head)] for i in range(len(said))]
    alike = {i: found for i, rest in enumerate(rests) if (found := _likeness(rest, head)) > ALIKE}
    if not alike:
        return _before_first_run(said, plain(reply)[:HEAD_WORDS])
    while alike:
        best = max(alike, key=lambda i: (alike[i], -i))
        alike = {i: found for i in range(best) if (found := _likeness("".join(said[i:best]), head)) > ALIKE}
    most = AS_GOOD * _edits_of_beginnings(rests[best], head) + (len(head) >= MIN_LETTERS)
    return next(i for i in range(best + 1) if _edits_of_beginnings(rests[i], head) <= most)


def _likeness(letters: str, head: str) -> float:
    """Of letters and as many of the reply's first; 0 for too few to tell."""
    if len(letters) < min(MIN_LETTERS, len(head)):
        return 0.0
    return difflib.SequenceMatcher(a=letters[: len(head)], b=head[: len(letters)], autojunk=False).ratio()


def _before_first_run(said: Sequence[str], head: Sequence[str]) -> int | None:
    matcher = difflib.SequenceMatcher(a=said, b=head, autojunk=False)
    run = next((block for block in matcher.get_matching_blocks() if block.size >= MIN_RUN), None)
    return None if run is None else max(0, run.a - run.b)


def word_error_rate(reference: str, hypothesis: str) -> float:
    """Edits by words over the reference's length; 0 for two empty texts, 1 for words out of nothing."""
    ref, hyp = plain(reference), plain(hypothesis)
    if not ref:
        return float(bool(hyp))
    *_, last = _edit_rows(ref, hyp)
    return last[-1] / len(ref)


def _edits_of_beginnings(one: str, other: str) -> int:
    """Fewest edits by letters that make all of one text a beginning of the other."""
    rows = list(_edit_rows(one, other))
    return min(min(rows[-1]), *(row[-1] for row in rows))


def _edit_rows(one: Sequence[str], other: Sequence[str]) -> Iterator[list[int]]:
    """Row i holds the edits from the first i items of one to each beginning of the other (Wagner and Fischer, 1974)."""
    row = list(range(len(other) + 1))
    yield row
    for i, item in enumerate(one, 1):
        above, row = row, [i]
        for j, fellow in enumerate(other, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (item != fellow)))
        yield row


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
