"""From text to what a voice speaks: phrases of symbols, and which characters each run of symbols came from. Pure.

English. A word of another script has no sounds here and is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from tts_engine.text import letters
from tts_engine.text.alphabet import VOWELS, to_espeak
from tts_engine.text.lexicon import Lexicon, add_s
from tts_engine.text.tokens import PAUSE, Mark, Said, Token, tokenise
from tts_engine.text.words import SPELLED

# A voice's cost grows with the square of this; a sentence of 200 characters has about 190 symbols.
MAX_PHRASE_SYMBOLS = 360
MAX_SPELLED_LETTERS = 5  # capitals nobody listed: up to this they are spelled, above they are a word that is shouted
_STRENGTH = ",:;.!?"  # of marks that meet, the later here is heard
# Function words as they sound within a sentence, where the lexicon has them as they sound alone.
_WEAK = {"a": "ɐ", "an": "ɐn", "of": "ʌv", "and": "ænd", "to": "tə", "your": "jʊɹ", "i": "ˌI", "or": "ɔɹ", "for": "fɔɹ"}
_BEFORE_VOWEL = {"the": "ði", "to": "tʊ"}
_BEFORE_CONSONANT = {"the": "ðə"}


@dataclass(frozen=True)
class PhraseWord:
    """Symbols `first` to `last` (not included) of its phrase; characters `start` to `end` of the text."""

    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True)
class Phrase:
    symbols: str
    words: tuple[PhraseWord, ...]


def phrases(text: str, lexicon: Lexicon) -> tuple[Phrase, ...]:
    """Usually one; several when the text is long. None when nothing in it can be spoken."""
    result: list[Phrase] = []
    symbols, words = "", list[PhraseWord]()
    for piece in _pieces(tokenise(text), lexicon):
        if isinstance(piece, Mark):
            symbols = _with_mark(symbols, piece.mark) if words else symbols
            continue
        sounds, said = piece
        if words and len(symbols) + len(sounds) + 1 > MAX_PHRASE_SYMBOLS:
            result.append(Phrase(symbols, tuple(words)))
            symbols, words = "", []
        if symbols:
            symbols += " "
        words.append(PhraseWord(len(symbols), len(symbols) + len(sounds), said.start, said.end))
        symbols += sounds
    if words:
        result.append(Phrase(symbols, tuple(words)))
    return tuple(result)


def _with_mark(symbols: str, mark: str) -> str:
    """A mark right behind one joins it: the stronger is heard."""
    last = symbols[-1]
    if last in _STRENGTH:
        return symbols[:-1] + max(last, mark, key=_STRENGTH.index)
    return symbols + mark


def _pieces(tokens: list[Token], lexicon: Lexicon) -> Iterator[Mark | tuple[str, Said]]:
    spoken = [_sounds(token.words, lexicon) if isinstance(token, Said) else () for token in tokens]
    for i, token in enumerate(tokens):
        if isinstance(token, Mark):
            yield token
            continue
        following = spoken[i + 1][0] if i + 1 < len(tokens) and spoken[i + 1] else ""
        sounds = [*spoken[i]]
        for k, word in enumerate(token.words):
            after = sounds[k + 1] if k + 1 < len(sounds) else following
            sounds[k] = _weak(word, sounds[k], after)
        text = " ".join(to_espeak(s) for s in sounds if s).replace(f" {PAUSE}", PAUSE)
        if text.strip(" ,"):
            yield text, token


def _weak(word: str, sounds: str, following: str) -> str:
    """The form a function word takes between others. A capital letter is a name and has none."""
    key = word.lower()
    if (len(word) == 1 and word.isupper() and word != "I") or not following:
        return sounds
    if key in _BEFORE_VOWEL and following.lstrip("ˈˌ")[:1] in tuple(VOWELS):
        return _BEFORE_VOWEL[key]
    return _BEFORE_CONSONANT.get(key) or _WEAK.get(key) or sounds


def _sounds(words: tuple[str, ...], lexicon: Lexicon) -> tuple[str, ...]:
    return tuple(PAUSE if word == PAUSE else sound(word, lexicon) for word in words)


def sound(word: str, lexicon: Lexicon) -> str:
    """One word in the lexicon's alphabet; empty when it has no letter of ours."""
    word = _fold(word)
    if len(word) == 1 and word.isupper():
        return lexicon.letter(word) or ""
    if not any(c.isalpha() for c in word):
        return ""
    if (capitals := _capitals(word, lexicon)) is not None:
        return capitals
    if found := lexicon.find(word):
        return found
    parts = [part for part in word.split("-") if part]
    if len(parts) > 1:
        return " ".join(sound(part, lexicon) for part in parts)
    return _by_letters(word, lexicon)


def _capitals(word: str, lexicon: Lexicon) -> str | None:
    """FBI, NASA, PCs, CEO's; None when the word is none of these."""
    stem, plural = word, ""
    for ending in ("'s", "s"):
        if word.endswith(ending) and word[: -len(ending)].isupper() and len(word) > len(ending) + 1:
            stem, plural = word[: -len(ending)], ending
            break
    if not stem.isupper() or len(stem) < 2 or not stem.isalpha():
        return None
    if stem in SPELLED:
        sounds = _spell(stem, lexicon)
    elif lexicon.has_capitals(stem):
        sounds = lexicon.find(stem) or ""
    elif lexicon.find(stem.lower()) is not None and not plural:
        return None  # shouted
    elif len(stem) <= MAX_SPELLED_LETTERS:
        sounds = _spell(stem, lexicon)
    else:
        return None
    return add_s(sounds) if plural else sounds


def _spell(capitals: str, lexicon: Lexicon) -> str:
    return " ".join(lexicon.letter(c) or "" for c in capitals)


def _by_letters(word: str, lexicon: Lexicon) -> str:
    lower = word.lower().strip("'")
    stem, possessive = (lower[:-2], True) if lower.endswith("'s") else (lower, False)
    plain = "".join(c for c in stem if "a" <= c <= "z")
    sounds = letters.pronounce(plain)
    if not any(c in VOWELS for c in sounds):  # qwrtp
        sounds = _spell(plain.upper(), lexicon)
    return add_s(sounds) if possessive and sounds else sounds


def _fold(word: str) -> str:
    """Accents off: the rules and the lexicon know a to z."""
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKD", word.replace("ß", "ss").replace("ø", "o").replace("æ", "ae"))
    return "".join(c for c in plain if c.isascii() and (c.isalpha() or c in "'-"))
