"""What the last words of a transcript say about whether more will come. Pure, by word lists; no model.

Recognition ends nearly everything with a full stop, so a mark says little against the end and its absence a lot; a word
that cannot end a sentence says more. In Korean the verb comes last and its ending tells: -요, -다, -까, -죠,
-네 close a sentence; connective endings (-고, -는데, -서, -면, -지만) and particles (은, 는, 이, 가, 을, 를, 에)
ask for more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["stop", "more", "none"]
LastWord: TypeAlias = Literal["closing", "hanging", "open"]

STOPS = ".?!。？！"
TRAILING = (",", "-", "\N{EM DASH}", "\N{EN DASH}", "...", "\N{HORIZONTAL ELLIPSIS}", ":", ";", "、")


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


AUXILIARIES_EN = _split("am is are was were be been has had will would could should shall might must can may")
PRONOUNS_EN = _split("i you we they he she it that this there who what where how not")
HANGING_EN = AUXILIARIES_EN | _split("""
    a an the my your his her our their its these those some any every no
    and or but nor so because although unless until while whether if than as that which whose
    to of for with without in on at from by about into onto over under between through during after before
    i we they he she i'm i'd i'll i've we're we'd it's that's there's what's he's she's they're you're
    um uh er erm hmm mm like just very only other another such
""")
CLOSING_EN = _split("yes yeah yep no nope okay ok thanks bye goodbye please correct right sure")
GREETINGS_EN = _split("hello hi hey good welcome")
VERBS_EN = AUXILIARIES_EN | _split("""
    do does did have let go goes went come comes came get gets got give gives gave make makes made take takes
    took say says said tell tells told know knows knew think thinks thought see sees saw look looks want wants
    need needs likes love feel feels felt find finds found try tries call calls ask asks use uses work works
    seem seems leave left put keep kept begin began start starts stop stops help helps show shows hear heard
    play run ran move live believe hold bring brought happen happens write wrote sit stand lose lost pay paid
    meet met set learn change lead understand speak spoke read spend grow open opens close closes walk win offer
    remember buy bought wait die send sent expect stay fall cut reach kill remain pass sell sold order book
    cancel reset press enter pick check listen thank hope wish mean means forget forgot break broke fix talk say
    follow receive return ship cost costs arrive arrives jump jumps like
""")
CLOSING_KO = ("요", "다", "까", "죠", "네")
CLOSING_WORDS_KO = _split("네 예 응 아니")
HANGING_KO = (
    *("고", "데", "서", "면", "지만", "니까", "다가", "려고", "거나", "든지", "도록", "는지"),
    *("은", "는", "이", "가", "을", "를", "에", "의", "와", "과", "도", "로", "랑", "부터", "까지", "한테", "처럼"),
)
HANGING_WORDS_KO = _split("음 어 그 저 아 그리고 그런데 근데 하지만 그래서 왜냐하면 또 혹시 만약 제 내 이 그게 저기")
FINAL_BIEUP = 17  # index of ㅂ among the final consonants of a Hangul syllable
_WORD = re.compile(r"[\w'’]+")


@dataclass(frozen=True)
class Ending:
    """`is_fragment`: a few words without a verb, so hardly a sentence yet."""

    mark: Mark
    last_word: LastWord
    num_words: int
    is_fragment: bool = False


def ending(text: str, language: str) -> Ending:
    """Of a transcript. In a language without word lists the last word is "open"."""
    text = text.strip()
    words = _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    if not words:
        return Ending("none", "open", 0)
    mark: Mark = "more" if text.endswith(TRAILING) else "stop" if text[-1] in STOPS else "none"
    is_question = text[-1] in "?？"
    match language.split("-")[0].lower():
        case "en":
            last_word = _english(words, mark=mark, is_question=is_question)
            is_fragment = last_word == "open" and not is_question and not any(map(_makes_whole, words))
            return Ending(mark, last_word, len(words), is_fragment)
        case "ko":
            return Ending(mark, _korean(words, is_question=is_question), len(words))
        case _:
            return Ending(mark, "open", len(words))


def _english(words: list[str], *, mark: Mark, is_question: bool) -> LastWord:
    if (words[-1] in CLOSING_EN and not is_question) or words[-2:] == ["thank", "you"]:
        # "No." answers; "there is no" hangs.
        return "closing" if words[-1] != "no" or len(words) <= 2 else "hanging"
    if words[-1] not in HANGING_EN or is_question:  # a question may end in a preposition: "Where is it from?"
        return "open"
    # "More than it was." is whole, "My name is." is not.
    is_whole = words[-1] in AUXILIARIES_EN and mark == "stop" and len(words) > 3 and words[-2] in PRONOUNS_EN
    return "open" if is_whole else "hanging"


def _makes_whole(word: str) -> bool:
    """A verb, or what needs none."""
    if word in VERBS_EN or word in CLOSING_EN or word in GREETINGS_EN:
        return True
    return "'" in word or (len(word) > 4 and word.endswith(("ed", "ing")))


def _korean(words: list[str], *, is_question: bool) -> LastWord:
    word = words[-1]
    if is_question or word in CLOSING_WORDS_KO:
        return "closing"
    if word in HANGING_WORDS_KO or (word.endswith(HANGING_KO) and not _asks_formally(word)):
        return "hanging"
    return "closing" if word.endswith(CLOSING_KO) else "open"


def _asks_formally(word: str) -> bool:
    """-ㅂ니까 asks; -니까 otherwise means "because"."""
    return word.endswith("니까") and len(word) > 2 and (ord(word[-3]) - 0xAC00) % 28 == FINAL_BIEUP
