"""How English says what is no word: numbers, dates, addresses, abbreviations.

The rules are those of the voice service, which speaks whatever it is sent: `tts_engine.text`. Here their words take the
place of what was written, so that any voice says the same.
"""

from __future__ import annotations

from tts_engine.text.tokens import PAUSE, Said, tokenise
from voice.speakable.rewriting import Edit


def readings(text: str) -> list[Edit]:
    """In order, without overlap."""
    edits: list[Edit] = []
    for token in tokenise(text):
        if isinstance(token, Said) and _is_rewritten(token, text[token.start : token.end]):
            said = " ".join(token.words).replace(f" {PAUSE}", PAUSE)
            edits.append((token.start, token.end, _apart(text, token, said)))
    return edits


def _is_rewritten(token: Said, written: str) -> bool:
    return len(token.words) > 1 or token.words[0].casefold() != written.replace("’", "'").casefold()


def _apart(text: str, token: Said, said: str) -> str:
    """Blanks from what stands right beside it, as the 5 of 5+2, but for marks."""
    before, after = text[: token.start][-1:], text[token.end :][:1]
    return f"{' ' * _touches(before)}{said}{' ' * (_touches(after) and after != '.')}"


def _touches(char: str) -> bool:
    return char.isalnum() or (bool(char) and char in ".+=&#@%$/")
