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
    tokens = [token for token in tokenise(text) if isinstance(token, Said)]
    done = 0  # up to where the tokens before reach
    for i, token in enumerate(tokens):
        following = tokens[i + 1].start if i + 1 < len(tokens) else len(text)
        if _is_rewritten(token, text[token.start : token.end]):
            edits.append(_reading(text, token, done, following))
            done = edits[-1][1]
        else:
            done = token.end
    return edits


def _reading(text: str, token: Said, done: int, following: int) -> Edit:
    """Apart from what stands right beside it, as the 5 of 5+2, but for marks; the hyphen of I-95 goes."""
    start, end = token.start, token.end
    if start > done and text[start - 1] == "-" and text[: start - 1][-1:].isalnum():
        start -= 1
    if end < following and text[end] == "-" and text[end + 1 :][:1].isalnum():
        end += 1
    before, after = text[:start][-1:], text[end:][:1]
    said = " ".join(token.words).replace(f" {PAUSE}", PAUSE)
    return start, end, f"{' ' * _touches(before)}{said}{' ' * (_touches(after) and after != '.')}"


def _is_rewritten(token: Said, written: str) -> bool:
    return len(token.words) > 1 or token.words[0].casefold() != written.replace("’", "'").casefold()


def _touches(char: str) -> bool:
    return char.isalnum() or (char != "" and char in ".+=&#@%$/-−*^")
