"""How English words are pronounced, by looking them up. The lexicon is misaki's American English one (Apache-2.0).

Its alphabet writes a diphthong as one capital, A I O W Y for those of day, my, go, now, boy, and an affricate as ʤ ʧ;
ˈ and ˌ stand before the vowel they stress. What is not listed is built from what is: a known stem and its ending, a
known prefix, two known words. Pure after loading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from wire.errors import Unavailable

FILES = ("us_silver.json", "us_gold.json")  # the later one wins: gold was checked by hand
_MIN_PART = 3  # letters of each half of a compound; shorter ones split words at random
_PREFIXES = {
    "un": "ˌʌn",
    "re": "ɹˌi",
    "pre": "pɹˌi",
    "non": "nˌɑn",
    "over": "ˌOvəɹ",
    "under": "ˌʌndəɹ",
    "mis": "mˌɪs",
    "anti": "ˌænti",
    "multi": "mˌʌlti",
    "auto": "ˌɔɾO",
}
_HISSING = ("s", "z", "ʃ", "ʒ", "ʧ", "ʤ")
_VOICELESS = ("p", "t", "k", "f", "θ")
# Common in conversation and listed nowhere.
_EXTRA = {
    "ok": "OkˈA",
    "okay": "OkˈA",
    "wi-fi": "wˈIfˌI",
    "wifi": "wˈIfˌI",
    "e-mail": "ˈimˌAl",
    "app": "ˈæp",
    "apps": "ˈæps",
    "miz": "mˈɪz",
    "offhook": "ˌɔfhˈʊk",
    "voicemail": "vˈYsmˌAl",
    "login": "lˈɔɡˌɪn",
    "checkout": "ʧˈɛkˌWt",
    "hashtag": "hˈæʃtˌæɡ",
    "o'clock": "əklˈɑk",
    "hm": "hˈʌm",
    "hmm": "hˈʌm",
    "mm": "ˈʌm",
    "uh": "ˈʌ",
    "huh": "hˈʌ",
    "live": "lˈɪv",  # the lexicon's is the adjective; callers say where they live
}


def read_lexicon(folder: Path) -> Lexicon:
    """Raises: Unavailable."""
    entries: dict[str, str] = {}
    for name in FILES:
        path = folder / name
        try:
            listed = json.loads(path.read_text(encoding="utf-8"))
            # An entry that depends on the part of speech is a mapping; None there means: as elsewhere.
            entries |= {k: v if isinstance(v, str) else v["DEFAULT"] for k, v in listed.items()}
        except OSError as error:
            raise Unavailable(f"{path}: cannot read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Unavailable(f"{path}: no lexicon: {error}") from None
    return Lexicon(entries)


class Lexicon:
    def __init__(self, entries: Mapping[str, str]) -> None:
        self._entries = {**entries, **_EXTRA}

    def has_capitals(self, word: str) -> bool:
        """Whether the word is listed in capitals: an acronym said as a word, such as NASA."""
        return word.isupper() and word in self._entries

    def letter(self, letter: str) -> str | None:
        """The name of a capital letter."""
        return self._entries.get(letter)

    def find(self, word: str) -> str | None:
        """The pronunciation of a word of letters, apostrophes and hyphens, or None when it cannot be built."""
        return self._listed(word) or self._inflected(word) or self._prefixed(word) or self._compound(word)

    def _listed(self, word: str) -> str | None:
        for form in (word, word.lower(), word.lower().capitalize()):
            if found := self._entries.get(form):
                return found
        return None

    def _inflected(self, word: str) -> str | None:
        lower = word.lower()
        if lower.endswith("s'"):
            return self._known(word[:-1])
        if lower.endswith("'s"):
            stem = self._known(word[:-2])
            return add_s(stem) if stem else None
        if lower.endswith("in'"):
            return self._inflected(word[:-1] + "g")
        for ending, add in (("s", add_s), ("ed", add_ed), ("ing", add_ing)):
            if lower.endswith(ending):
                for stem in _stems(lower[: -len(ending)], ending):
                    if len(stem) >= 2 and (found := self._listed(stem)):
                        return add(found)
        return self._derived(lower)

    def _derived(self, lower: str) -> str | None:
        for ending, sound in (
            ("ly", "li"),
            ("ness", "nəs"),
            ("less", "ləs"),
            ("ful", "fəl"),
            ("er", "əɹ"),
            ("ment", "mənt"),
        ):
            if lower.endswith(ending):
                for stem in _stems(lower[: -len(ending)], ending):
                    if len(stem) >= _MIN_PART and (found := self._listed(stem)):
                        return found + sound
        return None

    def _known(self, word: str) -> str | None:
        return self._listed(word) or self._inflected(word)

    def _prefixed(self, word: str) -> str | None:
        lower = word.lower()
        for prefix, sound in _PREFIXES.items():
            rest = lower.removeprefix(prefix).lstrip("-")
            if lower.startswith(prefix) and len(rest) >= _MIN_PART and (found := self._known(rest)):
                return sound + found
        return None

    def _compound(self, word: str) -> str | None:
        lower = word.lower()
        for at in range(len(lower) - _MIN_PART, _MIN_PART - 1, -1):
            first = self._entries.get(lower[:at])
            if first and (second := self._known(lower[at:].lstrip("-"))):
                return first + second.replace("ˈ", "ˌ")
        return None


def _stems(rest: str, ending: str) -> list[str]:
    """What `rest` may have been before the ending was written to it: stopp-, mak-, tri-."""
    stems = [rest]
    if ending == "s":
        if rest.endswith("ie"):
            stems = [rest[:-2] + "y", rest]
        elif rest.endswith("e"):
            stems = [rest, rest[:-1]]
    elif ending in ("ed", "ing", "er"):
        stems = [rest + "e", rest]
        if len(rest) >= 3 and rest[-1] == rest[-2]:
            stems = [rest, rest[:-1], rest + "e"]
        elif len(rest) >= 2 and rest[-1] not in "aeiouwxy" and rest[-2] in "aeiou":
            stems = [rest + "e", rest]
        if rest.endswith("i"):
            stems = [rest[:-1] + "y"]
    elif rest.endswith("i"):
        stems = [rest[:-1] + "y", rest]
    return stems


def add_s(stem: str) -> str:
    """Plural, third person, possessive: buses, cats, dogs."""
    if stem.endswith(_HISSING):
        return stem + "ᵻz"
    return stem + ("s" if stem.endswith(_VOICELESS) else "z")


def add_ed(stem: str) -> str:
    """Waited, stopped, called."""
    if stem.endswith(("t", "d")):
        return stem + "ᵻd"
    return stem + ("t" if stem.endswith((*_VOICELESS, "s", "ʃ", "ʧ")) else "d")


def add_ing(stem: str) -> str:
    return stem + "ɪŋ"
