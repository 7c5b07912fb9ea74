"""What a model writes for the eye: Markdown, HTML, emoji, arrows. Their text stays, their signs go. Pure.

A unit of speech may begin or end within a construct, so a sign without its partner goes as well. Rules run in order;
each sees what those before it have left.
"""

from __future__ import annotations

import html
import re
import unicodedata

from voice.speakable.rewriting import Edit, Rewriting

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_AUTOLINK = re.compile(r"<(?:mailto:)?(?P<kept>https?://[^<>\s]{1,300}|[^<>\s@]{1,64}@[^<>\s@]{1,200})>", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|hr)\s*/?>|</(?:p|div|li|tr|h[1-6])>", re.IGNORECASE)
_TAG = re.compile(r"<!--.{0,300}?-->|</?[A-Za-z][^<>]{0,200}>", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+#.-]*[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", re.MULTILINE)
_TABLE_RULE = re.compile(r"^(?=[^\n]*\|)(?=[^\n]*-)[ \t|:-]+$", re.MULTILINE)
_ROW_ENDS = re.compile(r"^[ \t]*\|[ \t]*|[ \t]*\|[ \t]*$", re.MULTILINE)
_CELL_END = re.compile(r"[ \t]+\|[ \t]*|\|[ \t]+")
_LINE_BEGIN = re.compile(
    r"^[ \t]*(?:\#{1,6}[ \t]+|>[ \t]?(?![ \t]*[0-9])|(?:[-*–—•‣◦▪●○·]|\+(?=[ \t]+[^\W\d]))[ \t]+(?:\[[ xX]\][ \t]+)?)+",
    re.MULTILINE,
)
_ITEM_NUMBER = re.compile(r"(?P<before>^[ \t]*[0-9]{1,3})\)(?=[ \t])", re.MULTILINE)
_HEADING_END = re.compile(r"[ \t]+#{2,}[ \t]*$", re.MULTILINE)
_LINK = re.compile(r"!?\[(?P<kept>[^\[\]]{0,300})\](?:\((?:[^()\n]|\([^()\n]*\)){0,1000}\)|\[[^\[\]\n]{0,80}\])")
_LINK_END = re.compile(r"\]\([^)\s]*\)?")  # of a link that began in the unit before
_FOOTNOTE = re.compile(r"\[\^?[0-9]{1,3}\]|\[\^[^\[\]\n]{1,40}\]|【[^】\n]{0,80}】")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_ADDRESS_AT_WORD = re.compile(
    r"(?:(?<=[^\x00-\x7f])|(?<=[^\x00-\x7f][-'’]))(?:w(?=ww\.\w)|h(?=ttps?://))", re.IGNORECASE
)
_TIMES = re.compile(r"(?<=[0-9])[ \t]*\*[ \t]*(?=[0-9])")
_CODE = re.compile(r"`+")
_STRONG = re.compile(r"(?P<sign>\*{1,3}|~~|(?<!\w)_{1,3}(?=\S))(?=[^\s*])(?P<kept>[^\n]{0,500}?[^\s*])(?P=sign)(?!\w)")
_SIGN = re.compile(r"\*{2,}|~{2,}|(?<!\w)_+|_+(?!\w)|(?<=\w)\*|\*(?=[^\W\d])")
_ARROW = re.compile(r"[ \t]*(?:<?[-=]+>|<-+(?![0-9])|[←-⇿⟰-⟿⬅-⬇➔-➿])+️?[ \t]*")
_STEP = re.compile(r"(?<=[\w)'\"’”])[ \t]>[ \t](?=['\"‘“]?[^\W\d])")  # Settings > Privacy
_FLAG = re.compile(r"(?<!\S)-{1,2}(?=[a-z])")  # --verbose
_EMOTICON = re.compile(r"(?<!\S)(?:[:;=][-^']?[)(DPp/|\\]+|[xX]D|\^_*\^|[Tt]_[Tt]|[ㄱ-ㅎㅏ-ㅣ]{2,}[~!]*)(?=$|[\s.,!?])")
_JAMO = re.compile(r"(?<=[가-힣.!?~])[ㅋㅎㅠㅜ]{2,}")
_ELLIPSIS = re.compile(r"\.{2,}|…+|‥+|。{2,}")
_NEWLINE = re.compile(r"\s*\n\s*")

_SYMBOLS_THAT_ARE_SAID = frozenset("°©№℃℉")
_ENDS_SOMETHING = ",;:.!?…、。，！？；：—-"
_IGNORED = frozenset("\u00ad\ufeff\u20e3\ufffc\ufffd")
_BLANKS = re.compile(r"[^\S\n]")


def strip_markup(rewriting: Rewriting) -> None:
    while _ENTITY.search(rewriting.text):  # each round is shorter
        before = rewriting.text
        rewriting.sub(_ENTITY, lambda m: html.unescape(m[0]))
        if rewriting.text == before:  # none that is known
            break
    _fold_forms(rewriting)
    rewriting.unwrap(_AUTOLINK, parted=True)
    rewriting.sub(_BREAK, "\n")
    rewriting.sub(_TAG, "")
    _strip_blocks(rewriting)
    _strip_signs(rewriting)
    rewriting.sub(_ARROW, lambda m: ", " if _is_inside(m) else " ")
    rewriting.sub(_STEP, ", ")
    rewriting.sub(_FLAG, "")
    rewriting.sub(_EMOTICON, "")
    rewriting.sub(_JAMO, "")
    _drop_pictures(rewriting)
    rewriting.sub(_ADDRESS_AT_WORD, lambda m: f" {m[0]}")
    rewriting.sub(_ELLIPSIS, "...")
    rewriting.sub(_NEWLINE, _line_end)


def _strip_blocks(rewriting: Rewriting) -> None:
    for pattern in (_FENCE, _TABLE_RULE, _RULE, _ROW_ENDS):
        rewriting.sub(pattern, "")
    rewriting.sub(_CELL_END, ", ")
    rewriting.sub(_LINE_BEGIN, "")
    rewriting.sub(_ITEM_NUMBER, lambda m: f"{m['before']}.")
    rewriting.sub(_HEADING_END, "")


def _strip_signs(rewriting: Rewriting) -> None:
    rewriting.unwrap(_LINK, parted=True)
    for pattern in (_LINK_END, _FOOTNOTE, _ESCAPE, _CODE):
        rewriting.sub(pattern, "")
    rewriting.sub(_TIMES, " × ")
    rewriting.unwrap(_STRONG)
    rewriting.unwrap(_STRONG)  # one within another
    rewriting.sub(_SIGN, "")


def _is_inside(match: re.Match[str]) -> bool:
    before, after = match.string[: match.start()].rstrip(" \t"), match.string[match.end() :]
    return bool(before) and before[-1] not in "\n" + _ENDS_SOMETHING and bool(after) and after[0] != "\n"


def _line_end(match: re.Match[str]) -> str:
    """A line is a sentence, whatever it ends with."""
    before = match.string[: match.start()].rstrip("\"'”’)] ")
    return " " if not before or before[-1] in _ENDS_SOMETHING else ". "


def _fold_forms(rewriting: Rewriting) -> None:
    """Wide and squared forms of letters, digits and signs become the usual ones; odd blanks become blanks."""
    edits: list[Edit] = []
    for i, char in enumerate(rewriting.text):
        if char == "\n" or " " <= char <= "~":
            continue
        if char in "\u2028\u2029\v\f\r\u0085":
            edits.append((i, i + 1, "\n"))
        elif _BLANKS.match(char):
            edits.append((i, i + 1, " "))
        elif char == "\u200c":  # part of Persian words
            continue
        elif char in _IGNORED or unicodedata.category(char) in ("Cf", "Cc", "Cs", "Co", "Cn"):
            edits.append((i, i + 1, ""))
        elif (
            "\uff10" <= char <= "\uff5a"
            or char in "％＄＆＋＠／￦￥￡＃～"
            or "\u3371" <= char <= "\u33df"
            or char == "㈜"
        ):
            if char not in "：；＜＝＞？":
                edits.append((i, i + 1, unicodedata.normalize("NFKC", char)))
        elif "\u2460" <= char <= "\u2473":  # ① to ⑳
            edits.append((i, i + 1, f"{unicodedata.normalize('NFKC', char)}. "))
    rewriting.edit(edits)


def _drop_pictures(rewriting: Rewriting) -> None:
    """A picture between two words parts them."""
    text = rewriting.text
    edits: list[Edit] = []
    for i, char in enumerate(text):
        if char.isascii():
            continue
        is_picture = unicodedata.category(char) == "So" and char not in _SYMBOLS_THAT_ARE_SAID
        if is_picture or "\ufe00" <= char <= "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff":
            parts = is_picture and text[:i][-1:].isalnum() and text[i + 1 :].lstrip("\ufe0f")[:1].isalnum()
            edits.append((i, i + 1, " " if parts else ""))
    rewriting.edit(edits)
