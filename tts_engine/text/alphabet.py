"""From the lexicon's alphabet to the IPA of espeak's American English, on which Piper's voices were trained. Pure."""

from __future__ import annotations

import re

VOWELS = "AIOWYæɑɔəɐɛɜɪiuʊʌᵊᵻ"
# espeak marks length: ɑ, ɔ, ɜ and u are long wherever they stand.
_SOUNDS = {
    "A": "eɪ",
    "I": "aɪ",
    "O": "oʊ",
    "W": "aʊ",
    "Y": "ɔɪ",
    "ʤ": "dʒ",
    "ʧ": "tʃ",
    "ᵊ": "ə",
    "ɑ": "ɑː",
    "ɔ": "ɔː",
    "ɜ": "ɜː",
    "u": "uː",
}
# i is long when stressed, as in need, and short in happy and idea.
_STRESSED_I = re.compile(r"(?<=[ˈˌ])i")
_LONG_R = re.compile(r"ɜɹ")
_WEAK_R = re.compile(rf"əɹ(?![{VOWELS}ˈˌ])")


def to_espeak(word: str) -> str:
    """One word's sounds. Stress marks stay: both alphabets put them before the vowel."""
    if sum(c in VOWELS for c in word) == 1 and word != "ði":  # he, we, be
        word = word.replace("i", "iː")
    else:
        word = _STRESSED_I.sub("iː", word)
    word = _WEAK_R.sub("ɚ", _LONG_R.sub("ɜ", word))
    return "".join(_SOUNDS.get(c, c) for c in word)
